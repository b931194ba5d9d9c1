//! Reads stack lists: registers, memory and images as text, for captures without a format of their own.
//!
//! ```text
//! stack-list arm64 android
//! # a comment
//! image 0x7b5e3b8000 0x4e000 0123456789abcdef0123456789abcdef /system/lib64/libfoo.so
//! thread 4711 worker
//! crashed
//! registers pc=0x7b5e3c0120 lr=0x7b5e3c0118 sp=0x7fcd2f10 fp=0x7fcd2f30 x19=0x0
//! memory 0x7fcd2f10 20 2f cd 7f 00 00 00 00
//! ```

use std::collections::HashMap;

use minidump::format::{CONTEXT_AMD64, CONTEXT_ARM, CONTEXT_ARM64, CONTEXT_X86};
use minidump::system_info::{Cpu, Os};
use minidump::{
    MinidumpContext, MinidumpContextValidity, MinidumpModule, MinidumpModuleList, MinidumpRawContext,
};
use minidump_processor::ProcessState;
use minidump_unwind::{CallStack, CallStackInfo, SystemInfo};
use symdex::ImageId;
use symdex_report::ReportImage;

use crate::dump::{arch, empty_state};
use crate::error::Error;
use crate::limits::THREADS;
use crate::process::{Block, Process, address_size};
use crate::registers::{Registers, context_with};

/// The word with which a list begins.
pub(crate) const KEYWORD: &str = "stack-list";

/// A list whose lines are read. It owns the memory that they state.
pub(crate) struct StackList {
    system: SystemInfo,
    pub(crate) pid: Option<u32>,
    pub(crate) images: Vec<ReportImage>,
    pub(crate) threads: Vec<ListedThread>,
    /// The position of the thread that crashed.
    pub(crate) crashed: Option<usize>,
    /// The memory by address; after [`join_memory`](Self::join_memory) in ascending order, without overlaps.
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
}

/// A thread of a list.
#[derive(Default)]
pub(crate) struct ListedThread {
    pub(crate) id: u32,
    pub(crate) name: Option<String>,
    /// The values of the registers by name.
    pub(crate) registers: HashMap<&'static str, u64>,
}

impl StackList {
    /// A list without images and threads.
    pub(crate) fn new(os: Os, cpu: Cpu) -> Self {
        let system = SystemInfo {
            os,
            os_version: None,
            os_build: None,
            cpu,
            cpu_info: None,
            cpu_microcode_version: None,
            cpu_count: 0,
        };
        let (images, threads, memory) = (Vec::new(), Vec::new(), Vec::new());
        Self { system, pid: None, images, threads, crashed: None, memory }
    }

    /// The processor.
    pub(crate) fn cpu(&self) -> Cpu {
        self.system.cpu
    }

    /// The size of an address in bytes.
    pub(crate) fn width(&self) -> usize {
        address_size(self.cpu())
    }

    /// Reads the lines of `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let mut lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.by_ref().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (number, first) = lines.next().unwrap_or((1, ""));
        let mut list = system(first).map_err(|what| Error::Line { line: number, what })?;
        let registers = Registers::of(list.cpu());
        let registers = registers.ok_or_else(|| Error::Unsupported { what: list.cpu().to_string() })?;
        for (number, line) in lines {
            list.line(line, &registers).map_err(|what| Error::Line { line: number, what })?;
        }
        list.join_memory();
        Ok(list)
    }

    fn line(&mut self, line: &str, registers: &Registers) -> Result<(), String> {
        let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match keyword {
            "image" => self.image(rest),
            "thread" => self.thread(rest),
            "crashed" => {
                self.crashed = Some(self.threads.len().checked_sub(1).ok_or("expected `thread` before it")?);
                Ok(())
            }
            "registers" => self.registers(rest, registers),
            "memory" => self.memory(rest),
            _ => Err(format!(
                "found `{keyword}`; expected image, thread, crashed, registers, memory or a comment (#)"
            )),
        }
    }

    /// `LOAD SIZE ID PATH`. The id is `-` if it is unknown.
    fn image(&mut self, text: &str) -> Result<(), String> {
        const EXPECTED: &str = "expected `image LOAD_ADDRESS SIZE ID PATH`";
        let mut words = text.splitn(4, char::is_whitespace);
        let mut word = || words.next().filter(|word| !word.is_empty()).ok_or(EXPECTED);
        let (load_address, size) = (address(word()?)?, address(word()?)?);
        let id = match word()? {
            "-" => None,
            id => Some(id.parse::<ImageId>().map_err(|error| format!("the id of the image: {error}"))?),
        };
        let path = word()?.trim();
        u32::try_from(size)
            .ok()
            .filter(|size| load_address.checked_add((*size).into()).is_some())
            .ok_or("the image has more than 4 GiB, or ends past the end of the address space")?;
        let mut image = ReportImage::default();
        image.name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        image.path = path.to_owned();
        image.arch = arch(self.system.cpu);
        (image.id, image.load_address, image.size) = (id, load_address, Some(size));
        self.images.push(image);
        Ok(())
    }

    /// `ID [NAME]`.
    fn thread(&mut self, text: &str) -> Result<(), String> {
        let (id, name) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let id = id.parse().map_err(|_| format!("found the thread id `{id}`; expected a decimal number"))?;
        let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        self.threads.push(ListedThread { id, name, registers: HashMap::new() });
        Ok(())
    }

    /// `NAME=VALUE ...`.
    fn registers(&mut self, text: &str, registers: &Registers) -> Result<(), String> {
        let thread = self.threads.last_mut().ok_or("expected `thread` before it")?;
        for register in text.split_whitespace() {
            let (name, value) =
                register.split_once('=').ok_or_else(|| format!("found `{register}`; expected NAME=VALUE"))?;
            // Other registers, such as flags, do not matter.
            if let Some(name) = registers.known(name) {
                thread.registers.insert(name, address(value)?);
            }
        }
        Ok(())
    }

    /// `ADDRESS BYTES`: two hexadecimal digits for each byte. Spaces are ignored.
    fn memory(&mut self, text: &str) -> Result<(), String> {
        let (start, digits) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let start = address(start)?;
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let is_whole = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        let bytes = bytes.filter(|_| is_whole).ok_or("expected two hexadecimal digits for each byte")?;
        start.checked_add(bytes.len() as u64).ok_or("the memory ends past the end of the address space")?;
        self.memory.push((start, bytes));
        Ok(())
    }

    /// Sorts the memory and joins neighbours. Where lines overlap, the one with the smaller address counts.
    pub(crate) fn join_memory(&mut self) {
        let mut lines = std::mem::take(&mut self.memory);
        lines.sort_by_key(|(start, _)| *start);
        for (start, bytes) in lines {
            match self.memory.last_mut() {
                Some((last, joined)) if start <= *last + joined.len() as u64 => {
                    let known = usize::try_from(*last + joined.len() as u64 - start).unwrap_or(usize::MAX);
                    joined.extend_from_slice(bytes.get(known..).unwrap_or_default());
                }
                _ => self.memory.push((start, bytes)),
            }
        }
    }

    /// The process that the list describes.
    pub(crate) fn process(&self) -> Process<'_> {
        let module = |image: &ReportImage| {
            let size = image.size.and_then(|size| u32::try_from(size).ok()).unwrap_or_default();
            MinidumpModule::new(image.load_address, size, &image.path)
        };
        let modules = MinidumpModuleList::from_modules(self.images.iter().map(module).collect());
        let threads: Vec<_> = self.threads.iter().take(THREADS).map(|thread| self.stack(thread)).collect();
        let requesting_thread = self.crashed.filter(|crashed| *crashed < threads.len());
        let stacks = vec![None; threads.len()];
        let process_id = self.pid;
        let state = ProcessState {
            process_id,
            requesting_thread,
            threads,
            modules,
            ..empty_state(self.system.clone())
        };
        let memory = self.memory.iter().map(|(address, bytes)| Block { address: *address, bytes });
        Process {
            state,
            images: self.images.clone(),
            stacks,
            memory: memory.collect(),
            skipped_threads: self.threads.len().saturating_sub(THREADS),
        }
    }

    fn stack(&self, thread: &ListedThread) -> CallStack {
        let mut stack = CallStack::with_info(thread.id, CallStackInfo::MissingContext);
        stack.thread_name = thread.name.clone();
        if !thread.registers.is_empty()
            && let Some(raw) = empty_context(self.system.cpu)
        {
            let model = MinidumpContext { raw, valid: MinidumpContextValidity::All };
            let values: Vec<_> = thread.registers.iter().map(|(name, value)| (*name, *value)).collect();
            let context = context_with(&model, &values);
            stack.frames = CallStack::with_context(context).frames;
            stack.info = CallStackInfo::Ok;
        }
        stack
    }
}

/// Registers that are all 0.
fn empty_context(cpu: Cpu) -> Option<MinidumpRawContext> {
    Some(match cpu {
        Cpu::X86 => MinidumpRawContext::X86(CONTEXT_X86::default()),
        Cpu::X86_64 => MinidumpRawContext::Amd64(CONTEXT_AMD64::default()),
        Cpu::Arm => MinidumpRawContext::Arm(CONTEXT_ARM::default()),
        Cpu::Arm64 => MinidumpRawContext::Arm64(CONTEXT_ARM64::default()),
        _ => return None,
    })
}

/// Reads the first line: `stack-list ARCH OS`.
fn system(line: &str) -> Result<StackList, String> {
    let mut words = line.split_whitespace().skip(1);
    let (arch, os) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let cpu = match arch {
        "x86_64" => Cpu::X86_64,
        "i386" => Cpu::X86,
        "arm64" | "arm64e" => Cpu::Arm64,
        "arm" => Cpu::Arm,
        other => return Err(format!("found the processor `{other}`; expected x86_64, i386, arm64 or arm")),
    };
    let os = match os {
        "linux" => Os::Linux,
        "android" => Os::Android,
        "macos" => Os::MacOs,
        "ios" => Os::Ios,
        other => return Err(format!("found the system `{other}`; expected linux, android, macos or ios")),
    };
    Ok(StackList::new(os, cpu))
}

/// A hexadecimal number, with or without `0x`.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("found `{text}`; expected a hexadecimal number of at most 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        StackList::parse(text).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn lines_that_do_not_fit_say_what_was_expected() {
        let head = "stack-list arm64 linux\n";
        let with = |line: &str| error(&format!("{head}\n# a comment\n{line}\n"));
        assert!(
            error("stack-list vax linux").starts_with("line 1 of the stack list: found the processor `vax`")
        );
        assert!(error("stack-list arm dos").contains("found the system `dos`"));
        assert!(with("frames").starts_with("line 4 of the stack list: found `frames`"));
        assert!(with("image 0x1000").contains("expected `image LOAD_ADDRESS SIZE ID PATH`"));
        assert!(with("image 0x1000 0x1000 xyz /lib").contains("the id of the image"));
        assert!(with("image 0xfffffffffffff000 0x2000 - /lib").contains("ends past the end"));
        assert!(with("thread main").contains("expected a decimal number"));
        assert!(with("registers pc=0x1").contains("expected `thread` before it"));
        assert!(with("thread 1\nregisters pc").contains("expected NAME=VALUE"));
        assert!(with("thread 1\nregisters pc=1 sp=q").contains("expected a hexadecimal number"));
        assert!(with("memory 0x1000 123").contains("two hexadecimal digits"));
        assert!(with("memory 0xffffffffffffffff 00 00").contains("end of the address space"));
    }

    #[test]
    fn neighbours_and_overlaps_of_memory_are_joined() {
        let text = "stack-list x86_64 linux\nmemory 0x1004 0506 07\nmemory 0x1000 01020304 ff\nmemory 1100 aa\n\
                    memory 0x1002 09\n";
        let list = StackList::parse(text).expect("a list");
        assert_eq!(list.memory, [(0x1000, vec![1, 2, 3, 4, 0xff, 6, 7]), (0x1100, vec![0xaa])]);
    }
}

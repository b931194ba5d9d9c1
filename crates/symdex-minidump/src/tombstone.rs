//! Android's tombstones without frames: their registers, stack memory and memory map are walked, and the frames are
//! added to their text.

use std::collections::HashMap;
use std::fmt::Write as _;

use minidump::system_info::{Cpu, Os};
use minidump_unwind::{FrameTrust, StackFrame};
use symdex_report::ReportImage;

use crate::dump::arch;
use crate::registers::Registers;
use crate::stack_list::{ListedThread, StackList};

/// The titles of the sections that can follow the registers.
const SECTIONS: [&str; 5] = ["backtrace:", "stack:", "memory near ", "code around ", "memory map"];
/// What comes before the other threads.
const OTHER_THREADS: &str = "--- --- ---";

/// A tombstone without frames.
pub(crate) struct Tombstone<'t> {
    text: &'t str,
    /// The process. Its images are those of the memory map.
    pub(crate) process: StackList,
    /// The load bias of each image: what Android adds to a distance from its start.
    load_biases: Vec<u64>,
    /// Where the frames are added.
    insert_at: usize,
}

/// Whether `text` has what a tombstone needs to be walked: a process, and a memory map, but no frames.
pub(crate) fn is_without_frames(text: &str) -> bool {
    let is_frame = |line: &str| {
        let rest = line.trim_start().strip_prefix('#').unwrap_or_default();
        rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).starts_with(" pc ")
    };
    let has = |words| text.contains(words);
    has("pid: ") && has("  >>> ") && has("\nmemory map") && !text.lines().any(is_frame)
}

/// A part of a tombstone.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    /// The header and the registers.
    Registers,
    /// Lines of an address and several words.
    Memory,
    /// Lines of an address and a word, with numbers of frames before some.
    Stack,
    Map,
    Other,
}

impl<'t> Tombstone<'t> {
    /// Reads a tombstone without frames. Returns `None` for any other text, and if it has no registers or no image.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        if !is_without_frames(text) {
            return None;
        }
        let abi = text.lines().find_map(|line| line.trim().strip_prefix("ABI: '")?.strip_suffix('\''));
        let cpu = match abi? {
            "arm64" => Cpu::Arm64,
            "arm" => Cpu::Arm,
            "x86_64" => Cpu::X86_64,
            "x86" => Cpu::X86,
            _ => return None,
        };
        let mut reader = Reader {
            registers: Registers::of(cpu)?,
            list: StackList::new(Os::Android, cpu),
            thread: ListedThread::default(),
            images: HashMap::new(),
            load_biases: Vec::new(),
        };
        let (mut section, mut insert_at, mut at) = (Section::Registers, None, 0);
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let line = line.trim_end();
            if line.starts_with(OTHER_THREADS) {
                break;
            }
            if SECTIONS.iter().any(|title| line.starts_with(title)) {
                insert_at = insert_at.or(Some(start));
                section = match line {
                    _ if line.starts_with("stack:") => Section::Stack,
                    _ if line.starts_with("memory near ") => Section::Memory,
                    _ if line.starts_with("memory map") => Section::Map,
                    _ => Section::Other,
                };
                continue;
            }
            reader.line(line, section);
        }
        let Reader { mut list, thread, load_biases, .. } = reader;
        if thread.registers.is_empty() || list.images.is_empty() {
            return None;
        }
        list.threads.push(thread);
        list.crashed = Some(0);
        list.join_memory();
        Some(Self { text, process: list, load_biases, insert_at: insert_at? })
    }

    /// The tombstone with the frames of its thread.
    pub(crate) fn with_frames(&self, frames: &[StackFrame]) -> String {
        let (before, after) = self.text.split_at(self.insert_at);
        // A title without frames is left out.
        let after = after.strip_prefix("backtrace:\n").unwrap_or(after);
        let mut text = format!("{before}backtrace:\n");
        let digits = 2 * self.process.width();
        for (number, frame) in frames.iter().enumerate() {
            let images = self.process.images.iter().zip(&self.load_biases);
            let place = images.clone().find(|(image, _)| image.contains(frame.instruction));
            let (address, path) = match place {
                Some((image, bias)) => {
                    let address = (frame.instruction - image.load_address).wrapping_add(*bias);
                    (address, image.path.as_str())
                }
                None => (frame.instruction, "<unknown>"),
            };
            // Writing to memory does not fail.
            let _ =
                write!(text, "      #{number:02} pc {address:0digits$x}  {path} (found by {})", how(frame));
            if let Some(id) = place.and_then(|(image, _)| image.id.as_ref()) {
                let _ = write!(text, " (BuildId: {id})");
            }
            text.push('\n');
        }
        text.push('\n');
        text.push_str(after);
        text
    }
}

/// How a frame was found, in the words of `symdex_report::FoundBy`.
fn how(frame: &StackFrame) -> &'static str {
    match frame.trust {
        FrameTrust::Context => "context",
        FrameTrust::CallFrameInfo => "cfi",
        FrameTrust::FramePointer => "frame_pointer",
        FrameTrust::Scan | FrameTrust::CfiScan => "scan",
        FrameTrust::None | FrameTrust::PreWalked => "other",
    }
}

struct Reader {
    registers: Registers,
    list: StackList,
    thread: ListedThread,
    /// Positions of images by path.
    images: HashMap<String, usize>,
    load_biases: Vec<u64>,
}

impl Reader {
    fn line(&mut self, line: &str, section: Section) {
        match section {
            Section::Registers if line.starts_with("pid: ") => self.process(line),
            Section::Registers => self.read_registers(line),
            Section::Memory => {
                // The words as characters come after two spaces.
                let words = line.trim_start().split("  ").next().unwrap_or_default();
                self.words(words.split(' '));
            }
            Section::Stack => {
                let mut words = line.split_whitespace().peekable();
                words.next_if(|word| word.starts_with('#'));
                self.words(words.take(2));
            }
            Section::Map => {
                let _ = self.map(line);
            }
            Section::Other => {}
        }
    }

    /// `pid: 1, tid: 2, name: worker  >>> com.example <<<`.
    fn process(&mut self, line: &str) {
        let value = |key: &str| {
            line.split(key).nth(1).map(|rest| rest.split(['>', ',']).next().unwrap_or(rest).trim())
        };
        self.list.pid = value("pid: ").and_then(|pid| pid.parse().ok());
        self.thread.id = value("tid: ").and_then(|id| id.parse().ok()).unwrap_or_default();
        self.thread.name = value("name: ").map(str::to_owned);
    }

    /// `x0  0000000000000001  x1  0000007f5c0de000 ...`.
    fn read_registers(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            let known = self.registers.known(name);
            match (known, u64::from_str_radix(value, 16)) {
                (Some(name), Ok(value)) => _ = self.thread.registers.insert(name, value),
                // Lines of registers have nothing else.
                (None, Err(_)) | (Some(_), Err(_)) => return,
                (None, Ok(_)) => {}
            }
        }
    }

    /// An address, and the words from there on. Words that could not be read are dashes.
    fn words<'w>(&mut self, mut words: impl Iterator<Item = &'w str>) {
        let width = self.list.width();
        let number = |word: &str| u64::from_str_radix(word, 16).ok().filter(|_| word.len() == 2 * width);
        let Some(address) = words.next().and_then(number) else { return };
        let values = words.map_while(number);
        let bytes = values.flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect::<Vec<_>>();
        if address.checked_add(bytes.len() as u64).is_some() {
            self.list.memory.push((address, bytes));
        }
    }

    /// `0000007b'5e3b8000-0000007b'5e3d1fff r-x     1a000     1a000  /lib.so (BuildId: 0a1b) (load bias 0x1000)`.
    fn map(&mut self, line: &str) -> Option<()> {
        let (range, rest) = line.trim_start().split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |digits: &str| u64::from_str_radix(&digits.replace('\'', ""), 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        let mut words = rest.split_whitespace();
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = &rest[rest.find('/')?..];
        let (path, notes) =
            path.split_once(" (").map_or((path, ""), |(path, notes)| (path.trim_end(), notes));
        let note = |key: &str| notes.split(key).nth(1)?.split(')').next();
        let id = note("BuildId: ").and_then(|id| id.parse().ok());
        let bias = note("load bias 0x").and_then(|bias| u64::from_str_radix(bias, 16).ok());
        let known = self.images.get(path).copied();
        let number = match known {
            Some(number) if offset != 0 => number,
            // A second mapping from the start of a file is another copy of it.
            _ => self.add_image(path, start.checked_sub(offset)?),
        };
        let image = &mut self.list.images[number];
        image.id = image.id.take().or(id);
        image.size = Some(end.checked_sub(image.load_address)?.saturating_add(1).min(u32::MAX.into()));
        self.load_biases[number] = bias.unwrap_or(self.load_biases[number]);
        Some(())
    }

    fn add_image(&mut self, path: &str, load_address: u64) -> usize {
        let mut image = ReportImage::default();
        image.name = path.rsplit('/').next().unwrap_or_default().to_owned();
        image.path = path.to_owned();
        image.arch = arch(self.list.cpu());
        image.load_address = load_address;
        self.list.images.push(image);
        self.load_biases.push(0);
        let number = self.list.images.len() - 1;
        self.images.insert(path.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOMBSTONE: &str = "\
*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***
Build fingerprint: 'google/raven/raven:13/TP1A/1:user/release-keys'
ABI: 'arm64'
pid: 11, tid: 12, name: worker 1  >>> com.example.game <<<
signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0000000000000000
    x0  0000000000000001  x1  00000000000000ff
    x29 0000007fcd2f1030
    lr  0000007b5e3c0118  sp  0000007fcd2f1020  pc  0000007b5e3c0120  pst 0000000060000000

memory near x1 ([anon:libc_malloc]):
    0000007b00000000 0000000000000001 ----------------  ................
memory near sp ([stack]):
    0000007fcd2f1020 0000000000000007 0000000000000008  ................
    0000007fcd2f1030 0000007fcd2f1050 0000007b5e3c0228  P./.....(.<^{...

stack:
         0000007fcd2f1018  0000000000000009
    #00  0000007fcd2f1040  00000000000000aa  [anon:stack]
         ................  ................

memory map (3 entries):
    0000007b'5e3b8000-0000007b'5e3bffff r--         0      8000  /data/app/libgame.so (BuildId: 00112233) (load bias 0x1000)
    0000007b'5e3c0000-0000007b'5e3cffff r-x      8000     10000  /data/app/libgame.so (BuildId: 00112233) (load bias 0x1000)
    0000007f'cd2f0000-0000007f'cd2fffff rw-         0     10000  [stack]
--- --- --- --- --- --- --- --- --- --- --- --- --- --- --- ---
";

    #[test]
    fn registers_memory_and_images_are_read() {
        let tombstone = Tombstone::parse(TOMBSTONE).expect("a tombstone without frames");
        let list = &tombstone.process;
        assert_eq!(list.pid, Some(11));
        let thread = &list.threads[0];
        assert_eq!((thread.id, thread.name.as_deref()), (12, Some("worker 1")));
        assert_eq!(thread.registers["fp"], 0x7f_cd2f_1030);
        assert_eq!(thread.registers["pc"], 0x7b_5e3c_0120);
        assert_eq!(thread.registers.len(), 6);
        let image = &list.images[0];
        assert_eq!((list.images.len(), image.load_address, image.size), (1, 0x7b_5e3b_8000, Some(0x1_8000)));
        assert_eq!(image.id.as_ref().map(ToString::to_string).as_deref(), Some("00112233"));
        assert_eq!(tombstone.load_biases, [0x1000]);
        let sizes: Vec<_> = list.memory.iter().map(|(address, bytes)| (*address, bytes.len())).collect();
        assert_eq!(sizes, [(0x7b_0000_0000, 8), (0x7f_cd2f_1018, 8 + 32 + 8)]);
    }

    #[test]
    fn a_tombstone_with_frames_stays_as_it_is() {
        let with = TOMBSTONE.replace("stack:\n", "backtrace:\n      #00 pc 0000000000009120  /libgame.so\n");
        assert!(Tombstone::parse(&with).is_none());
        assert!(Tombstone::parse(&TOMBSTONE.replace("memory map", "maps")).is_none());
        assert!(Tombstone::parse(&TOMBSTONE.replace("'arm64'", "'riscv64'")).is_none());
    }
}

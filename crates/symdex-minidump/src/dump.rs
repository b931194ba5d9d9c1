//! Reads minidumps.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use minidump::system_info::Cpu;
use minidump::{
    Endian, Minidump, MinidumpBreakpadInfo, MinidumpContext, MinidumpException, MinidumpLinuxLsbRelease,
    MinidumpLinuxProcStatus, MinidumpMacCrashInfo, MinidumpMiscInfo, MinidumpModule, MinidumpModuleList,
    MinidumpStream, MinidumpSystemInfo, MinidumpThread, MinidumpThreadList, MinidumpThreadNames,
    MinidumpUnloadedModule, MinidumpUnloadedModuleList, Module, RawMacCrashInfo, UnifiedMemory,
    UnifiedMemoryList,
};
use minidump_processor::{ExceptionInfo, LinuxProcStatus, LinuxStandardBase, ProcessState};
use minidump_unwind::{CallStack, CallStackInfo, FrameTrust, StackFrame, SystemInfo};
use symdex::Arch;
use symdex_demangle::printable;
use symdex_report::ReportImage;

use crate::error::Error;
use crate::limits::THREADS;
use crate::names::{check_lists, path_on_one_line, repeated};
use crate::process::{Block, Process};

/// A minidump of which the header and the directory are read.
pub(crate) type Dump<'d> = Minidump<'d, &'d [u8]>;

/// Reads the header and the directory of the minidump in `bytes`.
pub(crate) fn open(bytes: &[u8]) -> Result<Dump<'_>, Error> {
    let dump = Minidump::read(bytes).map_err(damaged)?;
    if dump.endian == Endian::Big {
        return Err(Error::Unsupported {
            what: "a big-endian minidump; expected a little-endian one".to_owned(),
        });
    }
    check_lists(&dump, bytes)?;
    Ok(dump)
}

fn damaged(error: minidump::Error) -> Error {
    Error::Damaged { what: error.to_string() }
}

/// Reads the process that `dump` is of.
///
/// # Errors
///
/// [`Error::Damaged`] if the list of threads or the description of the system is missing or broken, and
/// [`Error::Unsupported`] if the processor is not supported. Other parts may be missing.
pub(crate) fn process<'d>(dump: &'d Dump<'d>) -> Result<Process<'d>, Error> {
    let system: MinidumpSystemInfo = dump.get_stream().map_err(damaged)?;
    let list: MinidumpThreadList<'d> = dump.get_stream().map_err(damaged)?;
    let misc: Option<MinidumpMiscInfo> = dump.get_stream().ok();
    let memory = dump.get_memory().unwrap_or_default();
    let modules = dump.get_stream::<MinidumpModuleList>().unwrap_or_default();
    let system_info = system_info(&system);
    check_processor(&system_info)?;
    let reader = ThreadReader::new(dump, &system, misc.as_ref());
    let read = list.threads.iter().take(THREADS);
    let threads: Vec<_> = read.clone().map(|thread| reader.thread(thread)).collect();
    let requesting_thread = reader.requesting_id.and_then(|id| {
        let position = threads.iter().position(|thread| thread.thread_id == id)?;
        Some(position).filter(|position| threads[*position].info != CallStackInfo::DumpThreadSkipped)
    });
    let exception_info = reader.exception.as_ref().map(|exception| exception_info(exception, &system_info));
    let stacks = read.map(|thread| thread.stack_memory(&memory).map(block)).collect();
    let images = images(&modules, &system_info);
    // What is printed has no control characters.
    let modules = modules.iter().cloned().map(|mut module| {
        module.name = path_on_one_line(&module.name);
        module
    });
    let modules = MinidumpModuleList::from_modules(modules.collect());
    let repeated_modules = modules.iter().map(|module| {
        let size = u32::try_from(module.size()).unwrap_or(u32::MAX);
        MinidumpModule::new(module.base_address(), size, &repeated(basename(&module.name)))
    });
    let repeated_modules = MinidumpModuleList::from_modules(repeated_modules.collect());
    let status = stream::<MinidumpLinuxProcStatus<'_>>(dump).map(LinuxProcStatus::from);
    let created = misc.as_ref().and_then(MinidumpMiscInfo::process_create_time);
    let state = ProcessState {
        process_id: misc
            .and_then(|misc| misc.raw.process_id().copied())
            .or_else(|| status.map(|status| status.pid)),
        time: SystemTime::UNIX_EPOCH + Duration::from_secs(dump.header.time_date_stamp.into()),
        process_create_time: created,
        exception_info,
        requesting_thread,
        threads,
        linux_standard_base: linux_standard_base(dump),
        mac_crash_info: mac_crash_info(dump),
        modules,
        unloaded_modules: unloaded_modules(dump),
        system_info,
        cert_info: Default::default(),
        assertion: None,
        linux_proc_limits: None,
        mac_boot_args: None,
        handles: None,
        unknown_streams: Vec::new(),
        unimplemented_streams: Vec::new(),
        symbol_stats: Default::default(),
        linux_memory_map_count: None,
        soft_errors: None,
    };
    let skipped_threads = list.threads.len().saturating_sub(THREADS);
    let memory = blocks(&memory);
    let by_base = images.iter().enumerate().map(|(at, image)| (image.load_address, at)).collect();
    Ok(Process { state, images, by_base, modules: repeated_modules, stacks, memory, skipped_threads })
}

/// A stream that the minidump may lack. Broken ones count as missing.
fn stream<'d, S: MinidumpStream<'d>>(dump: &'d Dump<'d>) -> Option<S> {
    dump.get_stream().ok()
}

fn linux_standard_base(dump: &Dump<'_>) -> Option<LinuxStandardBase> {
    let LinuxStandardBase { id, release, codename, description } =
        stream::<MinidumpLinuxLsbRelease<'_>>(dump)?.into();
    let [id, release, codename, description] = [id, release, codename, description].map(on_one_line);
    Some(LinuxStandardBase { id, release, codename, description })
}

fn mac_crash_info(dump: &Dump<'_>) -> Option<Vec<RawMacCrashInfo>> {
    let mut records = stream::<MinidumpMacCrashInfo>(dump)?.raw;
    for record in &mut records {
        let texts = match record {
            RawMacCrashInfo::V4(_, texts) => [
                &mut texts.module_path,
                &mut texts.message,
                &mut texts.signature_string,
                &mut texts.backtrace,
                &mut texts.message2,
            ],
            RawMacCrashInfo::V5(_, texts) => [
                &mut texts.module_path,
                &mut texts.message,
                &mut texts.signature_string,
                &mut texts.backtrace,
                &mut texts.message2,
            ],
            _ => continue,
        };
        texts.into_iter().for_each(|text| *text = on_one_line(std::mem::take(text)));
    }
    Some(records)
}

fn unloaded_modules(dump: &Dump<'_>) -> MinidumpUnloadedModuleList {
    let list = stream::<MinidumpUnloadedModuleList>(dump).unwrap_or_default();
    let modules = list.iter().cloned().map(|module| {
        let name = path_on_one_line(&module.name);
        MinidumpUnloadedModule { name, ..module }
    });
    MinidumpUnloadedModuleList::from_modules(modules.collect())
}

fn on_one_line(text: String) -> String {
    printable(Cow::Owned(text)).into_owned()
}

/// The part of a path after its last separator.
fn basename(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn system_info(system: &MinidumpSystemInfo) -> SystemInfo {
    let (os_version, os_build) = system.os_parts();
    SystemInfo {
        os: system.os,
        os_version: Some(on_one_line(os_version)),
        os_build: os_build.map(on_one_line),
        cpu: system.cpu,
        cpu_info: system.cpu_info().map(|info| on_one_line(info.into_owned())),
        cpu_microcode_version: None,
        cpu_count: system.raw.number_of_processors.into(),
    }
}

fn check_processor(system: &SystemInfo) -> Result<(), Error> {
    match system.cpu {
        Cpu::X86 | Cpu::X86_64 | Cpu::Arm | Cpu::Arm64 => Ok(()),
        other => Err(Error::Unsupported {
            what: format!("a minidump of the processor {other}; expected x86, amd64, arm or arm64"),
        }),
    }
}

/// The architecture of the images of a process.
fn arch(cpu: Cpu) -> Option<Arch> {
    Arch::from_name(match cpu {
        Cpu::X86 => "i386",
        Cpu::X86_64 => "x86_64",
        Cpu::Arm => "arm",
        Cpu::Arm64 => "arm64",
        _ => return None,
    })
}

fn exception_info(exception: &MinidumpException<'_>, system: &SystemInfo) -> ExceptionInfo {
    ExceptionInfo {
        reason: exception.get_crash_reason(system.os, system.cpu),
        address: exception.get_crash_address(system.os, system.cpu).into(),
        adjusted_address: None,
        instruction_str: None,
        instruction_properties: None,
        memory_access_list: None,
        instruction_pointer_update: None,
        possible_bit_flips: Vec::new(),
        inconsistencies: Vec::new(),
    }
}

fn images(modules: &MinidumpModuleList, system: &SystemInfo) -> Vec<ReportImage> {
    let arch = arch(system.cpu);
    let os = system.os.long_name();
    let image = |module: &MinidumpModule| {
        let code_id = module.code_identifier().unwrap_or_default();
        let debug_id = module.debug_identifier().unwrap_or_default().breakpad().to_string();
        let path = module.code_file();
        ReportImage::from(symdex_report::MinidumpModule {
            path: &path,
            os: &os,
            arch: arch.as_ref(),
            code_id: code_id.as_str(),
            debug_id: &debug_id,
            load_address: module.base_address(),
            size: Some(module.size()),
        })
    };
    modules.iter().map(image).collect()
}

/// Reads the registers of threads.
struct ThreadReader<'d> {
    system: &'d MinidumpSystemInfo,
    misc: Option<&'d MinidumpMiscInfo>,
    names: MinidumpThreadNames,
    exception: Option<MinidumpException<'d>>,
    /// The thread that crashed or asked for the minidump.
    requesting_id: Option<u32>,
    /// The thread that wrote the minidump.
    writer_id: Option<u32>,
}

impl<'d> ThreadReader<'d> {
    fn new<'s: 'd>(
        dump: &'s Dump<'s>,
        system: &'d MinidumpSystemInfo,
        misc: Option<&'d MinidumpMiscInfo>,
    ) -> Self {
        let exception: Option<MinidumpException<'d>> = stream(dump);
        let breakpad: Option<MinidumpBreakpadInfo> = stream(dump);
        let crashed_id = exception.as_ref().map(MinidumpException::get_crashing_thread_id);
        let requesting_id = crashed_id.or(breakpad.as_ref().and_then(|info| info.requesting_thread_id));
        let writer_id = breakpad.and_then(|info| info.dump_thread_id);
        let names = stream(dump).unwrap_or_default();
        Self { system, misc, names, exception, requesting_id, writer_id }
    }

    fn thread(&self, thread: &MinidumpThread<'_>) -> CallStack {
        let id = thread.raw.thread_id;
        if self.writer_id == Some(id) {
            return CallStack::with_info(id, CallStackInfo::DumpThreadSkipped);
        }
        let frames =
            self.context(thread).map(|context| StackFrame::from_context(context, FrameTrust::Context));
        CallStack {
            info: if frames.is_some() { CallStackInfo::Ok } else { CallStackInfo::MissingContext },
            frames: frames.into_iter().collect(),
            thread_id: id,
            thread_name: self.names.get_name(id).map(|name| repeated(&name)),
            last_error_value: None,
        }
    }

    /// The registers of a thread. For the crashed thread, they are those of the exception: its own are those of the
    /// handler that wrote the minidump.
    fn context(&self, thread: &MinidumpThread<'_>) -> Option<MinidumpContext> {
        let of_exception = || {
            let exception = self.exception.as_ref()?;
            (self.requesting_id == Some(thread.raw.thread_id)).then_some(())?;
            exception.context(self.system, self.misc).map(Cow::into_owned)
        };
        of_exception().or_else(|| thread.context(self.system, self.misc).map(Cow::into_owned))
    }
}

fn block<'d>(memory: UnifiedMemory<'_, 'd>) -> Block<'d> {
    match memory {
        UnifiedMemory::Memory(memory) => Block { address: memory.base_address, bytes: memory.bytes },
        UnifiedMemory::Memory64(memory) => Block { address: memory.base_address, bytes: memory.bytes },
    }
}

fn blocks<'d>(memory: &UnifiedMemoryList<'d>) -> Vec<Block<'d>> {
    memory.by_addr().map(block).collect()
}

//! Minidumps of Linux processes, with the streams that a crash reporter writes, and microdumps.
//!
//! The layouts are those of Windows' `minidumpapiset.h` and of Breakpad's `minidump_format.h`.

/// A process of which a minidump is made. The first thread has crashed.
#[derive(Clone, Debug, Default)]
pub struct DumpedProcess {
    /// The loaded files.
    pub modules: Vec<DumpedModule>,
    /// The threads.
    pub threads: Vec<DumpedThread>,
    /// The processor.
    pub processor: Processor,
    /// Files that were loaded before. They have no build ids.
    pub unloaded_modules: Vec<DumpedModule>,
    /// Ids and names of threads.
    pub thread_names: Vec<(u32, String)>,
}

/// A processor whose registers a minidump can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// Registers: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15, rip.
    #[default]
    X86_64,
    /// Registers: x0 to x30, sp, pc.
    Arm64,
    /// Registers: r0 to r15.
    Arm,
}

/// A loaded file.
#[derive(Clone, Debug, Default)]
pub struct DumpedModule {
    /// Where it is loaded.
    pub base: u64,
    /// How many bytes it takes.
    pub size: u32,
    /// The path.
    pub path: String,
    /// The build id; empty if it has none.
    pub build_id: Vec<u8>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct DumpedThread {
    /// The system's id of the thread.
    pub id: u32,
    /// The values of the registers, in the order of [`Processor`].
    pub registers: Vec<u64>,
    /// Where the memory of the stack begins.
    pub stack_address: u64,
    /// The memory of the stack.
    pub stack: Vec<u8>,
}

impl Processor {
    /// The number in the description of the system, the size of a context, its flags, the position of the flags, and
    /// that of the first register. The flags say that the integer registers and the control registers are there.
    fn layout(self) -> (u16, usize, u32, usize, usize) {
        match self {
            Self::X86_64 => (9, 1232, 0x10_0003, 48, 120),
            Self::Arm64 => (12, 912, 0x40_0003, 0, 8),
            Self::Arm => (5, 368, 0x4000_0002, 0, 4),
        }
    }

    /// The registers of a thread, as a minidump has them.
    fn context(self, registers: &[u64]) -> Vec<u8> {
        let (_, size, flags, at_flags, mut at) = self.layout();
        let mut context = vec![0; size];
        let mut put = |at: usize, bytes: &[u8]| context[at..at + bytes.len()].copy_from_slice(bytes);
        put(at_flags, &flags.to_le_bytes());
        for register in registers {
            let bytes = register.to_le_bytes();
            let width = if self == Self::Arm { 4 } else { 8 };
            put(at, &bytes[..width]);
            at += width;
        }
        context
    }
}

/// Writes what a stream refers to into the file. Returns the stream.
type WriteStream = fn(&DumpedProcess, &mut Writer) -> Vec<u8>;

/// A file that is written from its start to its end.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u16(&mut self, number: u16) {
        self.0.extend(number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// Writes `bytes`. Returns their position.
    fn bytes(&mut self, bytes: &[u8]) -> u32 {
        let at = position(self.0.len());
        self.0.extend(bytes);
        at
    }

    /// Writes `text` with its length. Returns its position.
    fn text(&mut self, text: &str) -> u32 {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let at = self.bytes(&position(units.len()).to_le_bytes());
        self.bytes(&units);
        self.u16(0);
        at
    }

    /// Writes a size and a position, as streams refer to data.
    fn location(&mut self, size: usize, at: u32) {
        self.u32(position(size));
        self.u32(at);
    }
}

/// # Panics
/// If the minidump has more than 4 GiB.
fn position(len: usize) -> u32 {
    u32::try_from(len).expect("a small minidump")
}

impl DumpedProcess {
    /// The minidump.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        const HEADER: usize = 32;
        const ENTRY: usize = 12;
        let streams: [(u32, WriteStream); 6] = [
            (7, Self::system),
            (3, Self::thread_list),
            (4, Self::module_list),
            (6, Self::exception),
            (14, Self::unloaded_module_list),
            (24, Self::thread_name_list),
        ];
        let mut file = Writer(vec![0; HEADER + ENTRY * streams.len()]);
        let mut directory = Writer::default();
        directory.bytes(b"MDMP");
        directory.u32(0xa793);
        directory.u32(position(streams.len()));
        directory.u32(position(HEADER));
        directory.0.resize(HEADER, 0);
        for (kind, write) in streams {
            let stream = write(self, &mut file);
            directory.u32(kind);
            let at = file.bytes(&stream);
            directory.location(stream.len(), at);
        }
        file.0[..directory.0.len()].copy_from_slice(&directory.0);
        file.0
    }

    fn system(&self, _: &mut Writer) -> Vec<u8> {
        const LINUX: u32 = 0x8201;
        let mut stream = Writer::default();
        stream.u16(self.processor.layout().0);
        stream.0.resize(20, 0);
        stream.u32(LINUX);
        stream.0.resize(56, 0);
        stream.0
    }

    fn thread_list(&self, file: &mut Writer) -> Vec<u8> {
        let mut stream = Writer::default();
        stream.u32(position(self.threads.len()));
        for thread in &self.threads {
            let context = self.processor.context(&thread.registers);
            let (stack_at, context_at) = (file.bytes(&thread.stack), file.bytes(&context));
            stream.u32(thread.id);
            stream.bytes(&[0; 20]);
            stream.u64(thread.stack_address);
            stream.location(thread.stack.len(), stack_at);
            stream.location(context.len(), context_at);
        }
        stream.0
    }

    fn module_list(&self, file: &mut Writer) -> Vec<u8> {
        const ELF: u32 = 0x4270_454c;
        let mut stream = Writer::default();
        stream.u32(position(self.modules.len()));
        for module in &self.modules {
            let path = file.text(&module.path);
            let record = [&ELF.to_le_bytes(), &module.build_id[..]].concat();
            let record_at = file.bytes(&record);
            stream.u64(module.base);
            stream.u32(module.size);
            stream.u64(0);
            stream.u32(path);
            stream.bytes(&[0; 52]);
            stream.location(if module.build_id.is_empty() { 0 } else { record.len() }, record_at);
            stream.bytes(&[0; 24]);
        }
        stream.0
    }

    fn unloaded_module_list(&self, file: &mut Writer) -> Vec<u8> {
        let mut stream = Writer::default();
        stream.u32(12);
        stream.u32(24);
        stream.u32(position(self.unloaded_modules.len()));
        for module in &self.unloaded_modules {
            let path = file.text(&module.path);
            stream.u64(module.base);
            stream.u32(module.size);
            stream.u64(0);
            stream.u32(path);
        }
        stream.0
    }

    fn thread_name_list(&self, file: &mut Writer) -> Vec<u8> {
        let mut stream = Writer::default();
        stream.u32(position(self.thread_names.len()));
        for (id, name) in &self.thread_names {
            let name = file.text(name);
            stream.u32(*id);
            stream.u64(name.into());
        }
        stream.0
    }

    fn exception(&self, file: &mut Writer) -> Vec<u8> {
        const SEGMENTATION_FAULT: u32 = 11;
        let mut stream = Writer::default();
        let Some(crashed) = self.threads.first() else { return stream.0 };
        let context = self.processor.context(&crashed.registers);
        let context_at = file.bytes(&context);
        stream.u32(crashed.id);
        stream.u32(0);
        stream.u32(SEGMENTATION_FAULT);
        stream.0.resize(160, 0);
        stream.location(context.len(), context_at);
        stream.0
    }

    /// The first thread and the modules as a microdump of Breakpad for Android, with `prefix` before each line. It has
    /// the start of each build id only.
    #[must_use]
    pub fn to_microdump(&self, prefix: &str) -> String {
        let thread = self.threads.first().cloned().unwrap_or_default();
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        let (arch, width) = match self.processor {
            Processor::X86_64 => ("x86_64", 16),
            Processor::Arm64 => ("arm64", 16),
            Processor::Arm => ("arm", 8),
        };
        let address = |address: u64| format!("{address:0width$X}");
        let start = thread.stack_address;
        let header =
            ["0".to_owned(), address(start), address(start), address(thread.stack.len() as u64)].join(" ");
        let stack = (start..).step_by(384).zip(thread.stack.chunks(384));
        let modules = self.modules.iter().map(|module| {
            let mut id = module.build_id.clone();
            id.resize(16, 0);
            [3, 2, 1, 0, 5, 4, 7, 6]
                .iter()
                .enumerate()
                .for_each(|(to, from)| id[to] = module.build_id[*from]);
            let name = module.path.rsplit('/').next().unwrap_or_default();
            let (base, size) = (address(module.base), address(module.size.into()));
            format!("M {base} {} {size} {}0 {name}", address(0), digits(&id))
        });
        let lines = ["-----BEGIN BREAKPAD MICRODUMP-----".to_owned(), format!("O A {arch} 08 aarch64 a/b/c")]
            .into_iter()
            .chain(["R 0000000B SIGSEGV 00000000".to_owned(), format!("S {header}")])
            .chain(stack.map(|(start, bytes)| format!("S {} {}", address(start), digits(bytes))))
            .chain([format!("C {}", digits(&self.processor.context(&thread.registers)))])
            .chain(modules)
            .chain(["-----END BREAKPAD MICRODUMP-----".to_owned()]);
        lines.map(|line| format!("{prefix}{line}\n")).collect()
    }
}

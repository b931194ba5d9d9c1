//! Makes a minidump of a microdump, with the streams that [`dump`](crate::dump) reads. The layouts are those of
//! Windows' `minidumpapiset.h` and of Breakpad's `minidump_format.h`.

use symdex::debug_id;

use crate::error::Error;
use crate::microdump::{Microdump, Module, System};

/// The number that the only thread has.
const THREAD: u32 = 0;

/// A file, or a stream in it, that is written from its start to its end.
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

    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }

    /// Writes `bytes`. Returns how streams refer to them: their size and their position.
    fn bytes(&mut self, bytes: &[u8]) -> [u32; 2] {
        let at = number(self.0.len());
        self.0.extend(bytes);
        [number(bytes.len()), at]
    }

    /// Writes `text` with its length. Returns its position.
    fn text(&mut self, text: &str) -> u32 {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let [_, at] = self.bytes(&number(units.len()).to_le_bytes());
        self.bytes(&units);
        self.u16(0);
        at
    }

    fn location(&mut self, location: [u32; 2]) {
        location.into_iter().for_each(|number| self.u32(number));
    }
}

/// A position or a size. Minidumps with one that is too large are damaged.
fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Microdump {
    /// The minidump of the same process.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the processor is not supported.
    pub(crate) fn to_minidump(&self) -> Result<Vec<u8>, Error> {
        const HEADER: usize = 32;
        const ENTRY: usize = 12;
        let processor = self.processor()?;
        let mut file = Writer(vec![0; HEADER + ENTRY * 5]);
        let registers = file.bytes(&self.registers);
        let blocks: Vec<_> = self.memory.iter().map(|(at, bytes)| (*at, file.bytes(bytes))).collect();
        let streams = [
            (7, self.system.stream(processor, &mut file)),
            (3, threads(registers, blocks.first().copied().unwrap_or_default())),
            (4, modules(&self.modules, &mut file)),
            (5, memory(&blocks)),
            // Older versions of Breakpad state no signal.
            (6, exception(self.signal.unwrap_or_default(), registers)),
        ];
        let mut directory = Writer::default();
        directory.bytes(b"MDMP");
        directory.u32(0xa793);
        directory.u32(number(streams.len()));
        directory.u32(number(HEADER));
        directory.zeros(16);
        for (kind, stream) in streams {
            directory.u32(kind);
            directory.location(file.bytes(&stream.0));
        }
        file.0[..directory.0.len()].copy_from_slice(&directory.0);
        Ok(file.0)
    }

    /// The number of the processor. The registers of ARM64 have an older layout, which their flags state.
    fn processor(&self) -> Result<u16, Error> {
        let is_old = self.registers.get(3).is_some_and(|flags| flags & 0x80 != 0);
        match &*self.system.arch {
            "x86" => Ok(0),
            "x86_64" => Ok(9),
            "arm" => Ok(5),
            "arm64" if is_old => Ok(0x8003),
            "arm64" => Ok(12),
            arch => Err(Error::Unsupported {
                what: format!("a microdump of the processor `{arch}`; expected x86, x86_64, arm or arm64"),
            }),
        }
    }
}

impl System {
    fn stream(&self, processor: u16, file: &mut Writer) -> Writer {
        let Self { is_android, processors, version, .. } = self;
        // What `uname` says: the name of the system is before the release, and that of the hardware at the end.
        let version = if *is_android { version.clone() } else { format!("Linux {version} ?") };
        let mut stream = Writer::default();
        stream.u16(processor);
        stream.zeros(4);
        stream.bytes(&[*processors, 0]);
        stream.zeros(12);
        stream.u32(if *is_android { 0x8203 } else { 0x8201 });
        stream.u32(file.text(&version));
        stream.zeros(28);
        stream
    }
}

fn threads(registers: [u32; 2], (address, stack): (u64, [u32; 2])) -> Writer {
    let mut stream = Writer::default();
    stream.u32(1);
    stream.u32(THREAD);
    stream.zeros(20);
    stream.u64(address);
    stream.location(stack);
    stream.location(registers);
    stream
}

fn modules(modules: &[Module], file: &mut Writer) -> Writer {
    let mut by_address: Vec<_> = modules.iter().collect();
    by_address.sort_by_key(|module| module.base);
    let mut stream = Writer::default();
    stream.u32(number(modules.len()));
    for (at, Module { base, size, id, name }) in by_address.iter().enumerate() {
        // With packed relocations, the mapping of a library reaches into that of the next one.
        let room = by_address.get(at + 1).map_or(u64::MAX, |next| next.base - base);
        let path = file.text(name);
        let record = debug_id::build_id_start(id).map(|id| code_view(id.as_bytes(), name));
        stream.u64(*base);
        stream.u32(u32::try_from((*size).min(room)).unwrap_or(u32::MAX));
        stream.zeros(8);
        stream.u32(path);
        stream.zeros(52);
        stream.location(record.map_or([0, 0], |record| file.bytes(&record)));
        stream.zeros(24);
    }
    stream
}

/// The record that states the start of a build id, and that it is no more than that.
fn code_view(id: &[u8], name: &str) -> Vec<u8> {
    [b"RSDS", id, &[0; 4], name.as_bytes(), &[0]].concat()
}

fn memory(blocks: &[(u64, [u32; 2])]) -> Writer {
    let mut stream = Writer::default();
    stream.u32(number(blocks.len()));
    for (address, location) in blocks {
        stream.u64(*address);
        stream.location(*location);
    }
    stream
}

fn exception((signal, address): (u32, u64), registers: [u32; 2]) -> Writer {
    let mut stream = Writer::default();
    stream.u32(THREAD);
    stream.u32(0);
    stream.u32(signal);
    stream.zeros(12);
    stream.u64(address);
    stream.zeros(128);
    stream.location(registers);
    stream
}

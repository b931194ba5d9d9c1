//! Reads microdumps: what Breakpad writes to Android's log, or to standard error, in place of a minidump.
//!
//! ```text
//! F/google-breakpad(25655): -----BEGIN BREAKPAD MICRODUMP-----
//! F/google-breakpad(25655): O A arm 08 armv8l Nokia/TA-1025_00WW/PLE:7.1.1/NMF26F
//! F/google-breakpad(25655): R 00000005 SIGTRAP 4A7CB000
//! F/google-breakpad(25655): S 0 C9379C60 C9379000 00002000
//! F/google-breakpad(25655): S C9379000 0000000000000000...
//! F/google-breakpad(25655): C 0600004000000000...
//! F/google-breakpad(25655): M EAEB2000 00000000 0005F000 7AC50A488023F3DA8182906BDFFA72C10 linker
//! F/google-breakpad(25655): -----END BREAKPAD MICRODUMP-----
//! ```
//!
//! The registers are those of a minidump, byte for byte. [`Microdump::to_minidump`] makes one, so that both are read in
//! one place.

use memchr::memmem;

use crate::error::Error;
use crate::limits::ENTRIES;

const BEGIN: &str = "-----BEGIN BREAKPAD MICRODUMP-----";
const END: &str = "-----END BREAKPAD MICRODUMP-----";
/// How many blocks of memory are read. Breakpad writes one; lines that a log has lost leave gaps.
const BLOCKS: usize = 1024;
/// The tag of the lines in Android's log.
const TAG: &str = "google-breakpad";

/// The first microdump of a text.
#[derive(Default)]
pub(crate) struct Microdump {
    pub(crate) system: System,
    /// The number and the address of the signal.
    pub(crate) signal: Option<(u32, u64)>,
    /// The registers as a minidump has them.
    pub(crate) registers: Vec<u8>,
    /// The memory by address.
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
    pub(crate) modules: Vec<Module>,
    /// How many bytes of memory the header of the stack states.
    stack_size: u64,
    /// Whether lines are missing or damaged.
    pub(crate) is_cut: bool,
    /// The number of further microdumps in the text.
    pub(crate) others: usize,
}

/// The line `O`.
#[derive(Default)]
pub(crate) struct System {
    pub(crate) is_android: bool,
    /// The architecture of the process, in the words of Breakpad.
    pub(crate) arch: String,
    pub(crate) processors: u8,
    /// The build of Android, or what `uname` says of Linux.
    pub(crate) version: String,
}

/// A line `M`.
pub(crate) struct Module {
    pub(crate) base: u64,
    pub(crate) size: u64,
    /// The debug id of Breakpad.
    pub(crate) id: String,
    pub(crate) name: String,
}

/// Whether `file` has a microdump, and no frames. A log with the frames of a tombstone is a report.
pub(crate) fn is_microdump(file: &[u8]) -> bool {
    let is_frame = |at: usize| {
        let before = file.get(..at).unwrap_or_default().trim_ascii_end();
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && before.len().checked_sub(digits + 1).is_some_and(|at| before[at] == b'#')
    };
    memmem::find(file, BEGIN.as_bytes()).is_some() && !memmem::find_iter(file, b" pc ").any(is_frame)
}

/// A line of a log. Several processes can write to it at a time.
struct LogLine<'t> {
    is_tagged: bool,
    process: Option<u32>,
    text: &'t str,
}

impl<'t> LogLine<'t> {
    /// Reads a line with or without the prefix of Android's log: `F/google-breakpad( 3728): O A arm`, `01-25
    /// 09:57:54.139 F/google-breakpad(23467): O A arm`, `01-25 09:57:54.139 23467 23468 F google-breakpad: O A arm`.
    fn of(line: &'t str) -> Option<Self> {
        let Some((before, after)) = line.split_once(TAG) else {
            let text = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
            return Some(Self { is_tagged: false, process: None, text });
        };
        let (process, text) = after.split_once(": ")?;
        let process = process.trim_matches([' ', '(', ')']).parse().ok();
        // Process, thread and level.
        let process = process.or_else(|| before.split_whitespace().nth_back(2)?.parse().ok());
        Some(Self { is_tagged: true, process, text })
    }
}

impl Microdump {
    /// Reads the first microdump of `text`.
    pub(crate) fn read(text: &[u8]) -> Result<Self, Error> {
        let mut dump = Self { is_cut: true, ..Self::default() };
        let mut begun: Option<(bool, Option<u32>)> = None;
        let (mut is_open, mut is_damaged) = (false, false);
        for line in text.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            let Some(LogLine { is_tagged, process, text }) = LogLine::of(line.trim_end()) else { continue };
            let is_same = begun == Some((is_tagged, process));
            if text.contains(BEGIN) {
                dump.others += usize::from(begun.is_some());
                is_open = begun.is_none() || is_open && !is_same;
                begun = begun.or(Some((is_tagged, process)));
            } else if is_open && is_same && text.contains(END) {
                (is_open, dump.is_cut) = (false, false);
            } else if is_open && is_same {
                is_damaged |= dump.line(text).is_none();
            }
        }
        let bytes: u64 = dump.memory.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        dump.is_cut |= is_damaged || bytes < dump.stack_size;
        if dump.registers.is_empty() {
            let what = "the microdump has no registers; expected a line `C` of hexadecimal digits".to_owned();
            return Err(Error::Damaged { what });
        }
        Ok(dump)
    }

    /// Reads a line. Returns `None` if it is damaged.
    fn line(&mut self, line: &str) -> Option<()> {
        let (key, rest) = line.split_once(' ')?;
        let mut words = rest.split_ascii_whitespace();
        match key {
            "O" => {
                let (os, arch) = (words.next()?, words.next()?);
                let processors = u8::from_str_radix(words.next().unwrap_or_default(), 16).unwrap_or_default();
                // The name of the hardware is that of another architecture if the process is emulated.
                let version = words.skip(1).collect::<Vec<_>>().join(" ");
                self.system = System { is_android: os == "A", arch: arch.to_owned(), processors, version };
            }
            "R" => {
                let number = u32::try_from(hexadecimal(words.next()?)?).ok()?;
                self.signal = Some((number, words.nth(1).and_then(hexadecimal).unwrap_or_default()));
            }
            "S" => match rest.split_ascii_whitespace().collect::<Vec<_>>()[..] {
                ["0", _stack_pointer, _start, size] => self.stack_size = hexadecimal(size)?,
                [address, digits] => self.add_memory(hexadecimal(address)?, bytes(digits)?)?,
                _ => return None,
            },
            "C" => self.registers = bytes(words.next()?)?,
            "M" if self.modules.len() <= ENTRIES => {
                let (base, _offset, size) =
                    (hexadecimal(words.next()?)?, words.next()?, hexadecimal(words.next()?)?);
                let id = words.next()?.to_owned();
                let name = words.collect::<Vec<_>>().join(" ");
                self.modules.push(Module { base, size, id, name });
            }
            _ => {}
        }
        Some(())
    }

    /// Adds memory. Returns `None` if it ends past the end of the address space, or after too many gaps.
    fn add_memory(&mut self, address: u64, bytes: Vec<u8>) -> Option<()> {
        address.checked_add(bytes.len() as u64)?;
        let has_room = self.memory.len() < BLOCKS;
        match self.memory.last_mut() {
            Some((start, last)) if *start + last.len() as u64 == address => last.extend(bytes),
            _ if has_room => self.memory.push((address, bytes)),
            _ => return None,
        }
        Some(())
    }
}

fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// Two hexadecimal digits for each byte.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_whole = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    digits.as_bytes().chunks(2).map(byte).collect::<Option<Vec<_>>>().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a microdump with `prefix` before each.
    fn text(prefix: &str) -> String {
        let lines = [
            BEGIN,
            "V Chrome_Android:49.0.2623.15",
            "O A x86 04 i686 asus/WW_Z00A: user",
            "R 0000000B SIGSEGV DEADBEEF",
            "G UNKNOWN",
            "S 0 1010 1000 00000006",
            "S 1000 01020304",
            "S 1004 0506",
            "C 0F00010000",
            "M 2000 00000000 00001000 F1D443198CFEFCB1FDD91940941D39CE0 libc utils.so",
            END,
        ];
        lines.map(|line| format!("{prefix}{line}\r\n")).concat()
    }

    #[test]
    fn lines_are_read_with_every_prefix_of_the_log() {
        for prefix in [
            "",
            "> ",
            "F/google-breakpad( 3728): ",
            "F/google-breakpad: ",
            "google-breakpad: ",
            "01-25 09:57:54.139 F/google-breakpad(23467): ",
            "01-25 09:57:54.139 23467 23468 F google-breakpad: ",
            "2026-01-25 09:57:54.139 10123 23467 23468 F google-breakpad: ",
        ] {
            let noise = "01-25 09:57:54.140 E/other(1): S 1006 07\n\
                         01-25 09:57:54.140 99 99 F google-breakpad: S 9 07\n";
            let text = text(prefix).replace("\r\nG", &format!("\r\n{noise}G"));
            assert!(is_microdump(text.as_bytes()), "{prefix:?}");
            let dump = Microdump::read(text.as_bytes()).expect("intact");
            assert_eq!((dump.is_cut, dump.others), (false, 0), "{prefix:?}");
            assert!(dump.system.is_android && dump.system.processors == 4, "{prefix:?}");
            assert_eq!((&*dump.system.arch, &*dump.system.version), ("x86", "asus/WW_Z00A: user"));
            assert_eq!(dump.signal, Some((11, 0xdead_beef)));
            assert_eq!(dump.memory, [(0x1000, vec![1, 2, 3, 4, 5, 6])], "{prefix:?}");
            assert_eq!(dump.registers, [0xf, 0, 1, 0, 0]);
            assert_eq!(dump.modules[0].name, "libc utils.so");
        }
    }

    #[test]
    fn what_is_missing_is_known() {
        let read = |text: &str| Microdump::read(text.as_bytes()).expect("registers");
        let whole = text("");
        assert!(read(&whole.replace(END, "")).is_cut, "the log ends");
        assert!(read(&whole.replace("S 1004 0506\r\n", "")).is_cut, "a line of memory is missing");
        assert!(read(&whole.replace("S 1004 0506", "S 1004 050")).is_cut, "a line is cut");
        assert_eq!(read(&(whole.clone() + &whole + &whole)).others, 2);
        let second = text("F/google-breakpad(2): ");
        let mixed: String = text("F/google-breakpad(1): ")
            .lines()
            .zip(second.lines())
            .map(|(one, other)| format!("{one}\n{}\n", other.replace("S 1000 01020304", "S 1000 ff")))
            .collect();
        let first = read(&mixed);
        assert_eq!((first.is_cut, first.others, first.memory[0].1.len()), (false, 1, 6));
        let gaps: String = (0..2000).map(|line| format!("S {:x} 00\r\n", 0x2000 + 2 * line)).collect();
        let gaps = read(&whole.replace("C 0F", &format!("{gaps}C 0F")));
        assert_eq!((gaps.is_cut, gaps.memory.len()), (true, BLOCKS));
        let none = Microdump::read(whole.replace("\nC 0F00010000", "").as_bytes()).err();
        assert!(none.is_some_and(|error| error.to_string().contains("no registers")));
        assert!(!is_microdump(format!("{whole}F/DEBUG: #00 pc 0001 /lib.so\n").as_bytes()));
        assert!(is_microdump(format!("{whole} at pc 0001 #x pc 1\n").as_bytes()));
    }
}

//! What Go's runtime prints when a program crashes: the signal with its `pc=0x...`, then goroutines, with two lines for
//! each function.
//!
//! Go's own functions have their names, files and lines in the report, even if the executable is stripped. `+0x1d` is
//! the distance from the start of the function, and with `GOTRACEBACK=system` a `pc=0x...` follows. Only C functions
//! have no more than an address. The report states no images; see [`mapped_or_executable`].

use memchr::memmem::{find, rfind};

use super::{APPENDED, Dialect, FrameLine, has_frame, mapped, mapped_or_executable, parse};
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::Format;
use crate::report::{AddressKind, Report, SymbolDetail};
use crate::text::{Cursor, lossy};

/// The format of Go's crashes.
pub(crate) const FORMAT: Format = Format {
    name: "go-panic",
    description: "Crashes of Go programs: their frames of C, with `--assume executable=FILE`",
    example: "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x483c5d]",
    marks: &["goroutine ", "panic: ", "[running]:"],
    recognises: |text| has_frame(text, &Dialect { frame: marked, ..DIALECT }),
    parse: |text| Ok(parse(text, &DIALECT)),
    existing_symbols: Some(existing_symbols),
    edits: APPENDED,
    ..Format::TEXT
};

const DIALECT: Dialect = Dialect {
    frame: |line| marked(line).or_else(|| bare(line)),
    images: mapped_or_executable,
    title,
    is_split_by_titles: true,
    begins_with_instruction: |_| true,
    ..Dialect::PLAIN
};

/// Reads a line that only Go prints: the signal, the location of a function, or a C function without a name.
fn marked(line: &[u8]) -> Option<FrameLine<'_>> {
    let signal = signal(line).map(|address| (address, AddressKind::ProgramCounter));
    let (address, kind) = match signal {
        Some(signal) => signal,
        None => {
            let Some(at) = find(line, b"non-Go function at pc=") else {
                return Location::of(line)?.frame(line);
            };
            (hexadecimal(&line[at..], b"pc=")?, AddressKind::ReturnAddress)
        }
    };
    Some(FrameLine::of_address(line, None, address, kind, mapped(address)))
}

/// Reads `pc=0x7f51400f302d`, which is below the name of a C function.
fn bare(line: &[u8]) -> Option<FrameLine<'_>> {
    let address = hexadecimal(line.trim_ascii_start().strip_prefix(b"pc=").map(|_| line)?, b"pc=")?;
    Some(FrameLine::of_address(line, None, address, AddressKind::ReturnAddress, mapped(address)))
}

/// Reads the address in `[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x483c5d]`, and in
/// `PC=0x7f51400f302d m=0 sigcode=1` of a signal in C.
fn signal(line: &[u8]) -> Option<u64> {
    if let Some(at) = find(line, b"[signal ") {
        return hexadecimal(&line[at..], b" pc=");
    }
    let at = find(line, b"PC=0x").filter(|at| find(&line[*at..], b" m=").is_some())?;
    hexadecimal(&line[at..], b"PC=")
}

/// The number after `key`.
fn hexadecimal(text: &[u8], key: &[u8]) -> Option<u64> {
    Cursor::at_byte(text, find(text, key)? + key.len()).hexadecimal()
}

/// The line below the name of a Go function: `\t/src/main.go:42 +0x1d fp=0xc000 sp=0xc000 pc=0x47ed1d`.
struct Location<'l> {
    file: &'l [u8],
    line: u32,
    /// The address; 0 if the report has only the distance from the start of the function.
    address: u64,
}

impl<'l> Location<'l> {
    fn of(line: &'l [u8]) -> Option<Self> {
        let plus = find(line, b" +0x")?;
        Cursor::at_byte(line, plus + b" +".len()).hexadecimal()?;
        let location = &line[..plus];
        let colon = memchr::memrchr(b':', location)?;
        let number = std::str::from_utf8(&location[colon + 1..]).ok()?.parse().ok()?;
        // A log can have a prefix before the tab.
        let start = memchr::memrchr(b'\t', &location[..colon]).map_or(0, |tab| tab + 1);
        let file = location[start..colon].trim_ascii_start();
        let address = hexadecimal(&line[plus..], b" pc=").unwrap_or_default();
        (!file.is_empty()).then_some(Self { file, line: number, address })
    }

    fn frame(self, line: &[u8]) -> Option<FrameLine<'_>> {
        let (kind, image) = (AddressKind::ReturnAddress, mapped(self.address));
        let mut frame = FrameLine::of_address(line, None, self.address, kind, image);
        let own = if self.file == NO_FILE { SymbolDetail::Function } else { SymbolDetail::Line };
        frame.detail = frame.detail.max(own);
        Some(frame)
    }
}

/// The placeholder for an unknown file.
const NO_FILE: &[u8] = b"??";

/// Reads `goroutine 1 [running]:` and `runtime stack:`.
fn title(line: &[u8]) -> Option<(String, bool)> {
    let line = line.strip_suffix(b":")?;
    let start = find(line, b"goroutine ").filter(|_| line.ends_with(b"]"));
    let start =
        start.or_else(|| line.ends_with(b"runtime stack").then(|| line.len() - b"runtime stack".len()))?;
    let name = &line[start..];
    Some((lossy(name), rfind(name, b"[running").is_some()))
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let Some(Location { file, line, .. }) = Location::of(report.at(frame.site)) else {
            return ExistingSymbol::default();
        };
        let (file, line) = Some((lossy(file), line)).filter(|_| file != NO_FILE).unzip();
        let before = report.text().get(..frame.site.start()).unwrap_or_default();
        ExistingSymbol { function: function_above(before), file, line, offset: None }
    })
}

/// The function in the last line of `text`: `main.f(0x1, {0x2})` or `created by main.main in goroutine 1`.
fn function_above(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end();
    let line = &text[memchr::memrchr(b'\n', text).map_or(0, |end| end + 1)..];
    let name = match find(line, b"created by ") {
        Some(at) => {
            let name = &line[at + b"created by ".len()..];
            &name[..find(name, b" in goroutine ").unwrap_or(name.len())]
        }
        None => {
            // The receiver of a method stands in parentheses, too: `main.(*T).f(0x1)`.
            let end = memchr::memrchr(b'(', line).unwrap_or(line.len());
            line[..end].rsplit(|byte| byte.is_ascii_whitespace()).next()?
        }
    };
    (!name.is_empty()).then(|| lossy(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRASH: &[u8] = b"fatal error: unexpected signal during runtime execution
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x7f51400f302d]

runtime stack:
runtime.throw({0x4b2f3d?, 0x0?})
\t/usr/local/go/src/runtime/panic.go:1047 +0x5d fp=0x7ffc10 sp=0x7ffbe0 pc=0x42f1dd
non-Go function at pc=0x7f5140250080

goroutine 1 gp=0xc000002380 m=0 [syscall]:
main._Cfunc_draw()
\t??:0 +0x3c fp=0xc000 sp=0xb000 pc=0x45b6c0
main.(*Canvas).paint(...)
\t/src/canvas.go:12
main.main()
\t/src/main.go:5 +0x1d
created by main.start in goroutine 7
\t/src/main.go:9 +0x25
";

    #[test]
    fn frames_of_go_have_their_line_and_those_of_c_an_address() {
        let report = Report::parse(CRASH).expect("a report");
        assert_eq!(report.format_name(), "go-panic");
        let read: Vec<_> = report
            .threads()
            .iter()
            .map(|thread| {
                let frame = |frame: &crate::report::Frame| (frame.address, frame.kind, frame.detail);
                (thread.name.as_str(), thread.frames.iter().map(frame).collect::<Vec<_>>())
            })
            .collect();
        let (pc, call) = (AddressKind::ProgramCounter, AddressKind::ReturnAddress);
        let (bare, named, whole) = (SymbolDetail::AddressOnly, SymbolDetail::Function, SymbolDetail::Line);
        assert_eq!(
            read,
            [
                ("", vec![(0x7f51_400f_302d, pc, bare)]),
                ("runtime stack", vec![(0x42_f1dd, pc, whole), (0x7f51_4025_0080, call, bare)]),
                (
                    "goroutine 1 gp=0xc000002380 m=0 [syscall]",
                    vec![(0x45_b6c0, pc, named), (0, call, whole), (0, call, whole)]
                ),
            ]
        );
        let known = report.existing_symbols();
        let functions: Vec<_> = known.iter().flatten().map(|symbol| symbol.function.as_deref()).collect();
        let (throw, draw) = (Some("runtime.throw"), Some("main._Cfunc_draw"));
        assert_eq!(functions, [None, throw, None, draw, Some("main.main"), Some("main.start")]);
        assert_eq!((known[2][0].line, known[2][1].line), (None, Some(5)));
    }

    #[test]
    fn a_signal_in_c_has_its_address_in_capitals() {
        assert_eq!(signal(b"PC=0x1a1090d0e m=0 sigcode=1 addr=0x20"), Some(0x1_a109_0d0e));
        assert_eq!(signal(b"    pc = 0x00000001"), None);
        assert_eq!(signal(b"PC=0x1a1090d0e"), None);
        assert!(bare(b"\tpc=0x12").is_some() && bare(b"x pc=0x12").is_none() && marked(b"pc=0x12").is_none());
    }
}

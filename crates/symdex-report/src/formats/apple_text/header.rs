//! Reads the header of Apple's text reports: lines such as `Process:  MyApp [42]`.

use crate::info::{Exception, ReportInfo, name_and_pid, set};
use crate::text::lossy_text;

/// Reads header lines into a [`ReportInfo`].
#[derive(Default)]
pub(crate) struct HeaderReader {
    info: ReportInfo,
    /// The section of several lines that is being read.
    section: Option<Section>,
}

/// A section whose text stands on the lines after its title.
#[derive(Clone, Copy)]
enum Section {
    ApplicationInformation,
    KernelTriage,
    VmRegion,
}

impl Section {
    /// Whether `line` belongs to the section. Memory regions are indented, and an arrow marks where the address lies;
    /// fields of the header can follow without an empty line. Other sections have any text.
    fn has(self, line: &[u8]) -> bool {
        match self {
            Self::VmRegion => line.starts_with(b" ") || line.starts_with(b"\t") || line.starts_with(b"--"),
            Self::ApplicationInformation | Self::KernelTriage => true,
        }
    }
}

/// The longest text of a section that is read, in bytes.
const MAX_SECTION: usize = 64 * 1024;

impl HeaderReader {
    /// Reads a line that is not a frame.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            self.section = None;
            return;
        }
        if let Some(section) = self.section.filter(|section| section.has(line)) {
            self.more(section, line);
            return;
        }
        self.section = None;
        let Some(colon) = memchr::memchr(b':', line) else { return };
        self.field(&line[..colon], &lossy_text(line[colon + 1..].trim_ascii()));
    }

    pub(crate) fn finish(self) -> ReportInfo {
        self.info
    }

    fn field(&mut self, key: &[u8], value: &str) {
        let info = &mut self.info;
        let field = match key {
            b"Incident Identifier" => &mut info.incident,
            b"CrashReporter Key" | b"Anonymous UUID" => &mut info.reporter_key,
            b"Hardware Model" | b"Hardware model" => &mut info.hardware_model,
            b"Path" => &mut info.path,
            b"Identifier" => &mut info.identifier,
            b"Version" => &mut info.version,
            b"Code Type" | b"Architecture" => &mut info.code_type,
            b"Role" => &mut info.role,
            b"Coalition" => &mut info.coalition,
            b"Date/Time" => &mut info.time,
            b"Launch Time" => &mut info.launch_time,
            b"OS Version" => &mut info.os,
            b"Release Type" => &mut info.release_type,
            b"Baseband Version" => &mut info.baseband_version,
            b"Termination Reason" | b"Termination Signal" => &mut info.termination,
            b"Terminating Process" => &mut info.terminating_process,
            b"Process" | b"Command" => return process(value, &mut info.process, &mut info.pid),
            b"Parent Process" | b"Parent" => {
                return process(value, &mut info.parent_process, &mut info.parent_pid);
            }
            b"Application Specific Information" => {
                return self.begin(Section::ApplicationInformation, value);
            }
            b"Fatal Exception" => return set(&mut info.exception().kind, value),
            b"Kernel Triage" => return self.begin(Section::KernelTriage, value),
            b"VM Region Info" => return self.begin(Section::VmRegion, value),
            other => match other.strip_prefix(b"Exception ") {
                Some(key) => return exception(key, value, info.exception()),
                None => return,
            },
        };
        set(field, value);
    }

    fn begin(&mut self, section: Section, value: &str) {
        self.section = Some(section);
        set(self.text(section), value);
    }

    fn more(&mut self, section: Section, line: &[u8]) {
        let text = self.text(section).get_or_insert_default();
        if text.len() + line.len() < MAX_SECTION {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&lossy_text(line));
        }
    }

    fn text(&mut self, section: Section) -> &mut Option<String> {
        match section {
            Section::ApplicationInformation => &mut self.info.application_information,
            Section::KernelTriage => &mut self.info.kernel_triage,
            Section::VmRegion => &mut self.info.vm_region,
        }
    }
}

fn process(value: &str, name: &mut Option<String>, pid: &mut Option<u64>) {
    if name.is_none() {
        let (text, number) = name_and_pid(value);
        set(name, text);
        *pid = number;
    }
}

/// Reads a line of the exception. `key` is the text between `Exception ` and the colon.
fn exception(key: &[u8], value: &str, exception: &mut Exception) {
    match key {
        b"Type" if exception.kind.is_none() => {
            let split = value.strip_suffix(')').and_then(|value| value.rsplit_once(" ("));
            let (kind, signal) = split.unwrap_or((value, ""));
            set(&mut exception.kind, kind);
            set(&mut exception.signal, signal);
        }
        b"Subtype" => set(&mut exception.subtype, value),
        // macOS writes two lines of codes; the first one is the subtype.
        b"Codes" | b"Code" => match exception.codes.take() {
            Some(first) => {
                set(&mut exception.subtype, first);
                exception.codes = Some(value.to_owned());
            }
            None => set(&mut exception.codes, value),
        },
        b"Note" => set(&mut exception.note, value),
        b"Message" | b"Reason" => set(&mut exception.reason, value),
        _ => {}
    }
}

/// Splits `main  Dispatch queue: com.apple.main-thread` into the thread's name and its dispatch queue.
pub(crate) fn label_and_queue(text: &str) -> (Option<String>, Option<String>) {
    let (label, queue) = text.split_once("Dispatch queue:").unwrap_or((text, ""));
    let known = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    (known(label), known(queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_an_exception_are_read() {
        let read = |text: &str| {
            let mut reader = HeaderReader::default();
            text.lines().for_each(|line| reader.line(line.as_bytes()));
            reader.finish()
        };
        let of = |text: &str| Some(text.to_owned());
        let expected = Exception {
            kind: of("EXC_BAD_ACCESS"),
            signal: of("SIGSEGV"),
            subtype: of("KERN_INVALID_ADDRESS at 0x1"),
            codes: of("0x1, 0x1"),
            ..Exception::default()
        };
        let mac = "Exception Type:  EXC_BAD_ACCESS (SIGSEGV)\nException Codes: KERN_INVALID_ADDRESS at 0x1\n\
                   Exception Codes: 0x1, 0x1";
        let ios = "Exception Type: EXC_BAD_ACCESS (SIGSEGV)\nException Subtype: KERN_INVALID_ADDRESS at 0x1\n\
                   Exception Codes: 0x1, 0x1";
        assert_eq!(read(mac).exception.as_ref(), Some(&expected));
        assert_eq!(read(ios).exception.as_ref(), Some(&expected));
        let text = "Process:  A b [7]\nVersion: ???\n\nApplication Specific Information:\nabort() called\n\
                    Path: /x\n\nPath: /y";
        let info = read(text);
        assert_eq!((info.process, info.pid, info.version, info.path), (of("A b"), Some(7), None, of("/y")));
        assert_eq!(info.application_information, of("abort() called\nPath: /x"));
    }

    #[test]
    fn memory_regions_end_with_the_next_field() {
        let mut reader = HeaderReader::default();
        let text = "VM Region Info: 0 is not in any region.\n      REGION TYPE  START - END\n      \
                    UNUSED SPACE AT START\n--->  \n      __TEXT  1000-2000\nException Codes: 0x1, 0x0\n\
                    Termination Reason: SIGNAL 11 Segmentation fault: 11\nTriggered by Thread:  0\n";
        text.lines().for_each(|line| reader.line(line.as_bytes()));
        let info = reader.finish();
        let region = "0 is not in any region.\n      REGION TYPE  START - END\n      UNUSED SPACE AT START\n\
                      --->  \n      __TEXT  1000-2000";
        assert_eq!(info.vm_region.as_deref(), Some(region));
        assert_eq!(info.exception.and_then(|exception| exception.codes).as_deref(), Some("0x1, 0x0"));
        assert_eq!(info.termination.as_deref(), Some("SIGNAL 11 Segmentation fault: 11"));
    }

    #[test]
    fn a_thread_has_a_name_and_a_queue() {
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(
            label_and_queue("  Dispatch queue: com.apple.main-thread"),
            (None, of("com.apple.main-thread"))
        );
        assert_eq!(label_and_queue(" main Dispatch queue: q"), (of("main"), of("q")));
        assert_eq!(label_and_queue(" worker"), (of("worker"), None));
    }
}

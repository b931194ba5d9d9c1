//! Reads the header of a native report: the lines before the first stack.

use memchr::memmem::find;

use crate::info::{Exception, ReportInfo, set};
use crate::text::lossy;

/// Reads one line into `info`. A log can have a prefix, so the keys are searched in the whole line.
pub(super) fn read(line: &[u8], info: &mut ReportInfo) {
    let after = |key: &str| find(line, key.as_bytes()).map(|at| lossy(line[at + key.len()..].trim_ascii()));
    let unquoted = |text: String| text.trim_matches('\'').to_owned();
    for (keys, field) in [
        (&["Build fingerprint: ", "Build info:", "OS version: "][..], &mut info.os),
        (&["ABI: ", "CpuAbi:"], &mut info.code_type),
        (&["Timestamp:", "Crash time: "], &mut info.time),
        (&["Start time: "], &mut info.launch_time),
        (&["Device info:", "Model: "], &mut info.hardware_model),
        (&["App ID: ", "Module name:"], &mut info.identifier),
        (&["App version: "], &mut info.version),
        (&["Cmdline: "], &mut info.path),
    ] {
        if let Some(value) = keys.iter().find_map(|key| after(key)) {
            set(field, unquoted(value));
        }
    }
    if let Some((pid, name)) = after("pid: ").zip(after("  >>> ")) {
        set(&mut info.process, name.trim_end_matches(" <<<"));
        info.pid = info.pid.or_else(|| number(&pid));
    }
    if let Some(pid) = after("Pid:").filter(|_| info.pid.is_none()) {
        info.pid = number(&pid);
    }
    exception(line, info);
}

/// Reads the exception: `signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x1c`,
/// `Reason:Signal:SIGSEGV(SEGV_MAPERR)@0x1c`, `Abort message: '...'` or `==12==ERROR: AddressSanitizer:
/// heap-use-after-free on address ...`.
fn exception(line: &[u8], info: &mut ReportInfo) {
    let after = |key: &str| find(line, key.as_bytes()).map(|at| lossy(line[at + key.len()..].trim_ascii()));
    let is_signal = |rest: &String| rest.starts_with(|first: char| first.is_ascii_digit());
    if let Some(signal) = after("signal ").filter(is_signal) {
        let (head, codes) = signal.split_once(", ").unwrap_or((&signal, ""));
        let name = head.split_once('(').map_or("", |(_, name)| name.trim_end_matches(')'));
        set(&mut info.exception().kind, name);
        set(&mut info.exception().signal, name);
        set(&mut info.exception().codes, codes);
    }
    if let Some(signal) = after("Reason:Signal:") {
        let end = signal.find(['(', '@', ' ']).unwrap_or(signal.len());
        set(&mut info.exception().kind, &signal[..end]);
        set(&mut info.exception().signal, &signal[..end]);
        set(&mut info.exception().codes, &signal[end..]);
    }
    for key in ["Abort message: ", "Cause: ", "LastFatalMessage:"] {
        if let Some(reason) = after(key) {
            set(&mut info.exception().reason, reason.trim_matches('\''));
        }
    }
    if let Some(error) = after("ERROR: ").filter(|error| error.contains("Sanitizer: ")) {
        let (kind, codes) = error.split_once(" on ").unwrap_or((&error, ""));
        set(&mut info.exception().kind, kind);
        set(&mut info.exception().codes, codes);
        let pid = after("==").and_then(|rest| number(&rest));
        info.pid = info.pid.or(pid);
    }
    let is_sanitizer =
        |exception: &Exception| exception.kind.as_ref().is_some_and(|kind| kind.contains("Sanitizer: "));
    if info.exception.as_ref().is_some_and(is_sanitizer) {
        for key in ["READ of size ", "WRITE of size ", "The signal is caused by a "] {
            if let Some(access) = after(key) {
                set(&mut info.exception().subtype, format!("{key}{access}"));
            }
        }
    }
}

/// Returns the number that `text` begins with.
pub(super) fn number(text: &str) -> Option<u64> {
    text[..text.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_that_a_sanitizer_reports_is_the_subtype() {
        let subtype = |text: &str| {
            let mut info = ReportInfo::default();
            text.lines().for_each(|line| read(line.as_bytes(), &mut info));
            info.exception.and_then(|exception| exception.subtype)
        };
        let error = "==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x55";
        let access = "WRITE of size 8 at 0x602 thread T0";
        assert_eq!(subtype(&format!("{error}\n{access}")).as_deref(), Some(access));
        assert_eq!(subtype(&format!("{error}\n I/asan: {access}")).as_deref(), Some(access));
        let signal = "The signal is caused by a READ memory access.";
        assert_eq!(subtype(&format!("{error}\n==7=={signal}")).as_deref(), Some(signal));
        assert_eq!(subtype(access), None);
    }

    #[test]
    fn headers_of_each_writer_are_read() {
        let read_all = |text: &str| {
            let mut info = ReportInfo::default();
            text.lines().for_each(|line| read(line.as_bytes(), &mut info));
            let exception = info.exception.clone().unwrap_or_default();
            let [process, os, kind, codes, reason] =
                [info.process, info.os, exception.kind, exception.codes, exception.reason]
                    .map(Option::unwrap_or_default);
            [process, info.pid.map(|pid| pid.to_string()).unwrap_or_default(), os, kind, codes, reason]
                .join("|")
        };
        let android = "E DEBUG : Build fingerprint: 'google/x:14/U'\n\
                       E DEBUG : pid: 7, tid: 9, name: worker  >>> com.app <<<\n\
                       E DEBUG : signal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------\n\
                       E DEBUG : Abort message: 'no'";
        assert_eq!(
            read_all(android),
            "com.app|7|google/x:14/U|SIGABRT|code -1 (SI_QUEUE), fault addr --------|no"
        );
        let harmony = "Build info:ROM 5.0\nPid:12\nReason:Signal:SIGSEGV(SEGV_MAPERR)@0x1c";
        assert_eq!(read_all(harmony), "|12|ROM 5.0|SIGSEGV|(SEGV_MAPERR)@0x1c|");
        let sanitizer = "==12==ERROR: AddressSanitizer: heap-use-after-free on address 0x6020 at pc 0x55";
        assert_eq!(
            read_all(sanitizer),
            "|12||AddressSanitizer: heap-use-after-free|address 0x6020 at pc 0x55|"
        );
    }
}

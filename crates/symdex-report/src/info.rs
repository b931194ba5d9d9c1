//! The header of a report: process, system and exception.

use serde::Serialize;

/// The header of a report. A field is `None` if the report does not state it.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportInfo {
    /// The id of the report itself.
    pub incident: Option<String>,
    /// The id that the reporter gives the device or the installation.
    pub reporter_key: Option<String>,
    /// The model of the device: `iPhone14,2`.
    pub hardware_model: Option<String>,
    /// The name of the process.
    pub process: Option<String>,
    /// The id of the process.
    pub pid: Option<u64>,
    /// The path of the executable.
    pub path: Option<String>,
    /// The identifier of the app: `com.company.App`.
    pub identifier: Option<String>,
    /// The version of the app, as the report writes it. Apple's reports write `1.0 (42)`, with the build number in
    /// parentheses.
    pub version: Option<String>,
    /// The architecture of the process: `ARM-64`, `arm64-v8a`.
    pub code_type: Option<String>,
    /// The role of the process: `Foreground`.
    pub role: Option<String>,
    /// The name of the parent process.
    pub parent_process: Option<String>,
    /// The id of the parent process.
    pub parent_pid: Option<u64>,
    /// The name and the number of the process's coalition: `com.company.App [512]`.
    pub coalition: Option<String>,
    /// The time of the report, as the report writes it.
    pub time: Option<String>,
    /// The time at which the process started, as the report writes it.
    pub launch_time: Option<String>,
    /// The name, version and build of the system: `iPhone OS 15.5 (19F77)`.
    pub os: Option<String>,
    /// The release type of the system: `User`, `Internal`, `Beta`.
    pub release_type: Option<String>,
    /// The version of the modem's firmware.
    pub baseband_version: Option<String>,
    /// The exception or signal that ended the process.
    pub exception: Option<Exception>,
    /// The reason of the termination: `SIGNAL 11 Segmentation fault: 11`.
    pub termination: Option<String>,
    /// The process that ended this one: `exc handler [42]`.
    pub terminating_process: Option<String>,
    /// The memory regions around the faulting address.
    pub vm_region: Option<String>,
    /// Messages that libraries of the process left for the report: `abort() called`.
    pub application_information: Option<String>,
    /// Messages that the kernel left for the report.
    pub kernel_triage: Option<String>,
}

/// The exception or signal that ended a process.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exception {
    /// The type: `EXC_BAD_ACCESS`, `SIGSEGV`, `AddressSanitizer: heap-use-after-free`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The signal: `SIGSEGV`.
    pub signal: Option<String>,
    /// The subtype: `KERN_INVALID_ADDRESS at 0x0000000000000000`. For sanitizers, the access: `WRITE of size 8 at
    /// 0x602000000014 thread T0`.
    pub subtype: Option<String>,
    /// The codes, as the report writes them.
    pub codes: Option<String>,
    /// The note: `EXC_CORPSE_NOTIFY`.
    pub note: Option<String>,
    /// The reason of a thrown exception, or the message of an abort.
    pub reason: Option<String>,
}

impl ReportInfo {
    /// Returns the exception, and creates an empty one if there is none.
    pub(crate) fn exception(&mut self) -> &mut Exception {
        self.exception.get_or_insert_default()
    }
}

/// Sets `field` to `value`. It does nothing if the field is set, or the value is empty or a placeholder.
pub(crate) fn set(field: &mut Option<String>, value: impl Into<String>) {
    let value = value.into();
    if field.is_none() && !matches!(value.as_str(), "" | "???") {
        *field = Some(value);
    }
}

/// Splits `launchd [1]` into `launchd` and `1`.
pub(crate) fn name_and_pid(text: &str) -> (&str, Option<u64>) {
    let split = text.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
    let split = split.and_then(|(name, pid)| Some((name, pid.parse().ok()?)));
    split.map_or((text, None), |(name, pid)| (name, Some(pid)))
}

/// The name of the Mach exception with this number.
pub(crate) fn mach_exception(number: u64) -> Option<&'static str> {
    const NAMES: [&str; 13] = [
        "EXC_BAD_ACCESS",
        "EXC_BAD_INSTRUCTION",
        "EXC_ARITHMETIC",
        "EXC_EMULATION",
        "EXC_SOFTWARE",
        "EXC_BREAKPOINT",
        "EXC_SYSCALL",
        "EXC_MACH_SYSCALL",
        "EXC_RPC_ALERT",
        "EXC_CRASH",
        "EXC_RESOURCE",
        "EXC_GUARD",
        "EXC_CORPSE_NOTIFY",
    ];
    NAMES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

/// The name of the signal with this number on Apple's systems.
pub(crate) fn signal(number: u64) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGEMT", "SIGFPE", "SIGKILL",
        "SIGBUS", "SIGSEGV", "SIGSYS", "SIGPIPE", "SIGALRM", "SIGTERM",
    ];
    NAMES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_apples_headers() {
        assert_eq!((mach_exception(1), mach_exception(10)), (Some("EXC_BAD_ACCESS"), Some("EXC_CRASH")));
        assert_eq!((mach_exception(0), mach_exception(14)), (None, None));
        assert_eq!((signal(6), signal(11), signal(99)), (Some("SIGABRT"), Some("SIGSEGV"), None));
    }

    #[test]
    fn a_process_has_a_name_and_a_number() {
        assert_eq!(name_and_pid("My App [12]"), ("My App", Some(12)));
        assert_eq!(name_and_pid("My [App]"), ("My [App]", None));
    }
}

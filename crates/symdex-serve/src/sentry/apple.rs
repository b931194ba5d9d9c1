//! Crash reports as requests: Apple's text (`.crash`) and JSON (`.ips`).

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;
use symdex_report::{Frame as ReportFrame, Report, ReportImage, Thread, apple_uuid};

use super::modules::Module;
use super::request::{AddrMode, Frame, Request, Stacktrace};
use super::symbolicate::Symbolicated;
use crate::v1::Address;

/// The formats of reports that are read, as [`Report::format_name`] has them.
const FORMATS: [&str; 2] = ["apple-crash", "apple-ips"];

/// What a crash report says about its crash.
#[derive(Serialize)]
pub(super) struct CrashInfo {
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    system_info: SystemInfo,
    crashed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    crash_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crash_details: Option<String>,
}

/// The system that a process ran on. Members that the report does not state are empty.
#[derive(Default, Serialize)]
struct SystemInfo {
    os_name: String,
    os_version: String,
    os_build: String,
    cpu_arch: String,
    device_model: String,
}

/// Reads a crash report.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read(text: &[u8]) -> Result<(Request, CrashInfo), String> {
    let report =
        Report::parse(text).map_err(|error| format!("failed to parse apple crash report: {error}"))?;
    let format = report.format_name();
    if !FORMATS.contains(&format) {
        return Err(format!("failed to parse apple crash report: this is a report of the format {format}"));
    }
    let stacktraces = report.threads().iter().map(|thread| stacktrace(thread, &report)).collect();
    // An image that only frames name has no size, and would end where the next one begins.
    let listed = report.images().iter().filter(|image| !image.is_unlisted);
    let modules = listed.map(module).collect();
    Ok((Request { stacktraces, modules, ..Request::default() }, crash_info(&report)))
}

fn stacktrace(thread: &Thread, report: &Report<'_>) -> Stacktrace {
    let number = || thread.name.strip_prefix("Thread ")?.split(' ').next()?.parse().ok();
    let frame = |frame: &ReportFrame| Frame {
        platform: None,
        addr_mode: AddrMode::Abs,
        instruction_addr: Address(frame.address),
        adjust_instruction_addr: None,
        package: report.stated_image(frame).map(Cow::into_owned),
        lang: None,
        symbol: None,
        sym_addr: None,
        function: None,
        filename: None,
        abs_path: None,
        lineno: None,
        trust: None,
    };
    let registers = thread.registers.iter().map(|register| (register.name.clone(), Address(register.value)));
    Stacktrace {
        thread_id: number(),
        thread_name: thread.label.clone(),
        is_requesting: Some(thread.crashed),
        registers: registers.collect(),
        // Functions that were inlined have the addresses of the frames after them.
        frames: thread.frames.iter().filter(|frame| !frame.inlined).map(frame).collect(),
    }
}

fn module(image: &ReportImage) -> Module {
    let path = Some(&image.path).filter(|path| !path.is_empty()).unwrap_or(&image.name);
    Module {
        kind: "macho".to_owned(),
        code_id: image.id.as_ref().map(ToString::to_string),
        code_file: Some(path.clone()),
        debug_id: image.id.as_ref().map(|id| apple_uuid(id).to_ascii_lowercase()),
        debug_file: Some(path.clone()),
        debug_checksum: None,
        image_addr: Address(image.load_address),
        image_size: image.size.map(Address),
    }
}

fn crash_info(report: &Report<'_>) -> CrashInfo {
    let info = report.info();
    let arch = report.images().iter().find_map(|image| image.arch.as_ref());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let os = text(&info.os);
    let (os_name, os_version, os_build) = os_parts(&os).unwrap_or((&os, "", ""));
    let exception = info.exception.as_ref();
    let reason = exception.and_then(|exception| match (&exception.kind, &exception.signal) {
        (Some(kind), Some(signal)) if kind != signal => Some(format!("{kind} ({signal})")),
        (kind, signal) => kind.clone().or_else(|| signal.clone()),
    });
    let details = [
        info.application_information.as_ref(),
        exception.and_then(|exception| exception.subtype.as_ref()),
        exception.and_then(|exception| exception.codes.as_ref()),
    ];
    CrashInfo {
        timestamp: info.time.as_deref().and_then(timestamp),
        system_info: SystemInfo {
            os_name: os_name.to_owned(),
            os_version: os_version.to_owned(),
            os_build: os_build.to_owned(),
            cpu_arch: arch.map_or_else(String::new, |arch| arch.name.clone()),
            device_model: text(&info.hardware_model),
        },
        crashed: true,
        crash_reason: reason,
        crash_details: details.into_iter().flatten().next().cloned(),
    }
}

impl CrashInfo {
    /// If the report states no architecture, states that of the first module whose index is found.
    pub(super) fn set_arch(&mut self, symbolicated: &Symbolicated) {
        if !self.system_info.cpu_arch.is_empty() {
            return;
        }
        let found = symbolicated.outcomes.iter().find_map(|outcome| outcome.found.as_ref());
        let arch = found.map_or("unknown", |found| &found.arch.name);
        self.system_info.cpu_arch = arch.to_owned();
    }
}

/// The parts of `iPhone OS 15.4.1 (19E258)`: name, version, build.
fn os_parts(os: &str) -> Option<(&str, &str, &str)> {
    let (name, build) = os.strip_suffix(')')?.rsplit_once(" (")?;
    let (name, version) = name.rsplit_once(' ')?;
    version.starts_with(|digit: char| digit.is_ascii_digit()).then_some(())?;
    Some((if name == "Mac OS X" { "macOS" } else { name }, version, build))
}

/// The seconds since 1970 of `2024-03-01 09:41:00.1234 +0800`.
fn timestamp(time: &str) -> Option<u64> {
    let local = humantime::parse_rfc3339_weak(time.get(..19)?).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let zone = time.get(19..)?.rsplit(' ').next()?;
    let (sign, digits) = zone.split_at_checked(1)?;
    if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| digits.get(range)?.parse::<u64>().ok();
    let east = Duration::from_secs(60 * (60 * number(0..2)? + number(2..4)?));
    match sign {
        "+" => local.checked_sub(east),
        "-" => local.checked_add(east),
        _ => None,
    }
    .map(|time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_report_has_a_zone() {
        assert_eq!(timestamp("2019-01-09 17:42:22.903 +0000"), Some(1_547_055_742));
        assert_eq!(timestamp("2024-03-01 09:41:00.1234 +0800"), Some(1_709_257_260));
        assert_eq!(timestamp("2024-02-29 20:41:00.12 -0500"), Some(1_709_257_260));
        for wrong in ["", "2024-03-01 09:41:00", "2024-03-01 09:41:00 x0800", "2024-03-01 09:41:00 +é80", "é"]
        {
            assert_eq!(timestamp(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_system_has_a_name_a_version_and_a_build() {
        assert_eq!(os_parts("Mac OS X 10.14.0 (18A391)"), Some(("macOS", "10.14.0", "18A391")));
        assert_eq!(os_parts("iPhone OS 15.4.1 (19E258)"), Some(("iPhone OS", "15.4.1", "19E258")));
        assert_eq!(
            (os_parts("Linux"), os_parts("Linux (x)"), os_parts("Some System (x)")),
            (None, None, None)
        );
    }
}

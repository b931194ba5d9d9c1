//! The header and the registers of a KSCrash report.

use crate::formats::ips::info::version;
use crate::formats::json::Value;
use crate::info::{Exception, ReportInfo, set};
use crate::registers::{Register, in_order};

/// Reads the header. If KSCrash itself crashed while it wrote a report, the first report is in `recrash_report` and has
/// most of the header.
pub(super) fn info(root: Value<'_>) -> ReportInfo {
    let mut info = ReportInfo::default();
    for report in std::iter::successors(Some(root), |report| report.get("recrash_report")) {
        let text = |section: &str, key: &str| {
            report.get(section).and_then(|section| section.get(key)).and_then(scalar).unwrap_or_default()
        };
        let system = |key: &str| text("system", key);
        let name = |name: &str, build: &str| version(&system(name), &system(build));
        set(&mut info.incident, text("report", "id"));
        set(&mut info.process, text("report", "process_name"));
        set(&mut info.process, system("process_name"));
        set(&mut info.reporter_key, system("device_app_hash"));
        set(&mut info.hardware_model, system("machine"));
        set(&mut info.path, system("CFBundleExecutablePath"));
        set(&mut info.identifier, system("CFBundleIdentifier"));
        set(&mut info.version, name("CFBundleShortVersionString", "CFBundleVersion"));
        set(&mut info.code_type, system("cpu_arch"));
        set(&mut info.parent_process, system("parent_process_name"));
        set(&mut info.time, text("report", "timestamp"));
        set(&mut info.launch_time, system("app_start_time"));
        let os = [system("system_name"), name("system_version", "os_version")];
        set(&mut info.os, os.join(" ").trim());
        let number = |key: &str| report.get("system").and_then(|system| system.get(key)?.number());
        info.pid = info.pid.or_else(|| number("process_id"));
        info.parent_pid = info.parent_pid.or_else(|| number("parent_process_id"));
        if info.exception.is_none() {
            info.exception = report.get("crash").and_then(|crash| crash.get("error")).map(exception);
        }
    }
    info
}

/// Returns a string, or a number as it is written.
fn scalar(value: Value<'_>) -> Option<String> {
    let number = || value.number().map(|number| number.to_string());
    value.text().map(std::borrow::Cow::into_owned).or_else(number)
}

/// Reads the exception, the signal, and the thrown object.
fn exception(error: Value<'_>) -> Exception {
    let member = |section: &str, key: &str| error.get(section).and_then(|section| section.get(key));
    let text = |section: &str, key: &str| member(section, key).and_then(scalar).unwrap_or_default();
    let mut exception = Exception::default();
    set(&mut exception.kind, text("mach", "exception_name"));
    set(&mut exception.kind, text("signal", "name"));
    set(&mut exception.kind, error.get("type").and_then(scalar).unwrap_or_default());
    set(&mut exception.signal, text("signal", "name"));
    let code = text("mach", "code_name");
    let address = error.get("address").and_then(Value::number).filter(|_| !code.is_empty());
    set(
        &mut exception.subtype,
        address.map(|address| format!("{code} at {address:#018x}")).unwrap_or_default(),
    );
    let codes = ["code", "subcode"].map(|key| member("mach", key).and_then(Value::number));
    if let [Some(code), Some(subcode)] = codes {
        set(&mut exception.codes, format!("{code:#018x}, {subcode:#018x}"));
    }
    let thrown = ["nsexception", "cpp_exception", "user_reported"].into_iter().find_map(|kind| {
        let name = text(kind, "name");
        (!name.is_empty()).then(|| (name, text(kind, "reason")))
    });
    let reason = error.get("reason").and_then(scalar).unwrap_or_default();
    let (name, own) = thrown.unwrap_or_default();
    let reason = if own.is_empty() { reason } else { own };
    let words = [name, reason].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
    set(&mut exception.reason, words.join(": "));
    exception
}

/// Reads the registers of a thread: the basic ones and those of the exception.
pub(super) fn registers(sections: Value<'_>) -> Vec<Register> {
    let sections = ["basic", "exception"].into_iter().filter_map(|key| sections.get(key));
    let registers = sections.flat_map(Value::members).filter_map(|(name, value)| {
        Some(Register { name: name.text()?.into_owned(), value: value.number()?, description: String::new() })
    });
    in_order(registers)
}

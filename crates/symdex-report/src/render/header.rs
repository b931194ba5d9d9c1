//! Writes the header and the exception of a `.crash`.

use std::io::{self, Write};

use symdex_demangle::printable;

use super::stacks;
use crate::info::{Exception, ReportInfo};
use crate::report::Report;

/// Writes the header of a report: everything before the stacks, with an empty line at the end.
pub(crate) fn write_header(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let info = &report.info;
    let with_pid = |name: &Option<String>, pid: Option<u64>| match (name, pid) {
        (Some(name), Some(pid)) => Some(format!("{name} [{pid}]")),
        (None, Some(pid)) => Some(format!("??? [{pid}]")),
        (name, None) => name.clone(),
    };
    let process = [
        ("Incident Identifier", info.incident.clone()),
        ("CrashReporter Key", info.reporter_key.clone()),
        ("Hardware Model", info.hardware_model.clone()),
        ("Process", with_pid(&info.process, info.pid)),
        ("Path", info.path.clone()),
        ("Identifier", info.identifier.clone()),
        ("Version", info.version.clone()),
        ("Code Type", info.code_type.clone()),
        ("Role", info.role.clone()),
        ("Parent Process", with_pid(&info.parent_process, info.parent_pid)),
        ("Coalition", info.coalition.clone()),
    ];
    let system = [
        ("Date/Time", info.time.clone()),
        ("Launch Time", info.launch_time.clone()),
        ("OS Version", info.os.clone()),
        ("Release Type", info.release_type.clone()),
        ("Baseband Version", info.baseband_version.clone()),
        ("Report Version", Some("104".to_owned())),
    ];
    write_fields(process, 21, out)?;
    write_fields(system, 21, out)?;
    write_exception(info, out)?;
    if let Some(thread) = report.threads.iter().position(|thread| thread.crashed) {
        writeln!(out, "Triggered by Thread:  {}\n", stacks::number(&report.threads[thread].name, thread))?;
    }
    let reason = info.exception.as_ref().and_then(|exception| exception.reason.as_deref());
    let messages = info.application_information.as_deref();
    // The messages usually contain the reason.
    let reason = reason.filter(|reason| messages.is_none_or(|messages| !messages.contains(reason)));
    let information = [reason, messages].into_iter().flatten().collect::<Vec<_>>().join("\n");
    write_section("Application Specific Information", &information, out)?;
    write_section("Kernel Triage", info.kernel_triage.as_deref().unwrap_or_default(), out)
}

/// Writes the fields that are set, with values in column `width`, and an empty line if there are any.
fn write_fields<const N: usize>(
    fields: [(&str, Option<String>); N],
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut is_any = false;
    for (key, value) in fields {
        if let Some(value) = value {
            writeln!(out, "{:width$}{}", format!("{key}:"), printable(value.into()))?;
            is_any = true;
        }
    }
    if is_any { writeln!(out) } else { Ok(()) }
}

fn write_exception(info: &ReportInfo, out: &mut dyn Write) -> io::Result<()> {
    let none = Exception::default();
    let exception = info.exception.as_ref().unwrap_or(&none);
    let kind = match (&exception.kind, &exception.signal) {
        (Some(kind), Some(signal)) if kind != signal => Some(format!("{kind} ({signal})")),
        (kind, signal) => kind.clone().or_else(|| signal.clone()),
    };
    let termination = info.termination.as_ref().map(|text| text.split_once('\n').unwrap_or((text, "")));
    let fields = [
        ("Exception Type:  ", kind),
        ("Exception Subtype: ", exception.subtype.clone()),
        ("Exception Codes: ", exception.codes.clone()),
        ("Exception Note:  ", exception.note.clone()),
        ("Termination Reason: ", termination.map(|(first, _)| first.to_owned())),
    ];
    let mut is_any = info.terminating_process.is_some();
    for (key, value) in fields {
        if let Some(value) = value {
            writeln!(out, "{key}{}", printable(value.into()))?;
            is_any = true;
        }
    }
    if let Some((_, more)) = termination {
        write_lines(more, out)?;
    }
    if let Some(process) = &info.terminating_process {
        writeln!(out, "Terminating Process: {}", printable(process.into()))?;
    }
    if let Some(region) = &info.vm_region {
        write!(out, "{}VM Region Info: ", if is_any { "\n" } else { "" })?;
        write_lines(region, out)?;
        is_any = true;
    }
    if is_any { writeln!(out) } else { Ok(()) }
}

/// Writes a section with its title on a line of its own. An empty section is not written.
fn write_section(title: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    write_lines(text, out)?;
    writeln!(out)
}

/// Writes the lines of a text.
pub(super) fn write_lines(text: &str, out: &mut dyn Write) -> io::Result<()> {
    text.lines().try_for_each(|line| writeln!(out, "{}", printable(line.replace('\t', "    ").into())))
}

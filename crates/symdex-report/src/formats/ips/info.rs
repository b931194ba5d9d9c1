//! The header and the registers of an `.ips`.

use crate::formats::json::Value;
use crate::info::{ReportInfo, set};
use crate::registers::{Register, in_order};

/// Reads the header on the first line and the body. Both are the same object if the file has no first line.
pub(super) fn info(header: Value<'_>, body: Value<'_>) -> ReportInfo {
    let text =
        |object: Value<'_>, key: &str| object.get(key).and_then(Value::text).unwrap_or_default().into_owned();
    let number = |key: &str| body.get(key).and_then(Value::number);
    let mut info = ReportInfo {
        pid: number("pid"),
        parent_pid: number("parentPid"),
        kernel_triage: lines(body.get("ktriageinfo")),
        vm_region: lines(body.get("vmRegionInfo").or_else(|| body.get("vmregioninfo"))),
        application_information: application_information(body),
        ..ReportInfo::default()
    };
    for (field, body_key, header_key) in [
        (&mut info.incident, "incident", "incident_id"),
        (&mut info.process, "procName", "name"),
        (&mut info.reporter_key, "crashReporterKey", ""),
        (&mut info.hardware_model, "modelCode", ""),
        (&mut info.path, "procPath", ""),
        (&mut info.role, "procRole", ""),
        (&mut info.parent_process, "parentProc", ""),
        (&mut info.time, "captureTime", "timestamp"),
        (&mut info.launch_time, "procLaunch", ""),
        (&mut info.baseband_version, "basebandVersion", ""),
    ] {
        set(field, text(body, body_key));
        set(field, text(header, header_key));
    }
    set(&mut info.code_type, code_type(body).unwrap_or_default());
    let bundle = |key: &str| body.get("bundleInfo").map(|bundle| text(bundle, key)).unwrap_or_default();
    set(&mut info.identifier, bundle("CFBundleIdentifier"));
    set(&mut info.identifier, text(header, "bundleID"));
    set(&mut info.identifier, text(body, "procName"));
    set(&mut info.version, version(&bundle("CFBundleShortVersionString"), &bundle("CFBundleVersion")));
    set(&mut info.version, version(&text(header, "app_version"), &text(header, "build_version")));
    let coalition = number("coalitionID").zip(body.get("coalitionName").and_then(Value::text));
    set(&mut info.coalition, coalition.map(|(id, name)| format!("{name} [{id}]")).unwrap_or_default());
    if let Some(os) = body.get("osVersion") {
        set(&mut info.os, version(&text(os, "train"), &text(os, "build")));
        set(&mut info.release_type, text(os, "releaseType"));
    }
    set(&mut info.os, text(header, "os_version"));
    exception(body, &mut info);
    termination(body, &mut info);
    info
}

/// Joins a version and a build to `1.0 (42)`. Either may be empty.
pub(crate) fn version(version: &str, build: &str) -> String {
    match (version, build) {
        (only, "") | ("", only) => only.to_owned(),
        (version, build) => format!("{version} ({build})"),
    }
}

/// Returns `ARM-64 (Native)` or `ARM-64 (Translated)`. Reports state it since macOS 11.
fn code_type(body: Value<'_>) -> Option<String> {
    let cpu = body.get("cpuType")?.text()?;
    let translated = body.get("translated").is_some_and(Value::is_true);
    Some(format!("{cpu} ({})", if translated { "Translated" } else { "Native" }))
}

/// Returns the text of a string without trailing white space. `None` for any other value.
fn lines(value: Option<Value<'_>>) -> Option<String> {
    let text = value?.text()?;
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// Joins the messages of libraries, one a line. `asi` has a list of messages for each library.
fn application_information(body: Value<'_>) -> Option<String> {
    let lists = body.get("asi").into_iter().flat_map(Value::members);
    let messages: Vec<_> = lists.flat_map(|(_, list)| list.elements()).filter_map(Value::text).collect();
    (!messages.is_empty()).then(|| messages.join("\n").trim_end().to_owned())
}

fn exception(body: Value<'_>, info: &mut ReportInfo) {
    let reason = body.get("exceptionReason").and_then(|reason| reason.get("composed_message")?.text());
    let object = body.get("exception");
    if object.is_none() && reason.is_none() {
        return;
    }
    let text = |key: &str| object.and_then(|object| object.get(key)?.text()).unwrap_or_default();
    let is_corpse = body.get("isCorpse").is_some_and(|value| value.is_true() || value.number() == Some(1));
    let exception = info.exception();
    set(&mut exception.kind, text("type"));
    set(&mut exception.signal, text("signal"));
    set(&mut exception.subtype, text("subtype"));
    set(&mut exception.codes, text("codes"));
    set(&mut exception.note, if is_corpse { "EXC_CORPSE_NOTIFY" } else { "" });
    set(&mut exception.reason, reason.unwrap_or_default());
}

/// Reads the reason of the termination, `SIGNAL 11 Segmentation fault: 11`, with details on further lines, and the
/// process that ended this one.
fn termination(body: Value<'_>, info: &mut ReportInfo) {
    let Some(object) = body.get("termination") else { return };
    let text = |key: &str| object.get(key).and_then(Value::text).unwrap_or_default();
    let code = object.get("code").and_then(Value::number).map(|code| code.to_string()).unwrap_or_default();
    let words = [text("namespace").into_owned(), code, text("indicator").into_owned()];
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let details = ["reasons", "details"].into_iter().filter_map(|key| object.get(key));
    let details = details.flat_map(Value::elements).filter_map(Value::text).map(|line| line.into_owned());
    let lines: Vec<_> = std::iter::once(words.join(" ")).chain(details).collect();
    set(&mut info.termination, lines.join("\n"));
    if let Some(process) = object.get("byProc").and_then(Value::text) {
        let pid =
            object.get("byPid").and_then(Value::number).map(|pid| format!(" [{pid}]")).unwrap_or_default();
        set(&mut info.terminating_process, format!("{process}{pid}"));
    }
}

/// Reads the registers of a `threadState`.
pub(super) fn registers(state: Value<'_>) -> Vec<Register> {
    let register = |name: String, object: Value<'_>| {
        let value = object.get("value")?.number()?;
        let description = object.get("description").and_then(Value::text).unwrap_or_default().into_owned();
        Some(Register { name, value, description })
    };
    let numbered = |(list, values): (Value<'_>, Value<'_>)| -> Vec<Register> {
        let name = list.text().unwrap_or_default();
        let values = values.elements().enumerate();
        values.filter_map(|(number, object)| register(format!("{name}{number}"), object)).collect()
    };
    let single = state.members().filter_map(|(name, object)| register(name.text()?.into_owned(), object));
    let lists = state.members().flat_map(numbered);
    // `cpu` is the number of the processor.
    in_order(lists.chain(single).filter(|register| register.name != "cpu"))
}

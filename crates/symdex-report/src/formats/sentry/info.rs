//! The header and the registers of a Sentry event.

use crate::formats::ips::info::version;
use crate::formats::json::Value;
use crate::info::{Exception, ReportInfo, set};

pub(super) fn info(event: Value<'_>) -> ReportInfo {
    let text = |object: Option<Value<'_>>, key: &str| {
        object.and_then(|object| object.get(key)?.text()).unwrap_or_default().into_owned()
    };
    let context = |name: &str| event.get("contexts").and_then(|contexts| contexts.get(name));
    let (app, os, device) = (context("app"), context("os"), context("device"));
    let mut info = ReportInfo::default();
    set(&mut info.incident, text(Some(event), "event_id"));
    set(&mut info.hardware_model, text(device, "model"));
    set(&mut info.process, text(app, "app_name"));
    set(&mut info.identifier, text(app, "app_identifier"));
    set(&mut info.version, version(&text(app, "app_version"), &text(app, "app_build")));
    set(&mut info.version, text(Some(event), "release"));
    set(&mut info.code_type, text(device, "arch"));
    let time = event
        .get("timestamp")
        .map(|time| time.text().unwrap_or_else(|| String::from_utf8_lossy(time.bytes())));
    set(&mut info.time, time.unwrap_or_default());
    set(&mut info.launch_time, text(app, "app_start_time"));
    let name = [text(os, "name"), version(&text(os, "version"), &text(os, "build"))];
    set(&mut info.os, name.join(" ").trim());
    let exceptions = event.get("exception");
    let exceptions = exceptions.and_then(|list| list.get("values").or(Some(list)));
    // The last exception of the list was thrown last.
    info.exception = exceptions.and_then(|list| list.elements().last()).map(exception);
    info
}

fn exception(object: Value<'_>) -> Exception {
    let meta = |kind: &str, key: &str| object.get("mechanism")?.get("meta")?.get(kind)?.get(key);
    let name = |kind: &str| meta(kind, "name").and_then(Value::text).unwrap_or_default();
    let text = |key: &str| object.get(key).and_then(Value::text).unwrap_or_default();
    let mut exception = Exception::default();
    set(&mut exception.kind, text("type"));
    set(&mut exception.kind, name("mach_exception"));
    set(&mut exception.signal, name("signal"));
    set(&mut exception.reason, text("value"));
    let codes = ["code", "subcode"].map(|key| meta("mach_exception", key).and_then(Value::number));
    if let [Some(code), Some(subcode)] = codes {
        set(&mut exception.codes, format!("{code:#018x}, {subcode:#018x}"));
    }
    exception
}

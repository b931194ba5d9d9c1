//! The header of a MetricKit payload.

use super::diagnostics;
use crate::formats::ips::info::version;
use crate::formats::json::Value;
use crate::info::{ReportInfo, mach_exception, set, signal};

/// Reads the metadata of the first crash of a payload, or of the first diagnostic if there is no crash.
pub(super) fn info(root: Value<'_>) -> ReportInfo {
    let payload =
        std::iter::once(root).chain(root.elements()).find(|payload| payload.get("timeStampEnd").is_some());
    let with_data =
        || diagnostics(root).filter_map(|(kind, value)| Some((kind, value.get("diagnosticMetaData")?)));
    let crash = with_data().find(|(kind, _)| kind.starts_with("crash"));
    let data = crash.or_else(|| with_data().next()).map(|(_, data)| data);
    let mut info = ReportInfo::default();
    if let Some(time) = payload.and_then(|payload| payload.get("timeStampEnd")?.text()) {
        set(&mut info.time, time);
    }
    let Some(data) = data else { return info };
    let text = |key: &str| data.get(key).and_then(Value::text).unwrap_or_default().into_owned();
    let number = |key: &str| data.get(key).and_then(Value::number);
    set(&mut info.hardware_model, text("deviceType"));
    set(&mut info.identifier, text("bundleIdentifier"));
    set(&mut info.version, version(&text("appVersion"), &text("appBuildVersion")));
    set(&mut info.code_type, text("platformArchitecture"));
    set(&mut info.os, text("osVersion"));
    set(&mut info.termination, text("terminationReason"));
    set(&mut info.vm_region, text("virtualMemoryRegionInfo").trim_end());
    info.pid = number("pid");
    let thrown =
        data.get("objectiveCexceptionReason").and_then(|reason| reason.get("composedMessage")?.text());
    if number("exceptionType").is_some() || number("signal").is_some() || thrown.is_some() {
        let name = |key: &str, name: fn(u64) -> Option<&'static str>| {
            number(key)
                .map(|number| name(number).map_or_else(|| number.to_string(), str::to_owned))
                .unwrap_or_default()
        };
        let exception = info.exception();
        set(&mut exception.kind, name("exceptionType", mach_exception));
        set(&mut exception.signal, name("signal", signal));
        set(
            &mut exception.codes,
            number("exceptionCode").map(|code| format!("{code:#018x}")).unwrap_or_default(),
        );
        set(&mut exception.reason, thrown.unwrap_or_default());
    }
    info
}

//! The samples of [`super::stacks`] in JSON and XML that few systems write.

use serde_json::json;

use super::stacks::{ALL, CALLERS, LOAD, OFFSETS, Sample, addresses, frame_lines, pretty, sample, uuid};

pub(super) fn samples() -> Vec<Sample> {
    vec![
        sample("metrickit", log_of_app_store_connect(), CALLERS),
        sample("sentry-event", relative_sentry(), CALLERS),
        Sample { has_lines: false, ..sample("sentry-profile", sentry_profile(), CALLERS) },
        sample("swift-json", swift(), CALLERS),
        sample("app-center", app_center("threads"), CALLERS),
        sample("app-center", app_center("exception"), ALL),
        Sample { has_lines: false, ..sample("xctrace", xctrace(), CALLERS) },
    ]
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#018x}")
}

fn log_of_app_store_connect() -> String {
    let tree = OFFSETS.iter().fold(None, |inner, offset| {
        let mut frame = json!({
            "binaryName": "App", "binaryUUID": uuid(), "offsetIntoBinaryTextSegment": "", "sampleCount": 1,
            "address": hexadecimal(LOAD + offset), "offsetIntoSymbol": "", "symbolName": "", "fileName": "",
            "lineNumber": "", "rawFrame": format!("1 ??? (in App) + {offset} [{:#x}]", LOAD + offset), "subFrames": [],
        });
        match inner {
            Some(inner) => frame["subFrames"] = json!([inner]),
            // The place of the image follows from one frame.
            None => frame["offsetIntoBinaryTextSegment"] = json!(offset.to_string()),
        }
        Some(frame)
    });
    let tree = json!([{"callStacks": [{"callStackRootFrames": [tree]}]}]);
    let data =
        json!({"event": "hang", "osVersion": "iPhone OS 17.5.1 (21F90)", "platformArchitecture": "arm64"});
    let log = json!({"diagnosticMetaData": data, "callStackTree": tree});
    pretty(&json!({"version": "1.0", "productData": [{"signatureId": "1", "diagnosticLogs": [log]}]}))
}

fn sentry_images() -> serde_json::Value {
    let image = |address: u64, id: &str| {
        json!({"type": "macho", "image_addr": hexadecimal(address), "image_size": 16384, "debug_id": id,
            "code_file": "/var/App.app/App"})
    };
    json!({"images": [image(0x1_0000_0000, "00112233-4455-6677-8899-AABBCCDDEEFF"), image(LOAD, &uuid())]})
}

fn relative_sentry() -> String {
    let frame =
        |offset| json!({"instruction_addr": hexadecimal(offset), "addr_mode": "rel:1", "in_app": true});
    // The outermost frame comes first.
    let frames: Vec<_> = OFFSETS.iter().rev().map(|offset| frame(*offset)).collect();
    let event = json!({"values": [{"type": "SIGABRT", "stacktrace": {"frames": frames}}]});
    pretty(&json!({"platform": "native", "debug_meta": sentry_images(), "exception": event}))
}

fn sentry_profile() -> String {
    let frames: Vec<_> =
        addresses().map(|address| json!({"instruction_addr": hexadecimal(address)})).collect();
    let stack: Vec<_> = (0..frames.len()).collect();
    pretty(&json!({
        "version": "2", "platform": "cocoa", "debug_meta": sentry_images(),
        "profile": {"frames": frames, "stacks": [stack], "samples": [{"stack_id": 0, "thread_id": "1"}]},
    }))
}

fn swift() -> String {
    let frame = |(number, address)| {
        let kind = if number == 0 { "programCounter" } else { "returnAddress" };
        json!({"kind": kind, "address": hexadecimal(address), "image": "App"})
    };
    let mut frames: Vec<_> = addresses().enumerate().map(frame).collect();
    frames.push(json!({"kind": "omittedFrames", "count": 2}));
    let thread =
        json!({"name": "main", "crashed": true, "registers": {"x0": hexadecimal(0)}, "frames": frames});
    pretty(&json!({
        "timestamp": "2025-11-27T21:52:01.000000Z", "kind": "crashReport", "description": "Bad pointer dereference",
        "platform": "macOS 26.0 (25A354)", "architecture": "arm64", "threads": [thread], "omittedImages": 3,
        "images": [{"name": "App", "buildId": super::stacks::ID, "path": "/var/App.app/App",
            "baseAddress": hexadecimal(LOAD), "endOfText": hexadecimal(LOAD + 0x4000)}],
    }))
}

fn app_center(owner: &str) -> String {
    let frames: Vec<_> =
        addresses().map(|address| json!({"address": hexadecimal(address), "code": "f + 1"})).collect();
    let stack = match owner {
        "threads" => json!([{"id": 0, "name": "main", "frames": frames}]),
        _ => json!({"type": "NSRangeException", "message": "out of bounds", "frames": frames}),
    };
    let image = json!({
        "id": uuid(), "name": "App", "path": "/var/App.app/App", "startAddress": hexadecimal(LOAD),
        "endAddress": hexadecimal(LOAD + 0x3fff), "primaryArchitectureId": 16_777_228, "architectureVariantId": 0,
    });
    pretty(&json!({"logs": [{"type": "appleError", "processId": 42, owner: stack, "binaries": [image]}]}))
}

fn xctrace() -> String {
    let frames = frame_lines(|number, address| {
        // The address of an instruction is one more.
        let stated = if number == 0 { address + 1 } else { address };
        let binary = match number {
            0 => format!(
                "<binary id=\"3\" name=\"App\" UUID=\"{}\" arch=\"arm64\" load-addr=\"{LOAD:#x}\" path=\"/var/App\"/>",
                uuid()
            ),
            _ => "<binary ref=\"3\"/>".to_owned(),
        };
        format!("<frame id=\"1{number}\" name=\"{address:#x}\" addr=\"{stated:#x}\">{binary}</frame>")
    });
    format!(
        "<?xml version=\"1.0\"?>\n<trace-query-result>\n<node xpath='//table[1]'><schema name=\"time-profile\"/>\n<row>\
         <thread id=\"2\" fmt=\"Main Thread\"/><backtrace id=\"4\">\n{frames}</backtrace></row>\n</node>\n\
         </trace-query-result>\n"
    )
}

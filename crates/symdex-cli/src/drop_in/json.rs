//! Answers as JSON, with the members of llvm-symbolizer's. They are sorted by name, as its are.

use serde_json::{Value, json};
use symdex_build::DataSymbol;

use super::modules::{Frame, ModuleInfo};
use super::names::{Functions, Naming};
use super::plain::start_address;
use super::request::{ModulePlace, Request};
use crate::failure::Failure;

/// The answer for an address, which is missing if the request could not be read.
fn answer(module: &str, address: Option<u64>, member: &str, value: Value) -> Value {
    let mut answer = json!({ "ModuleName": module, (member): value });
    if let Some(address) = address {
        answer["Address"] = hexadecimal(address).into();
    }
    answer
}

/// The answer to `request`, which names an address or a symbol.
fn answer_to(request: &Request, member: &str, value: Value) -> Value {
    let mut answer = answer(&request.module_text, request.place.address(), member, value);
    if let ModulePlace::Symbol { name, .. } = &request.place {
        answer["SymName"] = name.as_str().into();
    }
    answer
}

/// The frames at `address`.
pub(super) fn frames(
    module: &str,
    address: Option<u64>,
    frames: &[Frame],
    info: Option<ModuleInfo>,
    naming: Naming,
) -> Value {
    let mut symbol: Vec<_> = frames.iter().map(|frame| location(Some(frame), info, naming)).collect();
    if symbol.is_empty() {
        symbol.push(location(None, info, naming));
    }
    answer(module, address, "Symbol", symbol.into())
}

pub(super) fn data(request: &Request, symbol: Option<&DataSymbol>, naming: Naming) -> Value {
    let [start, size] = symbol.map_or([0, 0], |symbol| [symbol.start, symbol.size]).map(hexadecimal);
    let name = symbol.map(|symbol| naming.data(symbol)).unwrap_or_default();
    answer_to(request, "Data", json!({ "Name": name, "Size": size, "Start": start }))
}

/// The functions of symbols.
pub(super) fn locations(request: &Request, locations: &[Frame], info: ModuleInfo, naming: Naming) -> Value {
    let locations = locations.iter().map(|frame| location(Some(frame), Some(info), naming)).collect();
    answer_to(request, "Loc", locations)
}

/// The module cannot be read.
pub(super) fn failed(module: &str, address: Option<u64>, failure: &Failure) -> Value {
    answer(module, address, "Error", json!({ "Message": failure.message }))
}

/// A frame. Unknown texts are empty, and unknown numbers 0.
fn location(frame: Option<&Frame>, info: Option<ModuleInfo>, naming: Naming) -> Value {
    let name = frame.and_then(|frame| naming.function(frame));
    let start = frame.zip(info).and_then(|(frame, info)| start_address(frame, info));
    json!({
        "Column": frame.map_or(0, |frame| frame.column),
        "Discriminator": 0,
        "FileName": frame.and_then(|frame| naming.file(frame)).unwrap_or_default(),
        "FunctionName": name.filter(|_| naming.functions != Functions::None).unwrap_or_default(),
        "Line": frame.and_then(|frame| frame.line).unwrap_or(0),
        "StartAddress": start.map_or_else(String::new, hexadecimal),
        "StartFileName": "",
        "StartLine": 0,
    })
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

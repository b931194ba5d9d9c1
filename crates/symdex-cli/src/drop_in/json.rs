//! Answers as JSON, with the members of llvm-symbolizer's in its order.

use serde::Serialize;
use symdex_build::DataSymbol;

use super::modules::{Frame, ModuleInfo};
use super::names::{Functions, Naming};
use super::plain::start_address;
use super::request::{Place, Request};
use crate::failure::Failure;

/// The answer to one request.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loc: Option<Vec<Location>>,
    module_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sym_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Vec<Location>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    name: String,
    size: String,
    start: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Error {
    message: String,
}

/// A frame. Unknown texts are empty, and unknown numbers 0.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Location {
    column: u32,
    discriminator: u32,
    file_name: String,
    function_name: String,
    line: u32,
    start_address: String,
    start_file_name: String,
    start_line: u32,
}

impl Record {
    fn new(module: &str, address: Option<u64>) -> Self {
        Self {
            address: address.map(|address| format!("{address:#x}")),
            data: None,
            error: None,
            loc: None,
            module_name: module.to_owned(),
            sym_name: None,
            symbol: None,
        }
    }

    /// The frames at `address`, which is missing if the request could not be read.
    pub(super) fn frames(
        module: &str,
        address: Option<u64>,
        frames: &[Frame],
        info: Option<ModuleInfo>,
        naming: Naming,
    ) -> Self {
        let mut symbol: Vec<_> = frames.iter().map(|frame| Location::new(frame, info, naming)).collect();
        if symbol.is_empty() {
            symbol.push(Location::default());
        }
        Self { symbol: Some(symbol), ..Self::new(module, address) }
    }

    /// The answer to `request`, which names an address or a symbol.
    fn to(request: &Request) -> Self {
        let sym_name = match &request.place {
            Place::Symbol { name, .. } => Some(name.clone()),
            Place::Address(_) => None,
        };
        Self { sym_name, ..Self::new(&request.module_text, request.place.address()) }
    }

    pub(super) fn data(request: &Request, symbol: Option<&DataSymbol>, naming: Naming) -> Self {
        let (start, size) = symbol.map_or((0, 0), |symbol| (symbol.start, symbol.size));
        let name = symbol.map(|symbol| naming.data(symbol)).unwrap_or_default();
        let data = Data { name, size: format!("{size:#x}"), start: format!("{start:#x}") };
        Self { data: Some(data), ..Self::to(request) }
    }

    /// The functions of symbols.
    pub(super) fn locations(
        request: &Request,
        locations: &[Frame],
        info: ModuleInfo,
        naming: Naming,
    ) -> Self {
        let loc = locations.iter().map(|frame| Location::new(frame, Some(info), naming)).collect();
        Self { loc: Some(loc), ..Self::to(request) }
    }

    /// The module cannot be read.
    pub(super) fn failed(module: &str, address: Option<u64>, failure: &Failure) -> Self {
        let error = Error { message: failure.message.clone() };
        Self { error: Some(error), ..Self::new(module, address) }
    }
}

impl Location {
    fn new(frame: &Frame, info: Option<ModuleInfo>, naming: Naming) -> Self {
        let name = naming.function(frame).filter(|_| naming.functions != Functions::None);
        let start = info.and_then(|info| start_address(frame, info));
        Self {
            column: frame.column,
            file_name: naming.file(frame).unwrap_or_default(),
            function_name: name.unwrap_or_default(),
            line: frame.line.unwrap_or(0),
            start_address: start.map_or_else(String::new, |start| format!("{start:#x}")),
            ..Self::default()
        }
    }
}

//! Prints the answers of `llvm-symbolizer` in the style that was asked for.

use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde::Serialize;
use serde_json::Value;

use super::json;
use super::modules::{Data, Frame, ModuleInfo};
use super::plain::Plain;
use super::request::Request;
use crate::failure::Failure;

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// An object for each answer, in a line of its own unless [`Plain::pretty`] is set.
    Json,
    /// One array of the answers.
    JsonList,
}

/// Prints answers on standard output.
pub(super) struct Printer {
    plain: Plain,
    form: Form,
    /// The elements of the array.
    list: Vec<Value>,
    out: BufWriter<StdoutLock<'static>>,
}

impl Printer {
    pub(super) fn new(plain: Plain, form: Form) -> Self {
        Self { plain, form, list: Vec::new(), out: BufWriter::new(io::stdout().lock()) }
    }

    pub(super) fn frames(
        &mut self,
        module: &str,
        address: Option<u64>,
        frames: &[Frame],
        info: Option<ModuleInfo>,
    ) -> io::Result<()> {
        match self.form {
            Form::Plain => self.plain.frames(address, frames, info, &mut self.out),
            _ => self.record(json::frames(module, address, frames, info, self.plain.naming)),
        }
    }

    pub(super) fn data(&mut self, request: &Request, data: &Data) -> io::Result<()> {
        match self.form {
            Form::Plain => self.plain.data(request.place.address().unwrap_or(0), data, &mut self.out),
            _ => self.record(json::data(request, data.symbol.as_ref(), self.plain.naming)),
        }
    }

    /// Prints the functions of the symbols that `request` names.
    pub(super) fn locations(
        &mut self,
        request: &Request,
        locations: &[Frame],
        info: ModuleInfo,
    ) -> io::Result<()> {
        match self.form {
            Form::Plain => self.plain.locations(locations, info, &mut self.out),
            _ => self.record(json::locations(request, locations, info, self.plain.naming)),
        }
    }

    /// Prints that `request` cannot be answered. The message is part of JSON only.
    pub(super) fn failed(
        &mut self,
        request: &Request,
        address: Option<u64>,
        failure: &Failure,
    ) -> io::Result<()> {
        match self.form {
            Form::Plain => self.plain.frames(address, &[], None, &mut self.out),
            _ => self.no_module(&request.module_text, address, failure),
        }
    }

    /// Prints that a module cannot be read, which is part of JSON only.
    pub(super) fn no_module(
        &mut self,
        module: &str,
        address: Option<u64>,
        failure: &Failure,
    ) -> io::Result<()> {
        match self.form {
            Form::Plain => Ok(()),
            _ => self.record(json::failed(module, address, failure)),
        }
    }

    fn record(&mut self, record: Value) -> io::Result<()> {
        if self.form == Form::JsonList {
            self.list.push(record);
            return Ok(());
        }
        self.write(&record)
    }

    fn write(&mut self, value: &impl Serialize) -> io::Result<()> {
        if self.plain.pretty {
            serde_json::to_writer_pretty(&mut self.out, value)?;
        } else {
            serde_json::to_writer(&mut self.out, value)?;
        }
        writeln!(self.out)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Prints what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.form == Form::JsonList {
            let list = std::mem::take(&mut self.list);
            self.write(&list)?;
        }
        self.flush()
    }
}

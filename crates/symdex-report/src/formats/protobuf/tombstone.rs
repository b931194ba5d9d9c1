//! Tombstones of Android 12 and later as Android stores them: `tombstone_00.pb`, and what `ApplicationExitInfo`
//! returns.
//!
//! A frame has fields for the name of one function and the distance from its start. The rewritten report has the
//! concrete function of each frame; text and JSON have files, lines and inlined functions too.

use std::collections::HashMap;

use symdex::Arch;

use super::{Answers, Message, push_bytes, push_number, rewritten, without};
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Symbolicated;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::formats::rules::is_nameless;
use crate::info::{ReportInfo, set};
use crate::report::{Base, Frame, Parsed, Report, ReportImage, SymbolDetail, Thread};
use crate::text::lossy;

/// The format of Android's binary tombstones.
pub(crate) const FORMAT: Format = Format {
    name: "android-protobuf",
    description: "Android's binary tombstones; they have room for function names only",
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::All(edits),
    ..Format::BINARY
};

/// The numbers of fields of a tombstone.
mod of_tombstone {
    pub(super) const ARCH: u64 = 1;
    pub(super) const FINGERPRINT: u64 = 2;
    pub(super) const TIMESTAMP: u64 = 4;
    pub(super) const PID: u64 = 5;
    pub(super) const TID: u64 = 6;
    pub(super) const COMMAND_LINE: u64 = 9;
    pub(super) const SIGNAL: u64 = 10;
    pub(super) const ABORT_MESSAGE: u64 = 14;
    /// A map from thread ids to threads.
    pub(super) const THREADS: u64 = 16;
}
/// The thread in an entry of the map.
const MAP_VALUE: u64 = 2;
const BACKTRACE: u64 = 4;
/// The numbers of fields of a frame.
mod of_frame {
    pub(super) const RELATIVE_PC: u64 = 1;
    pub(super) const FUNCTION: u64 = 4;
    pub(super) const FUNCTION_OFFSET: u64 = 5;
    pub(super) const FILE: u64 = 6;
    pub(super) const BUILD_ID: u64 = 8;
}

fn recognises(text: &[u8]) -> bool {
    let tombstone = Message::new(text, 0..text.len());
    // The first bytes of text can look like a field.
    let has_threads = || tombstone.messages(of_tombstone::THREADS).any(|entry| thread(&entry).is_some());
    tombstone.intact_end() == text.len()
        && tombstone.number(of_tombstone::PID).is_some()
        && tombstone.number(of_tombstone::TID).is_some()
        && has_threads()
}

/// The thread in an entry of the map.
fn thread<'t>(entry: &Message<'t>) -> Option<Message<'t>> {
    entry.number(1)?;
    entry.message(MAP_VALUE)
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let tombstone = Message::new(text, 0..text.len());
    let arch = match tombstone.number(of_tombstone::ARCH).unwrap_or_default() {
        0 => "arm",
        1 => "arm64",
        2 => "i386",
        3 => "x86_64",
        _ => "riscv64",
    };
    let mut images = Images { arch: Arch::from_name(arch), ..Images::default() };
    let limit = ReadLimit::of(text.len());
    let crashed = tombstone.number(of_tombstone::TID);
    let threads = tombstone.messages(of_tombstone::THREADS).take_while(|_| limit.has_room());
    let threads = threads.filter_map(|entry| {
        let thread = thread(&entry)?;
        let id = thread.number(1).or_else(|| entry.number(1));
        Some(Thread {
            name: format!("Thread {}", id.unwrap_or_default()),
            crashed: id == crashed,
            id,
            label: Some(thread.string(2)).filter(|name| !name.is_empty()),
            frames: limit.stack(thread.messages(BACKTRACE).filter_map(|frame| images.frame(&frame, &limit))),
            ..Thread::default()
        })
    });
    let threads = threads.collect();
    let extent = limit.extent(0);
    Ok(Parsed { images: images.images, threads, info: info(&tombstone), extent })
}

fn info(tombstone: &Message<'_>) -> ReportInfo {
    let mut info = ReportInfo { pid: tombstone.number(of_tombstone::PID), ..ReportInfo::default() };
    set(&mut info.os, tombstone.string(of_tombstone::FINGERPRINT));
    set(&mut info.time, tombstone.string(of_tombstone::TIMESTAMP));
    let command = tombstone.messages(of_tombstone::COMMAND_LINE).next();
    set(&mut info.process, command.map(|word| lossy(&word.text[word.span])).unwrap_or_default());
    if let Some(signal) = tombstone.message(of_tombstone::SIGNAL) {
        set(&mut info.exception().kind, signal.string(2));
        set(&mut info.exception().signal, signal.string(2));
        set(&mut info.exception().codes, signal.string(4));
    }
    let reason = tombstone.string(of_tombstone::ABORT_MESSAGE);
    if !reason.is_empty() {
        set(&mut info.exception().reason, reason);
    }
    info
}

/// The images that frames name, in the order of the frames.
#[derive(Default)]
struct Images {
    images: Vec<ReportImage>,
    /// Positions by path and build id.
    known: HashMap<(String, String), usize>,
    arch: Option<Arch>,
}

impl Images {
    fn frame(&mut self, message: &Message<'_>, limit: &ReadLimit) -> Option<Frame> {
        let name = message.message(of_frame::FUNCTION);
        let name = name.filter(|name| !is_nameless(&name.text[name.span.clone()]));
        let address = message.number(of_frame::RELATIVE_PC).unwrap_or_default();
        // Android has already moved return addresses back into the call.
        Some(Frame {
            detail: SymbolDetail::of(name.is_some(), false),
            site: message.span.clone().into(),
            function: name.map(|name| name.span.into()),
            ..Frame::new(address, self.number(message, limit))
        })
    }

    /// Returns the position of the image of a frame, and adds the image if it is new. `None` for a frame in no file.
    fn number(&mut self, frame: &Message<'_>, limit: &ReadLimit) -> Option<usize> {
        let (path, id) = (frame.string(of_frame::FILE), frame.string(of_frame::BUILD_ID));
        if path.is_empty() || path.starts_with(['[', '<']) {
            return None;
        }
        let key = (path, id);
        let number = self.images.len();
        if let Some(known) = self.known.get(&key).copied() {
            return Some(known);
        }
        limit.take_image_of_frame().then_some(())?;
        let (path, id) = key.clone();
        self.known.insert(key, number);
        self.images.push(ReportImage {
            arch: self.arch.clone(),
            id: id.parse().ok(),
            base: Base::File,
            ..ReportImage::of_file(path, &['/', '!'])
        });
        Some(number)
    }
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let function = frame.function.map(|name| lossy(report.at(name)));
        let offset = Message::new(report.text(), frame.site.span()).number(of_frame::FUNCTION_OFFSET);
        let offset = offset.filter(|_| function.is_some());
        ExistingSymbol { function, offset, ..ExistingSymbol::default() }
    })
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
    let text = symbolicated.report.text();
    let answers = Answers::new(symbolicated);
    let tombstone = Message::new(text, 0..text.len());
    let path: &[u64] = &[of_tombstone::THREADS, MAP_VALUE, BACKTRACE];
    let new = rewritten(&tombstone, &[path], &mut |frame| {
        let resolution = answers.of(frame)?;
        let concrete = resolution.frames.last()?;
        let mut new = without(frame, &[of_frame::FUNCTION, of_frame::FUNCTION_OFFSET]);
        push_bytes(&mut new, of_frame::FUNCTION, concrete.readable()?.as_bytes());
        if let Some(offset) = resolution.function_offset(concrete) {
            push_number(&mut new, of_frame::FUNCTION_OFFSET, offset);
        }
        Some(new)
    });
    let edit = new.map(|text| Edit { span: tombstone.span, text });
    edit.into_iter().collect()
}

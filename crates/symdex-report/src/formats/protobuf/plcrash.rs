//! PLCrashReporter's binary reports: `plcrash`, a version, and a message.
//!
//! A frame has fields for the name and the start of one function. The rewritten report has the concrete function of
//! each frame; text and JSON have files, lines and inlined functions too.

use symdex::{Arch, ImageId};

use super::{Answers, Message, push_bytes, push_number, rewritten, without};
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Symbolicated;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edit, Edits, Format};
use crate::formats::rules::is_nameless;
use crate::info::{ReportInfo, set};
use crate::report::{AddressKind, Frame, Parsed, Report, ReportImage, SymbolDetail, Thread};
use crate::text::lossy;

/// The format of PLCrashReporter's binary reports.
pub(crate) const FORMAT: Format = Format {
    name: "plcrash",
    description: "PLCrashReporter's binary reports; they have room for function names only",
    recognises: |text| text.starts_with(MAGIC),
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::All(edits),
    ..Format::BINARY
};

const MAGIC: &[u8] = b"plcrash";
/// The start of the message, after the magic and the version.
const START: usize = MAGIC.len() + 1;

/// The numbers of fields.
mod of_report {
    pub(super) const APPLICATION: u64 = 2;
    pub(super) const THREADS: u64 = 3;
    pub(super) const IMAGES: u64 = 4;
    pub(super) const EXCEPTION: u64 = 5;
    pub(super) const SIGNAL: u64 = 6;
    pub(super) const PROCESS: u64 = 7;
}
const THREAD_FRAMES: u64 = 2;
const EXCEPTION_FRAMES: u64 = 3;
const PC: u64 = 3;
const SYMBOL: u64 = 6;
const SYMBOL_NAME: u64 = 1;
const SYMBOL_START: u64 = 2;

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let report = Message::new(text, START.min(text.len())..text.len());
    let end = report.intact_end();
    if end != text.len() {
        return Err(Error::Malformed { what: "a field that is damaged or cut", at: end });
    }
    let limit = ReadLimit::of(text.len());
    let images = report
        .messages(of_report::IMAGES)
        .take_while(|_| limit.take_image())
        .map(|image| self::image(&image))
        .collect();
    let threads = report.messages(of_report::THREADS).take_while(|_| limit.has_room()).enumerate().map(
        |(number, thread)| Thread {
            name: format!("Thread {}", thread.number(1).unwrap_or(number as u64)),
            crashed: thread.number(3) == Some(1),
            frames: frames(&thread, THREAD_FRAMES, AddressKind::ProgramCounter, &limit),
            ..Thread::default()
        },
    );
    let exception = report.message(of_report::EXCEPTION).map(|exception| Thread {
        name: "Last Exception Backtrace".to_owned(),
        frames: frames(&exception, EXCEPTION_FRAMES, AddressKind::ReturnAddress, &limit),
        ..Thread::default()
    });
    let exception = exception.filter(|exception| !exception.frames.is_empty());
    let threads = threads.chain(exception).collect();
    Ok(Parsed { images, threads, info: info(&report), extent: limit.extent(0) })
}

fn info(report: &Message<'_>) -> ReportInfo {
    let mut info = ReportInfo::default();
    if let Some(process) = report.message(of_report::PROCESS) {
        set(&mut info.process, process.string(1));
        set(&mut info.path, process.string(3));
        set(&mut info.parent_process, process.string(4));
        (info.pid, info.parent_pid) = (process.number(2), process.number(5));
    }
    if let Some(application) = report.message(of_report::APPLICATION) {
        set(&mut info.identifier, application.string(1));
        set(&mut info.version, application.string(2));
    }
    if let Some(signal) = report.message(of_report::SIGNAL) {
        set(&mut info.exception().signal, signal.string(1));
        set(&mut info.exception().kind, signal.string(1));
        set(&mut info.exception().codes, signal.string(2));
    }
    if let Some(exception) = report.message(of_report::EXCEPTION) {
        set(&mut info.exception().reason, format!("{}: {}", exception.string(1), exception.string(2)));
    }
    info
}

fn image(message: &Message<'_>) -> ReportImage {
    let processor = message.message(5);
    let cpu = |number| u32::try_from(processor.as_ref()?.number(number)?).ok();
    ReportImage {
        arch: cpu(2).zip(cpu(3)).map(|(cputype, subtype)| Arch::from_macho(cputype, subtype)),
        id: ImageId::new(message.bytes(4)),
        load_address: message.number(1).unwrap_or_default(),
        size: message.number(2),
        ..ReportImage::of_file(message.string(3), &['/'])
    }
}

/// The frames of a thread or an exception. `first` is the kind of the innermost address.
fn frames(owner: &Message<'_>, number: u64, first: AddressKind, limit: &ReadLimit) -> Vec<Frame> {
    let frame = |(depth, message): (usize, Message<'_>)| {
        let name = message.message(SYMBOL).and_then(|symbol| symbol.message(SYMBOL_NAME));
        let name = name.filter(|name| !is_nameless(&name.text[name.span.clone()]));
        Some(Frame {
            kind: if depth == 0 { first } else { AddressKind::ReturnAddress },
            detail: SymbolDetail::of(name.is_some(), false),
            site: message.span.clone().into(),
            function: name.map(|name| name.span.into()),
            ..Frame::new(message.number(PC)?, None)
        })
    };
    limit.stack(owner.messages(number).enumerate().filter_map(frame))
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let symbol = Message::new(report.text(), frame.site.span()).message(SYMBOL);
        let start = symbol.and_then(|symbol| symbol.number(SYMBOL_START));
        let function = frame.function.map(|name| lossy(report.at(name)));
        let offset = start.filter(|_| function.is_some()).and_then(|start| frame.address.checked_sub(start));
        ExistingSymbol { function, offset, ..ExistingSymbol::default() }
    })
}

fn edits(symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit> {
    let text = symbolicated.report.text();
    let answers = Answers::new(symbolicated);
    let report = Message::new(text, START.min(text.len())..text.len());
    let paths: [&[u64]; 2] =
        [&[of_report::THREADS, THREAD_FRAMES], &[of_report::EXCEPTION, EXCEPTION_FRAMES]];
    let new = rewritten(&report, &paths, &mut |frame| {
        let resolution = answers.of(frame)?;
        let concrete = resolution.frames.last()?;
        let start = resolution.address.checked_sub(resolution.function_offset(concrete)?)?;
        let mut symbol = Vec::new();
        push_bytes(&mut symbol, SYMBOL_NAME, concrete.readable()?.as_bytes());
        push_number(&mut symbol, SYMBOL_START, start);
        let mut new = without(frame, &[SYMBOL]);
        push_bytes(&mut new, SYMBOL, &symbol);
        Some(new)
    });
    let edit = new.map(|text| Edit { span: report.span, text });
    edit.into_iter().collect()
}

//! The answers of Symbolicator. Text is made while it is written, so that only the written answer takes memory.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use symdex_demangle::Language;
use symdex_report::Function;

use super::apple::CrashInfo;
use super::modules::Module;
use super::request::{AddrMode, Frame, FrameOrder, Stacktrace};
use super::symbolicate::{
    Candidate, CandidateOutcome, FramePlace, IndexFeatures, ModuleOutcome, Symbolicated,
};
use crate::v1::Address;

/// The status of a request that is answered. Symbolicator's documentation says `complete`, but its program says
/// `completed`, which is what Sentry's back end expects.
const COMPLETED: &str = "completed";

/// A request that is answered.
#[derive(Serialize)]
pub(super) struct Complete<'r> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<u32>,
    /// What the crash report says, if there was one.
    #[serde(flatten)]
    crash: Option<&'r CrashInfo>,
    stacktraces: Stacktraces<'r>,
    modules: ModuleList<'r>,
}

impl<'r> Complete<'r> {
    pub(super) fn new(symbolicated: &'r Symbolicated, crash: Option<&'r CrashInfo>) -> Self {
        let (signal, modules) = (symbolicated.request.signal, ModuleList(symbolicated));
        Self { status: COMPLETED, signal, crash, stacktraces: Stacktraces(symbolicated), modules }
    }
}

/// A crash report that cannot be read.
#[derive(Serialize)]
pub(super) struct Failed {
    status: &'static str,
    message: String,
}

impl Failed {
    pub(super) fn new(message: String) -> Self {
        Self { status: "failed", message }
    }
}

struct Stacktraces<'r>(&'r Symbolicated);

impl Serialize for Stacktraces<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = |(at, stacktrace)| StacktraceView::new(self.0, at, stacktrace);
        serializer.collect_seq(self.0.request.stacktraces.iter().enumerate().map(view))
    }
}

#[derive(Serialize)]
struct StacktraceView<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_requesting: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<&'r std::collections::BTreeMap<String, Address>>,
    frames: Frames<'r>,
}

impl<'r> StacktraceView<'r> {
    fn new(symbolicated: &'r Symbolicated, at: usize, stacktrace: &'r Stacktrace) -> Self {
        Self {
            thread_id: stacktrace.thread_id,
            thread_name: stacktrace.thread_name.as_deref(),
            is_requesting: stacktrace.is_requesting,
            registers: Some(&stacktrace.registers).filter(|registers| !registers.is_empty()),
            frames: Frames { symbolicated, at, stacktrace },
        }
    }
}

/// The frames of a stack trace. Functions that are inlined are frames of their own.
struct Frames<'r> {
    symbolicated: &'r Symbolicated,
    at: usize,
    stacktrace: &'r Stacktrace,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.stacktrace.frames.iter().enumerate();
        let views =
            |(at, frame)| FrameView::of(self.symbolicated, at, frame, self.symbolicated.place(self.at, at));
        match self.symbolicated.request.options.frame_order {
            FrameOrder::CalleeFirst => serializer.collect_seq(frames.flat_map(views)),
            FrameOrder::CallerFirst => {
                let views = |frame| views(frame).into_iter().rev();
                serializer.collect_seq(frames.rev().flat_map(views))
            }
        }
    }
}

#[derive(Clone, Default, Serialize)]
struct FrameView<'r> {
    status: &'static str,
    /// The position of the frame in the request. Functions that are inlined into it have the same.
    original_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addr_mode: Option<AddrMode>,
    instruction_addr: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjust_instruction_addr: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang: Option<&'r str>,
    /// The linkage name.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Cow<'r, str>>,
    /// Where the concrete function starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    sym_addr: Option<Address>,
    /// The demangled name.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abs_path: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lineno: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<&'r str>,
}

impl<'r> FrameView<'r> {
    /// The frames of `frame`, which was looked up at `place`: innermost first.
    fn of(symbolicated: &'r Symbolicated, at: usize, frame: &'r Frame, place: FramePlace) -> Vec<Self> {
        let module = match place {
            FramePlace::Module(module, offset) => {
                symbolicated.modules.modules.get(module).map(|found| (module, found, offset))
            }
            FramePlace::UnknownImage => None,
        };
        let mut stated = Self::stated(at, frame);
        if let Some((_, Module { code_file: Some(path), .. }, _)) = module {
            stated.package = Some(path);
        }
        match (symbolicated.functions(place), module) {
            (Ok(functions), Some((index, module, Some(offset)))) => {
                // Modules without a place in memory have only offsets.
                let address = |offset| module.address(offset).unwrap_or(offset);
                stated.addr_mode = (module.image_addr.0 == 0).then_some(AddrMode::Rel(index));
                stated.instruction_addr = Address(address(offset));
                let mut frames: Vec<_> = functions.iter().map(|function| stated.answered(function)).collect();
                if let (Some(last), Some(concrete)) = (frames.last_mut(), functions.last()) {
                    last.sym_addr = concrete.start.map(|start| Address(address(start.0)));
                }
                frames
            }
            (Err(status), _) => vec![stated.unanswered(status)],
            (Ok(_), _) => vec![stated.unanswered("missing_symbol")],
        }
    }

    /// What the request states.
    fn stated(at: usize, frame: &'r Frame) -> Self {
        let text = |text: &'r Option<String>| text.as_deref().map(Cow::Borrowed);
        Self {
            status: "",
            original_index: at,
            platform: frame.platform.as_deref(),
            addr_mode: Some(frame.addr_mode).filter(|mode| *mode != AddrMode::Abs),
            instruction_addr: frame.instruction_addr,
            adjust_instruction_addr: frame.adjust_instruction_addr,
            package: frame.package.as_deref(),
            lang: frame.lang.as_deref(),
            symbol: text(&frame.symbol),
            sym_addr: frame.sym_addr,
            function: text(&frame.function),
            filename: text(&frame.filename),
            abs_path: text(&frame.abs_path),
            lineno: frame.lineno,
            trust: frame.trust.as_deref(),
        }
    }

    /// The frame without an answer. A name that the request states is demangled.
    fn unanswered(mut self, status: &'static str) -> Self {
        self.status = status;
        let stated = match (&self.function, &self.symbol) {
            (Some(name), None) | (None, Some(name)) => name.clone(),
            _ => return self,
        };
        if let Cow::Owned(demangled) = symdex_demangle::demangle(stated.as_bytes()) {
            self.symbol = Some(stated);
            self.function = Some(Cow::Owned(demangled));
        }
        self
    }

    /// The frame for `function`.
    fn answered(&self, function: &'r Function) -> Self {
        let path = function.file().filter(|path| !path.is_empty()).map(Cow::Borrowed);
        let path = path.or_else(|| self.abs_path.clone());
        let name = path.as_ref().map(|path| Cow::Owned(file_name(path).to_owned()));
        Self {
            status: "symbolicated",
            lang: language_of(function),
            symbol: function.name().map(Cow::Borrowed),
            sym_addr: None,
            function: function.readable().map(Cow::Borrowed),
            filename: name.or_else(|| self.filename.clone()),
            abs_path: path,
            lineno: function.line,
            ..self.clone()
        }
    }
}

/// The language of a function: that of its name, or else that of the source file by its extension. Symbolicator has the
/// language of the compile unit, which indexes do not keep. A function of C in a header has none here.
fn language_of(function: &Function) -> Option<&'static str> {
    let of_name = function.name().and_then(|name| symdex_demangle::language(name.as_bytes()));
    of_name.map(Language::name).or_else(|| {
        let extension = function.file()?.rsplit('.').next()?;
        Some(match extension {
            "c" => "c",
            "cc" | "cpp" | "cxx" | "c++" | "C" | "hh" | "hpp" | "hxx" => "cpp",
            "m" => "objc",
            "mm" => "objcpp",
            "rs" => "rust",
            "swift" => "swift",
            _ => return None,
        })
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

struct ModuleList<'r>(&'r Symbolicated);

impl Serialize for ModuleList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let modules = self.0.modules.modules.iter().zip(&self.0.outcomes);
        serializer.collect_seq(modules.map(|(module, outcome)| ModuleView::new(module, outcome)))
    }
}

#[derive(Serialize)]
struct ModuleView<'r> {
    debug_status: &'static str,
    /// Why the status is `other`. Symbolicator does not have this.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    features: Features,
    arch: &'r str,
    #[serde(flatten)]
    module: &'r Module,
    /// The stores that were asked, if the request wants to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateView<'r>>,
}

/// A store that was asked for a module.
#[derive(Serialize)]
struct CandidateView<'r> {
    /// The URL of the store.
    source: &'r str,
    /// Where the index is, or would be, in the store.
    location: &'r str,
    download: DownloadView,
    #[serde(skip_serializing_if = "Option::is_none")]
    debug: Option<UseView>,
}

/// Whether the store has the index.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum DownloadView {
    Ok { features: Features },
    NotFound,
    Malformed,
    Error { details: &'static str },
}

/// Whether the index answers.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum UseView {
    Ok,
    Malformed,
}

/// What the index of a module has. It has neither unwind information nor sources.
#[derive(Clone, Copy, Default, Serialize)]
struct Features {
    has_debug_info: bool,
    has_unwind_info: bool,
    has_symbols: bool,
    has_sources: bool,
}

impl<'r> ModuleView<'r> {
    fn new(module: &'r Module, outcome: &'r ModuleOutcome) -> Self {
        let found = outcome.found.as_ref().filter(|_| outcome.status() == "found");
        let features = |&IndexFeatures { has_debug_info, has_symbols, .. }: &IndexFeatures| Features {
            has_debug_info,
            has_symbols,
            ..Features::default()
        };
        let arch = match found.map(|found| found.arch.name.as_str()) {
            Some("i386") => "x86",
            Some(name) => name,
            None => "unknown",
        };
        let features = found.map(features).unwrap_or_default();
        let is_malformed = outcome.status() == "malformed";
        let candidate = |candidate| CandidateView::new(candidate, features, is_malformed);
        let candidates = outcome.candidates.iter().map(candidate).collect();
        Self { debug_status: outcome.status(), reason: outcome.reason(), features, arch, module, candidates }
    }
}

impl<'r> CandidateView<'r> {
    fn new(candidate: &'r Candidate, features: Features, is_malformed: bool) -> Self {
        let (download, debug) = match candidate.outcome {
            CandidateOutcome::Found if is_malformed => {
                (DownloadView::Ok { features }, Some(UseView::Malformed))
            }
            CandidateOutcome::Found => (DownloadView::Ok { features }, Some(UseView::Ok)),
            CandidateOutcome::Absent => (DownloadView::NotFound, None),
            CandidateOutcome::Damaged => (DownloadView::Malformed, None),
            CandidateOutcome::Failed => (
                DownloadView::Error { details: "the store has failed; the log of the server says why" },
                None,
            ),
        };
        Self { source: &candidate.store, location: &candidate.location, download, debug }
    }
}

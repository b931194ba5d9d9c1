//! The answers, with members in Eliot's order. Text is made while it is written, so that only the written answer takes
//! memory.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::{Serialize, Serializer};
use symdex::ImageOffset;
use symdex_report::Function;

use super::lookup::Lookup;
use super::request::{Frame, Job};

/// The answer of version 5.
#[derive(Serialize)]
pub(super) struct ResponseV5<'r> {
    results: Vec<JobResult<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    debug: Option<Debug>,
}

impl<'r> ResponseV5<'r> {
    pub(super) fn new(jobs: &'r [Job], lookup: &'r Lookup<'r>, debug: Option<Debug>) -> Self {
        let result =
            |job| JobResult { stacks: Stacks { job, lookup }, found_modules: FoundModules { job, lookup } };
        Self { results: jobs.iter().map(result).collect(), debug }
    }
}

#[derive(Serialize)]
struct JobResult<'r> {
    stacks: Stacks<'r>,
    found_modules: FoundModules<'r>,
}

struct Stacks<'r> {
    job: &'r Job,
    lookup: &'r Lookup<'r>,
}

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { job, lookup } = *self;
        serializer.collect_seq(job.stacks.iter().map(|stack| Stack { job, lookup, stack }))
    }
}

struct Stack<'r> {
    job: &'r Job,
    lookup: &'r Lookup<'r>,
    stack: &'r [Frame],
}

impl Serialize for Stack<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frame = |(at, frame): (usize, &Frame)| FrameView::new(at, *frame, self.job, self.lookup);
        serializer.collect_seq(self.stack.iter().enumerate().map(frame))
    }
}

/// A frame. Without an answer, it has only the first three members.
#[derive(Serialize)]
struct FrameView<'r> {
    frame: usize,
    module: &'r str,
    module_offset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Cow<'r, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_offset: Option<String>,
    #[serde(flatten)]
    place: FileAndLine<'r>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<Inline<'r>>,
}

/// A function that is inlined into the function of its frame.
#[derive(Serialize)]
struct Inline<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Cow<'r, str>>,
    #[serde(flatten)]
    place: FileAndLine<'r>,
}

#[derive(Default, Serialize)]
struct FileAndLine<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'r, str>>,
    /// Only together with a file. Line 0 is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'r> FileAndLine<'r> {
    fn of(function: &'r Function) -> Self {
        let file = function.file().filter(|file| !file.is_empty()).map(Cow::Borrowed);
        let line = function.line.filter(|line| *line != 0 && file.is_some());
        Self { file, line }
    }
}

impl<'r> FrameView<'r> {
    fn new(at: usize, frame: Frame, job: &'r Job, lookup: &'r Lookup<'r>) -> Self {
        let (module, _) = job.module_of(frame);
        let module = if module.is_empty() { "<unknown>" } else { module };
        let hex = |offset: u64| format!("{offset:#x}");
        let module_offset = frame.offset.map_or_else(|| "-0x1".to_owned(), hex);
        let Some((concrete, inlined)) = lookup.functions(job, frame).split_last() else {
            let (function, place, inlines) = (None, FileAndLine::default(), Vec::new());
            return Self {
                frame: at,
                module,
                module_offset,
                function,
                function_offset: None,
                place,
                inlines,
            };
        };
        let distance = frame.offset.and_then(|offset| concrete.distance(ImageOffset(offset)));
        let inline = |function: &'r Function| Inline {
            function: function.readable().map(Cow::Borrowed),
            place: FileAndLine::of(function),
        };
        Self {
            frame: at,
            module,
            module_offset,
            function: concrete.readable().map(Cow::Borrowed),
            function_offset: distance.map(hex),
            place: FileAndLine::of(concrete),
            inlines: inlined.iter().map(inline).collect(),
        }
    }
}

/// Whether each module of a job was found, by `name/debug id`.
struct FoundModules<'r> {
    job: &'r Job,
    lookup: &'r Lookup<'r>,
}

impl Serialize for FoundModules<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seen = HashSet::new();
        let modules = self.job.modules.iter().filter(|module| seen.insert(*module));
        let found =
            |(name, id): &(String, String)| (format!("{name}/{id}"), self.lookup.is_found((name, id)));
        serializer.collect_map(modules.map(found))
    }
}

/// What the header `Debug` adds. Nothing is downloaded or converted while a request waits, so that these parts are 0.
#[derive(Serialize)]
pub(super) struct Debug {
    /// In seconds, as all times.
    time: f64,
    modules: DebugModules,
    downloads: Zero,
    cache_lookups: CacheLookups,
    parse_sym: ZeroTime,
    save_symcache: ZeroTime,
}

#[derive(Serialize)]
struct DebugModules {
    count: u64,
    /// How many jobs have each module.
    stacks_per_module: BTreeMap<String, u64>,
}

#[derive(Default, Serialize)]
struct Zero {
    count: u64,
    size: u64,
    time: f64,
}

#[derive(Default, Serialize)]
struct ZeroTime {
    time: f64,
}

#[derive(Serialize)]
struct CacheLookups {
    count: usize,
    hits: usize,
    time: f64,
}

impl Debug {
    /// `lookups` are the modules that were looked up, those that were found, and how long it took.
    pub(super) fn new(
        time: Duration,
        jobs_of_module: BTreeMap<String, u64>,
        lookups: (usize, usize, Duration),
    ) -> Self {
        let (count, hits, lookup_time) = lookups;
        Self {
            time: time.as_secs_f64(),
            modules: DebugModules { count: jobs_of_module.values().sum(), stacks_per_module: jobs_of_module },
            downloads: Zero::default(),
            cache_lookups: CacheLookups { count, hits, time: lookup_time.as_secs_f64() },
            parse_sym: ZeroTime::default(),
            save_symcache: ZeroTime::default(),
        }
    }
}

/// The answer of version 4.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseV4<'r> {
    symbolicated_stacks: StackTexts<'r>,
    known_modules: Vec<Option<bool>>,
}

impl<'r> ResponseV4<'r> {
    pub(super) fn new(job: &'r Job, lookup: &'r Lookup<'r>) -> Self {
        let known = job.modules.iter().map(|(name, id)| lookup.is_found((name, id)));
        Self { known_modules: known.collect(), symbolicated_stacks: StackTexts { job, lookup } }
    }
}

struct StackTexts<'r> {
    job: &'r Job,
    lookup: &'r Lookup<'r>,
}

impl Serialize for StackTexts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { job, lookup } = *self;
        serializer.collect_seq(job.stacks.iter().map(|stack| StackText { job, lookup, stack }))
    }
}

struct StackText<'r> {
    job: &'r Job,
    lookup: &'r Lookup<'r>,
    stack: &'r [Frame],
}

impl Serialize for StackText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.stack.iter().map(|frame| {
            let FrameView { function, module, module_offset, .. } =
                FrameView::new(0, *frame, self.job, self.lookup);
            format!("{} (in {module})", function.as_deref().unwrap_or(&module_offset))
        }))
    }
}

//! Reading the jobs of a request. What is wrong with one is the title of the answer, in Eliot's words: its clients may
//! compare them.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

use crate::problem::Problem;

/// How many jobs a request may have.
const MAX_JOBS: usize = 10;

/// How many modules, stacks and frames a request may have together.
const MAX_ITEMS: usize = 1_000_000;

/// Stacks, and the modules that their frames lie in.
#[derive(Default)]
pub(super) struct Job {
    /// The name and the debug id of each module.
    pub(super) modules: Vec<(String, String)>,
    pub(super) stacks: Vec<Vec<Frame>>,
}

/// A frame of a stack.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// The position of its module in the job; `None` if the frame lies in no module.
    pub(super) module: Option<usize>,
    /// The offset in the module; `None` for -1.
    pub(super) offset: Option<u64>,
}

impl Job {
    /// The name and the debug id of the module of `frame`; both are empty if it lies in none.
    pub(super) fn module_of(&self, frame: Frame) -> (&str, &str) {
        let module = frame.module.and_then(|at| self.modules.get(at));
        module.map_or(("", ""), |(name, id)| (name, id))
    }
}

/// Reads the jobs of version 5: `{"jobs": [...]}`, or one job.
///
/// # Errors
///
/// A problem whose title says what is wrong.
pub(super) fn jobs(bytes: &[u8]) -> Result<Vec<Job>, Problem> {
    let reader = Reader::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let payload = Payload(&reader).deserialize(&mut deserializer);
    let payload = payload.and_then(|payload| deserializer.end().map(|()| payload));
    let (jobs, job) = payload.map_err(|error| reader.problem(&error))?;
    let jobs = jobs.unwrap_or_else(|| vec![job]);
    if jobs.len() > MAX_JOBS {
        let title = format!("please limit number of jobs in a single request to <= {MAX_JOBS}");
        return Err(Problem::bad_request("").titled(title));
    }
    jobs.into_iter().enumerate().map(|(at, job)| job.checked(at)).collect()
}

/// Reads the job of version 4.
///
/// # Errors
///
/// A problem whose title says what is wrong.
pub(super) fn job(bytes: &[u8]) -> Result<Job, Problem> {
    let reader = Reader::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let job = JobReader(&reader).deserialize(&mut deserializer);
    let job = job.and_then(|job| deserializer.end().map(|()| job));
    job.map_err(|error| reader.problem(&error))?.checked(0)
}

/// A job as it was read: members may be missing, and indexes are not compared with the number of modules.
#[derive(Default)]
struct UncheckedJob {
    modules: Option<Vec<(String, String)>>,
    stacks: Option<Vec<Vec<(i64, Option<u64>)>>>,
}

impl UncheckedJob {
    fn checked(self, job: usize) -> Result<Job, Problem> {
        let problem = |title: String| Problem::bad_request("").titled(title);
        let missing = |what| problem(format!("job {job} is invalid: no {what} specified"));
        let stacks = self.stacks.ok_or_else(|| missing("stacks"))?;
        let modules = self.modules.ok_or_else(|| missing("memoryMap"))?;
        let invalid = |what: String| problem(format!("job {job} has invalid stacks: {what}"));
        if stacks.is_empty() {
            return Err(invalid("no stacks specified".to_owned()));
        }
        let mut checked = Vec::with_capacity(stacks.len());
        for (at, stack) in stacks.into_iter().enumerate() {
            let frame = |(frame, (index, offset)): (usize, (i64, Option<u64>))| {
                let module = match index {
                    -1 => None,
                    index => {
                        Some(usize::try_from(index).ok().filter(|index| *index < modules.len()).ok_or_else(
                            || {
                                invalid(format!(
                                    "stack {at} frame {frame} has a module_index that isn't in modules"
                                ))
                            },
                        )?)
                    }
                };
                Ok(Frame { module, offset })
            };
            checked.push(stack.into_iter().enumerate().map(frame).collect::<Result<_, Problem>>()?);
        }
        Ok(Job { modules, stacks: checked })
    }
}

/// What is read at the moment. If it is not what is expected, this is the title of the answer.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Job,
    Jobs,
    TooMany,
    Modules,
    Module(usize),
    ModuleName(usize),
    ModuleId(usize),
    Stacks,
    Stack(usize),
    Frame(usize, usize),
    Index(usize, usize),
    Offset(usize, usize),
}

#[derive(Default)]
struct Reader {
    job: Cell<usize>,
    place: Cell<Place>,
    items: Cell<usize>,
}

impl Reader {
    /// The problem for an error that was found at the present place.
    fn problem(&self, error: &serde_json::Error) -> Problem {
        let problem = Problem::bad_request(error.to_string());
        if !error.is_data() {
            return problem.titled("Payload is not valid JSON");
        }
        let job = self.job.get();
        let modules = |what: String| format!("job {job} has invalid modules: {what}");
        let stacks = |what: String| format!("job {job} has invalid stacks: {what}");
        problem.titled(match self.place.get() {
            Place::Job => format!("job {job} is invalid"),
            Place::Jobs => "jobs must be a list".to_owned(),
            Place::TooMany => {
                format!("please limit modules, stacks and frames in a request to <= {MAX_ITEMS}")
            }
            Place::Modules => modules("modules must be a list".to_owned()),
            Place::Module(at) => {
                modules(format!("module index {at} does not have a debug_filename and debug_id"))
            }
            Place::ModuleName(at) => modules(format!("module index {at} has an invalid debug_filename")),
            Place::ModuleId(at) => modules(format!("module index {at} has an invalid debug_id")),
            Place::Stacks => stacks("stacks must be a list of lists".to_owned()),
            Place::Stack(at) => stacks(format!("stack {at} is not a list")),
            Place::Frame(at, frame) => stacks(format!("stack {at} frame {frame} is not a list of two items")),
            Place::Index(at, frame) => {
                stacks(format!("stack {at} frame {frame} has an invalid module_index"))
            }
            Place::Offset(at, frame) => {
                stacks(format!("stack {at} frame {frame} has an invalid module_offset"))
            }
        })
    }

    /// Counts a module, a stack or a frame.
    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        self.items.set(self.items.get() + 1);
        if self.items.get() <= MAX_ITEMS {
            return Ok(());
        }
        self.place.set(Place::TooMany);
        Err(E::custom("the request is too large"))
    }

    /// Reads the rest of a list. `element` reads one, whose place is `place`.
    fn list<'de, A: SeqAccess<'de>, T>(
        &self,
        seq: &mut A,
        place: impl Fn(usize) -> Place,
        mut element: impl FnMut(&mut A, usize) -> Result<Option<T>, A::Error>,
    ) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        loop {
            self.place.set(place(list.len()));
            match element(seq, list.len())? {
                Some(read) => list.push(read),
                None => return Ok(list),
            }
            self.count()?;
        }
    }
}

/// Implements [`DeserializeSeed`] for a reader of a list or an object: other values are errors of the present place.
macro_rules! reads {
    ($reader:ty, $read:ty, $visit:ident, $access:ident, $deserialize:ident, $expected:literal) => {
        impl<'de> DeserializeSeed<'de> for $reader {
            type Value = $read;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<$read, D::Error> {
                deserializer.$deserialize(self)
            }
        }

        impl<'de> Visitor<'de> for $reader {
            type Value = $read;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expected)
            }

            fn $visit<A: $access<'de>>(self, access: A) -> Result<$read, A::Error> {
                self.read(access)
            }
        }
    };
}

/// `{"jobs": [...]}`, or one job.
struct Payload<'r>(&'r Reader);

reads!(
    Payload<'_>,
    (Option<Vec<UncheckedJob>>, UncheckedJob),
    visit_map,
    MapAccess,
    deserialize_map,
    "an object"
);

impl Payload<'_> {
    fn read<'de, A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> Result<(Option<Vec<UncheckedJob>>, UncheckedJob), A::Error> {
        let (mut jobs, mut job) = (None, UncheckedJob::default());
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key == "jobs" {
                self.0.place.set(Place::Jobs);
                jobs = Some(map.next_value_seed(Jobs(self.0))?);
                self.0.job.set(0);
            } else {
                job.read_member(self.0, &key, &mut map)?;
            }
        }
        Ok((jobs, job))
    }
}

struct Jobs<'r>(&'r Reader);

reads!(Jobs<'_>, Vec<UncheckedJob>, visit_seq, SeqAccess, deserialize_seq, "a list of jobs");

impl Jobs<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<UncheckedJob>, A::Error> {
        self.0.list(
            &mut seq,
            |_| Place::Job,
            |seq, at| {
                self.0.job.set(at);
                seq.next_element_seed(JobReader(self.0))
            },
        )
    }
}

struct JobReader<'r>(&'r Reader);

reads!(JobReader<'_>, UncheckedJob, visit_map, MapAccess, deserialize_map, "a job");

impl JobReader<'_> {
    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<UncheckedJob, A::Error> {
        let mut job = UncheckedJob::default();
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            job.read_member(self.0, &key, &mut map)?;
        }
        Ok(job)
    }
}

impl UncheckedJob {
    fn read_member<'de, A: MapAccess<'de>>(
        &mut self,
        reader: &Reader,
        key: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        match key {
            "memoryMap" => {
                reader.place.set(Place::Modules);
                self.modules = Some(map.next_value_seed(Modules(reader))?);
            }
            "stacks" => {
                reader.place.set(Place::Stacks);
                self.stacks = Some(map.next_value_seed(Stacks(reader))?);
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        reader.place.set(Place::Job);
        Ok(())
    }
}

struct Modules<'r>(&'r Reader);

reads!(Modules<'_>, Vec<(String, String)>, visit_seq, SeqAccess, deserialize_seq, "a list of modules");

impl Modules<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<(String, String)>, A::Error> {
        self.0.list(&mut seq, Place::Module, |seq, at| seq.next_element_seed(Module(self.0, at)))
    }
}

struct Module<'r>(&'r Reader, usize);

reads!(Module<'_>, (String, String), visit_seq, SeqAccess, deserialize_seq, "a name and a debug id");

impl Module<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<(String, String), A::Error> {
        let Self(reader, at) = self;
        let short = || A::Error::custom("expected a name and a debug id");
        // Whether there are two items is what Eliot looks at first.
        reader.place.set(Place::ModuleName(at));
        let name: Option<String> = seq.next_element()?;
        reader.place.set(Place::ModuleId(at));
        let id: Option<String> = seq.next_element()?;
        if id.as_ref().is_some_and(|id| !id.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            return Err(A::Error::custom("expected hexadecimal digits"));
        }
        reader.place.set(Place::Module(at));
        let has_more = seq.next_element::<IgnoredAny>()?.is_some();
        name.zip(id).filter(|_| !has_more).ok_or_else(short)
    }
}

struct Stacks<'r>(&'r Reader);

reads!(Stacks<'_>, Vec<Vec<(i64, Option<u64>)>>, visit_seq, SeqAccess, deserialize_seq, "a list of stacks");

impl Stacks<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Vec<(i64, Option<u64>)>>, A::Error> {
        self.0.list(&mut seq, Place::Stack, |seq, at| seq.next_element_seed(Stack(self.0, at)))
    }
}

struct Stack<'r>(&'r Reader, usize);

reads!(Stack<'_>, Vec<(i64, Option<u64>)>, visit_seq, SeqAccess, deserialize_seq, "a list of frames");

impl Stack<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<(i64, Option<u64>)>, A::Error> {
        let Self(reader, stack) = self;
        let place = |at| Place::Frame(stack, at);
        reader.list(&mut seq, place, |seq, at| seq.next_element_seed(FrameReader(reader, stack, at)))
    }
}

struct FrameReader<'r>(&'r Reader, usize, usize);

reads!(
    FrameReader<'_>,
    (i64, Option<u64>),
    visit_seq,
    SeqAccess,
    deserialize_seq,
    "a module index and an offset"
);

impl FrameReader<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<(i64, Option<u64>), A::Error> {
        let Self(reader, stack, at) = self;
        reader.place.set(Place::Index(stack, at));
        let index: Option<i64> = seq.next_element()?;
        reader.place.set(Place::Offset(stack, at));
        let offset: Option<Offset> = seq.next_element()?;
        reader.place.set(Place::Frame(stack, at));
        let has_more = seq.next_element::<IgnoredAny>()?.is_some();
        let wrong = || A::Error::custom("expected a module index and an offset");
        index.zip(offset.map(|offset| offset.0)).filter(|_| !has_more).ok_or_else(wrong)
    }
}

/// The offset of a frame; `None` for -1.
struct Offset(Option<u64>);

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(OffsetVisitor)
    }
}

struct OffsetVisitor;

impl Visitor<'_> for OffsetVisitor {
    type Value = Offset;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an offset, or -1")
    }

    fn visit_u64<E>(self, offset: u64) -> Result<Offset, E> {
        Ok(Offset(Some(offset)))
    }

    fn visit_i64<E: serde::de::Error>(self, offset: i64) -> Result<Offset, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(offset), &self);
        if offset == -1 { Ok(Offset(None)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use http_body_util::BodyExt as _;

    use super::*;

    fn title(problem: Problem) -> String {
        let body = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(problem.into_response().into_body().collect())
            .expect("a body");
        let details: serde_json::Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        details["title"].as_str().expect("a title").to_owned()
    }

    #[test]
    fn what_is_wrong_is_said_in_words_of_eliot() {
        let job = |modules: &str, stacks: &str| format!(r#"{{"stacks": {stacks}, "memoryMap": {modules}}}"#);
        let modules = r#"[["abc.so", "ABC"]]"#;
        for (body, expected) in [
            (String::new(), "Payload is not valid JSON"),
            (r#"{"stacks": [[[0, 1]]"#.to_owned(), "Payload is not valid JSON"),
            (format!("{} x", job(modules, "[[[0, 1]]]")), "Payload is not valid JSON"),
            ("[]".to_owned(), "job 0 is invalid"),
            ("{}".to_owned(), "job 0 is invalid: no stacks specified"),
            (r#"{"stacks": [[]]}"#.to_owned(), "job 0 is invalid: no memoryMap specified"),
            (r#"{"jobs": 1}"#.to_owned(), "jobs must be a list"),
            (r#"{"jobs": [1]}"#.to_owned(), "job 0 is invalid"),
            (
                format!(r#"{{"jobs": [{}, {{"memoryMap": []}}]}}"#, job(modules, "[[]]")),
                "job 1 is invalid: no stacks specified",
            ),
            (job("123", "[[]]"), "job 0 has invalid modules: modules must be a list"),
            (
                job(r#"["abc"]"#, "[[]]"),
                "job 0 has invalid modules: module index 0 does not have a debug_filename and debug_id",
            ),
            (
                job(r#"[["abc", "abc"], ["abc"]]"#, "[[]]"),
                "job 0 has invalid modules: module index 1 does not have a debug_filename and debug_id",
            ),
            (
                job(r#"[["abc", "abc", 1]]"#, "[[]]"),
                "job 0 has invalid modules: module index 0 does not have a debug_filename and debug_id",
            ),
            (
                job(r#"[[1, "abc"]]"#, "[[]]"),
                "job 0 has invalid modules: module index 0 has an invalid debug_filename",
            ),
            (
                job(r#"[["a", "xyz"]]"#, "[[]]"),
                "job 0 has invalid modules: module index 0 has an invalid debug_id",
            ),
            (job(modules, "\"abc\""), "job 0 has invalid stacks: stacks must be a list of lists"),
            (job(modules, "[]"), "job 0 has invalid stacks: no stacks specified"),
            (job(modules, "[[], \"abc\"]"), "job 0 has invalid stacks: stack 1 is not a list"),
            (job(modules, "[[0]]"), "job 0 has invalid stacks: stack 0 frame 0 is not a list of two items"),
            (job(modules, "[[[0]]]"), "job 0 has invalid stacks: stack 0 frame 0 is not a list of two items"),
            (
                job(modules, "[[[0, 1, 2]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 is not a list of two items",
            ),
            (
                job(modules, "[[[0, 1], [\"abc\", 0]]]"),
                "job 0 has invalid stacks: stack 0 frame 1 has an invalid module_index",
            ),
            (
                job(modules, "[[[-2, 0]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 has a module_index that isn't in modules",
            ),
            (
                job(modules, "[[[1, 0]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 has a module_index that isn't in modules",
            ),
            (
                job(modules, "[[[0, \"abc\"]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 has an invalid module_offset",
            ),
            (
                job(modules, "[[[0, 1.5]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 has an invalid module_offset",
            ),
            (
                job(modules, "[[[0, -2]]]"),
                "job 0 has invalid stacks: stack 0 frame 0 has an invalid module_offset",
            ),
            (
                format!(r#"{{"jobs": [{}]}}"#, vec![job(modules, "[[]]"); 11].join(",")),
                "please limit number of jobs in a single request to <= 10",
            ),
            (
                job(modules, &format!("[{}[]]", "[],".repeat(MAX_ITEMS))),
                "please limit modules, stacks and frames in a request to <= 1000000",
            ),
        ] {
            let problem = jobs(body.as_bytes()).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!(title(problem), expected, "{:.200}", body);
        }
    }

    #[test]
    fn indexes_and_offsets_of_minus_one_and_other_members_are_read() {
        let body = br#"{"version": 5, "memoryMap": [["a (b)", ""]], "stacks": [[[-1, 1], [0, -1], [0, 18446744073709551615]], []]}"#;
        let jobs = jobs(body).expect("a job");
        let frames: Vec<_> = jobs[0].stacks[0].iter().map(|frame| (frame.module, frame.offset)).collect();
        assert_eq!(frames, [(None, Some(1)), (Some(0), None), (Some(0), Some(u64::MAX))]);
        assert_eq!((jobs[0].stacks.len(), jobs[0].module_of(jobs[0].stacks[0][1])), (2, ("a (b)", "")));
    }
}

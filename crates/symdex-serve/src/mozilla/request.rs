//! The jobs of a request. What is wrong with one is the title of the answer, in Eliot's words: its clients may compare
//! them.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Number;
use serde_path_to_error::{Path, Segment};

use crate::problem::Problem;

/// How many jobs a request may have.
const MAX_JOBS: usize = 10;
/// How many lists and objects a request may have: each module, stack and frame is one. So what is read takes at most
/// some times the memory of the body.
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
    let Payload { jobs, modules, stacks } = read(bytes)?;
    let jobs = jobs.unwrap_or_else(|| vec![UncheckedJob { modules, stacks }]);
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
    read::<UncheckedJob>(bytes)?.checked(0)
}

/// `{"jobs": [...]}`, or one job.
#[derive(Deserialize)]
struct Payload {
    jobs: Option<Vec<UncheckedJob>>,
    #[serde(rename = "memoryMap")]
    modules: Option<Vec<(String, HexDigits)>>,
    stacks: Option<Vec<Vec<UncheckedFrame>>>,
}

/// A job as it was read: members may be missing, and indexes are not compared with the number of modules.
#[derive(Deserialize)]
struct UncheckedJob {
    #[serde(rename = "memoryMap")]
    modules: Option<Vec<(String, HexDigits)>>,
    stacks: Option<Vec<Vec<UncheckedFrame>>>,
}

/// The index of the module of a frame, which may be any number, and the offset.
type UncheckedFrame = (i64, Offset);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct HexDigits(String);

impl TryFrom<String> for HexDigits {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_hex { Ok(Self(text)) } else { Err("expected hexadecimal digits") }
    }
}

/// The offset of a frame; `None` for -1.
#[derive(Deserialize)]
#[serde(try_from = "Number")]
struct Offset(Option<u64>);

impl TryFrom<Number> for Offset {
    type Error = &'static str;

    fn try_from(number: Number) -> Result<Self, &'static str> {
        match (number.as_u64(), number.as_i64()) {
            (Some(offset), _) => Ok(Self(Some(offset))),
            (None, Some(-1)) => Ok(Self(None)),
            _ => Err("expected an offset, or -1"),
        }
    }
}

/// Reads all of `bytes`, without a tree of values, which would take many times the memory of the text.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > MAX_ITEMS {
        let title = format!("please limit modules, stacks and frames in a request to <= {MAX_ITEMS}");
        return Err(Problem::bad_request("the request is too large").titled(title));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let problem = Problem::bad_request(error.to_string());
        // serde_json takes a list with too many items for invalid JSON.
        if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
            return problem.titled("Payload is not valid JSON");
        }
        // Reading with the path takes twice as long, so that only errors are read so.
        let again = &mut serde_json::Deserializer::from_slice(bytes);
        let place = serde_path_to_error::deserialize::<_, T>(again).err();
        problem.titled(place.map_or("Payload is not valid JSON".to_owned(), |error| title(error.path())))
    })
}

/// The title of the answer if `path` has a value of another type than expected.
fn title(path: &Path) -> String {
    let (mut job, mut member, mut at) = (0, None, Vec::new());
    for segment in path {
        match segment {
            Segment::Map { key } => member = Some(key.as_str()),
            Segment::Seq { index } if member == Some("jobs") => (job, member) = (*index, None),
            Segment::Seq { index } => at.push(*index),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    let modules = |what: String| format!("job {job} has invalid modules: {what}");
    let stacks = |what: String| format!("job {job} has invalid stacks: {what}");
    match (member, at.as_slice()) {
        (Some("jobs"), _) => "jobs must be a list".to_owned(),
        (Some("memoryMap"), []) => modules("modules must be a list".to_owned()),
        (Some("memoryMap"), [module]) => {
            modules(format!("module index {module} does not have a debug_filename and debug_id"))
        }
        (Some("memoryMap"), [module, 0, ..]) => {
            modules(format!("module index {module} has an invalid debug_filename"))
        }
        (Some("memoryMap"), [module, ..]) => {
            modules(format!("module index {module} has an invalid debug_id"))
        }
        (Some("stacks"), []) => stacks("stacks must be a list of lists".to_owned()),
        (Some("stacks"), [stack]) => stacks(format!("stack {stack} is not a list")),
        (Some("stacks"), [stack, frame]) => {
            stacks(format!("stack {stack} frame {frame} is not a list of two items"))
        }
        (Some("stacks"), [stack, frame, 0, ..]) => {
            stacks(format!("stack {stack} frame {frame} has an invalid module_index"))
        }
        (Some("stacks"), [stack, frame, ..]) => {
            stacks(format!("stack {stack} frame {frame} has an invalid module_offset"))
        }
        _ => format!("job {job} is invalid"),
    }
}

impl UncheckedJob {
    fn checked(self, job: usize) -> Result<Job, Problem> {
        let problem = |title: String| Problem::bad_request("").titled(title);
        let missing = |what| problem(format!("job {job} is invalid: no {what} specified"));
        let stacks = self.stacks.ok_or_else(|| missing("stacks"))?;
        let modules = self.modules.ok_or_else(|| missing("memoryMap"))?;
        let modules: Vec<_> = modules.into_iter().map(|(name, HexDigits(id))| (name, id)).collect();
        let invalid = |what: String| problem(format!("job {job} has invalid stacks: {what}"));
        if stacks.is_empty() {
            return Err(invalid("no stacks specified".to_owned()));
        }
        let mut checked = Vec::with_capacity(stacks.len());
        for (at, stack) in stacks.into_iter().enumerate() {
            let frame = |(frame, (index, Offset(offset))): (usize, UncheckedFrame)| {
                let module = usize::try_from(index).ok().filter(|index| *index < modules.len());
                if module.is_none() && index != -1 {
                    let what = format!("stack {at} frame {frame} has a module_index that isn't in modules");
                    return Err(invalid(what));
                }
                Ok(Frame { module, offset })
            };
            checked.push(stack.into_iter().enumerate().map(frame).collect::<Result<_, Problem>>()?);
        }
        Ok(Job { modules, stacks: checked })
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

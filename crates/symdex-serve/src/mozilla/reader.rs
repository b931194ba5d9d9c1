//! Reads jobs from JSON, without a tree of values: that would take many times the memory of the text.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

use crate::problem::Problem;

/// How many modules, stacks and frames a request may have together.
pub(super) const MAX_ITEMS: usize = 1_000_000;

/// The index of the module of a frame, which may be any number, and the offset; `None` for -1.
pub(super) type UncheckedFrame = (i64, Option<u64>);

/// A job as it was read: members may be missing, and indexes are not compared with the number of modules.
#[derive(Default)]
pub(super) struct UncheckedJob {
    pub(super) modules: Option<Vec<(String, String)>>,
    pub(super) stacks: Option<Vec<Vec<UncheckedFrame>>>,
}

/// Reads `{"jobs": [...]}`, or one job.
///
/// # Errors
///
/// A problem whose title says what is wrong.
pub(super) fn payload(bytes: &[u8]) -> Result<(Option<Vec<UncheckedJob>>, UncheckedJob), Problem> {
    let reader = Reader::default();
    reader.read(bytes, Payload(&reader))
}

/// Reads one job.
///
/// # Errors
///
/// A problem whose title says what is wrong.
pub(super) fn job(bytes: &[u8]) -> Result<UncheckedJob, Problem> {
    let reader = Reader::default();
    reader.read(bytes, JobReader(&reader))
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
    /// Reads all of `bytes`.
    fn read<'de, T>(
        &self,
        bytes: &'de [u8],
        seed: impl DeserializeSeed<'de, Value = T>,
    ) -> Result<T, Problem> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let read = seed.deserialize(&mut deserializer);
        let read = read.and_then(|read| deserializer.end().map(|()| read));
        read.map_err(|error| self.problem(&error))
    }

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

reads!(Stacks<'_>, Vec<Vec<UncheckedFrame>>, visit_seq, SeqAccess, deserialize_seq, "a list of stacks");

impl Stacks<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Vec<UncheckedFrame>>, A::Error> {
        self.0.list(&mut seq, Place::Stack, |seq, at| seq.next_element_seed(Stack(self.0, at)))
    }
}

struct Stack<'r>(&'r Reader, usize);

reads!(Stack<'_>, Vec<UncheckedFrame>, visit_seq, SeqAccess, deserialize_seq, "a list of frames");

impl Stack<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<UncheckedFrame>, A::Error> {
        let Self(reader, stack) = self;
        let place = |at| Place::Frame(stack, at);
        reader.list(&mut seq, place, |seq, at| seq.next_element_seed(FrameReader(reader, stack, at)))
    }
}

struct FrameReader<'r>(&'r Reader, usize, usize);

reads!(
    FrameReader<'_>,
    UncheckedFrame,
    visit_seq,
    SeqAccess,
    deserialize_seq,
    "a module index and an offset"
);

impl FrameReader<'_> {
    fn read<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<UncheckedFrame, A::Error> {
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

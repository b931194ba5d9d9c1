//! Requests of Symbolicator. Unknown members are ignored, as by Symbolicator itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::modules::Module;
use crate::problem::Problem;
use crate::v1::Address;

/// How many frames a request may have.
const MAX_FRAMES: usize = 1_000_000;

/// How many modules, and how many stack traces, a request may have. They take much more memory than the shortest text
/// that states them.
const MAX_LISTED: usize = 1 << 16;

/// Stack traces, and the modules that were loaded. `sources` and `scraping` are ignored: the stores of the server
/// answer.
#[derive(Default, Deserialize)]
pub(super) struct Request {
    /// The number of the POSIX signal that ended the process.
    #[serde(default)]
    pub(super) signal: Option<u32>,
    #[serde(default, alias = "threads", deserialize_with = "bounded::<_, _, MAX_LISTED>")]
    pub(super) stacktraces: Vec<Stacktrace>,
    #[serde(default, deserialize_with = "bounded::<_, _, MAX_LISTED>")]
    pub(super) modules: Vec<Module>,
    #[serde(default)]
    pub(super) options: Options,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Options {
    pub(super) frame_order: FrameOrder,
    /// Whether the answer says which stores were asked for each module.
    pub(super) dif_candidates: bool,
}

/// The order of the frames of a stack trace, in the request and in the answer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FrameOrder {
    /// The innermost frame comes first.
    #[default]
    CalleeFirst,
    CallerFirst,
}

#[derive(Default, Deserialize)]
pub(super) struct Stacktrace {
    #[serde(default)]
    pub(super) thread_id: Option<u64>,
    #[serde(default)]
    pub(super) thread_name: Option<String>,
    #[serde(default)]
    pub(super) is_requesting: Option<bool>,
    /// The registers of the innermost frame.
    #[serde(default)]
    pub(super) registers: BTreeMap<String, Address>,
    #[serde(deserialize_with = "bounded::<_, _, MAX_FRAMES>")]
    pub(super) frames: Vec<Frame>,
}

/// A frame before it is symbolicated. Its members are part of the answer if there is no symbol.
#[derive(Deserialize)]
pub(super) struct Frame {
    #[serde(default)]
    pub(super) platform: Option<String>,
    #[serde(default)]
    pub(super) addr_mode: AddrMode,
    pub(super) instruction_addr: Address,
    /// Whether the address is a return address. Without it, only the first frame of a stack trace has the address of an
    /// instruction.
    #[serde(default)]
    pub(super) adjust_instruction_addr: Option<bool>,
    #[serde(default)]
    pub(super) package: Option<String>,
    #[serde(default)]
    pub(super) lang: Option<String>,
    #[serde(default)]
    pub(super) symbol: Option<String>,
    #[serde(default)]
    pub(super) sym_addr: Option<Address>,
    #[serde(default)]
    pub(super) function: Option<String>,
    #[serde(default)]
    pub(super) filename: Option<String>,
    #[serde(default)]
    pub(super) abs_path: Option<String>,
    #[serde(default)]
    pub(super) lineno: Option<u32>,
    #[serde(default)]
    pub(super) trust: Option<String>,
}

/// What an address counts from: `abs`, or `rel:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AddrMode {
    /// It is an address of the process.
    #[default]
    Abs,
    /// It is an offset in the module with this position.
    Rel(usize),
}

impl FromStr for AddrMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.strip_prefix("rel:") {
            Some(index) => index.parse().map(Self::Rel).map_err(|_| ()),
            None if text == "abs" => Ok(Self::Abs),
            None => Err(()),
        }
    }
}

impl<'de> Deserialize<'de> for AddrMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let wrong = |()| de::Error::invalid_value(de::Unexpected::Str(&text), &"`abs` or `rel:N`");
        text.parse().map_err(wrong)
    }
}

impl Serialize for AddrMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Abs => serializer.serialize_str("abs"),
            Self::Rel(index) => serializer.collect_str(&format_args!("rel:{index}")),
        }
    }
}

/// Reads a list of at most `MAX` elements.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Bounded::<T, MAX>(PhantomData))
}

struct Bounded<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> de::Visitor<'de> for Bounded<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} elements")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            if elements.len() == MAX {
                return Err(de::Error::invalid_length(MAX + 1, &self));
            }
            elements.push(element);
        }
        Ok(elements)
    }
}

impl Request {
    /// Reads the body of `POST /symbolicate`.
    ///
    /// # Errors
    ///
    /// A problem if it is not a request, or has too many frames.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let mut request: Self =
            serde_json::from_slice(bytes).map_err(|error| Problem::bad_request(error.to_string()))?;
        let count: usize = request.stacktraces.iter().map(|stacktrace| stacktrace.frames.len()).sum();
        if count > MAX_FRAMES {
            let detail = format!("found {count} frames; a request may have {MAX_FRAMES}");
            return Err(Problem::bad_request(detail));
        }
        if request.options.frame_order == FrameOrder::CallerFirst {
            request.stacktraces.iter_mut().for_each(|stacktrace| stacktrace.frames.reverse());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded() {
        let read = |member: &str, element: &str, count| {
            let body = format!(r#"{{"{member}": [{}]}}"#, vec![element; count].join(","));
            Request::read(body.as_bytes()).is_ok()
        };
        assert!(read("modules", "{}", MAX_LISTED) && !read("modules", "{}", MAX_LISTED + 1));
        let stacktrace = r#"{"frames": []}"#;
        assert!(read("threads", stacktrace, MAX_LISTED) && !read("threads", stacktrace, MAX_LISTED + 1));
    }

    #[test]
    fn addresses_are_absolute_or_offsets_in_a_module() {
        let read = |text: &str| serde_json::from_str::<AddrMode>(&format!("\"{text}\"")).ok();
        assert_eq!((read("abs"), read("rel:12")), (Some(AddrMode::Abs), Some(AddrMode::Rel(12))));
        for wrong in ["", "rel", "rel:", "rel:-1", "rel:x", "abs:1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(serde_json::to_string(&AddrMode::Rel(3)).expect("JSON"), "\"rel:3\"");
    }
}

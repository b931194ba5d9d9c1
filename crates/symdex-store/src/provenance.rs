//! Who has put an index into a store, and which of two different indexes of one image stays.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use symdex::ImageId;

use crate::folder::IndexFolder;
use crate::json::time_as_text;
use crate::publish::Rank;

/// The most bytes of a provenance as text.
const MAX_TEXT: usize = 1024;
/// The most characters of each word of a provenance.
const MAX_WORD: usize = 128;

/// A file that states who has put an index that is not there, in a folder. No reader can find it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The image.
    pub id: ImageId,
    /// Its path.
    pub location: String,
    /// The time since it was written. `None` if the clock was set back since.
    pub unused: Option<Duration>,
}

/// Who has put an index into a store, and from which input.
///
/// A store keeps it as a line of ASCII text: in a file beside the index (`<id>.provenance`), in the metadata field
/// `symdexprovenance` of an object, or in the metadata of an image in Redis. The index itself does not change. A member
/// that is not known is left out.
///
/// ```
/// use symdex_store::Provenance;
///
/// let text = "received=1795416000;token=ci;client=192.0.2.7;sha256=9b128e78";
/// let provenance = Provenance::parse(text).ok_or("not a provenance")?;
/// assert_eq!(provenance.token.as_deref(), Some("ci"));
/// assert_eq!(provenance.to_string(), text);
/// # Ok::<(), &str>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct Provenance {
    /// When the input was received, in whole seconds.
    #[serde(serialize_with = "time_as_text")]
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub received: SystemTime,
    /// The name of the token that has sent the input.
    pub token: Option<String>,
    /// The address that the input came from. Behind a proxy, that of the proxy.
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub client: Option<IpAddr>,
    /// The SHA-256 of the input, an archive, a debug file or an index, in hexadecimal.
    pub sha256: Option<String>,
    /// Whether the input was not sent, but fetched from a symbol server. If its index has no lines, it need not be
    /// fetched again.
    pub is_fetched: bool,
    /// Whether the input was the index itself, alone or in an archive. The sender has built it, or has said so.
    pub is_index: bool,
}

impl Provenance {
    /// The provenance of an input that was received at this time.
    #[must_use]
    pub fn new(received: SystemTime) -> Self {
        Self { received, token: None, client: None, sha256: None, is_fetched: false, is_index: false }
    }

    /// The provenance of an input that is fetched now from a symbol server.
    #[must_use]
    pub fn fetched() -> Self {
        Self { is_fetched: true, ..Self::new(SystemTime::now()) }
    }

    /// Reads what [`Display`](fmt::Display) writes. Members with other names are ignored. `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let member = |name: &str| {
            let mut members = text.trim_end().split(';').filter_map(|member| member.split_once('='));
            members.find_map(|(found, value)| (found == name).then_some(value))
        };
        let received = Duration::from_secs(member("received")?.parse().ok()?);
        Some(Self {
            received: SystemTime::UNIX_EPOCH.checked_add(received)?,
            token: member("token").map(str::to_owned),
            client: member("client").and_then(|address| address.parse().ok()),
            sha256: member("sha256").map(str::to_owned),
            is_fetched: member("fetched").is_some(),
            is_index: member("index").is_some(),
        })
    }
}

/// Writes letters, digits and `._:-` of a word. A store may keep the text in a header of HTTP.
fn word(text: &str) -> impl fmt::Display {
    let kept = |c: &char| c.is_ascii_alphanumeric() || "._:-".contains(*c);
    text.chars().filter(kept).take(MAX_WORD).collect::<String>()
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.received.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        write!(f, "received={}", received.as_secs())?;
        if let Some(token) = &self.token {
            write!(f, ";token={}", word(token))?;
        }
        if let Some(client) = &self.client {
            write!(f, ";client={client}")?;
        }
        if let Some(sha256) = &self.sha256 {
            write!(f, ";sha256={}", word(sha256))?;
        }
        if self.is_fetched {
            f.write_str(";fetched=yes")?;
        }
        if self.is_index {
            f.write_str(";index=yes")?;
        }
        Ok(())
    }
}

/// Which of two different, whole indexes of one image stays.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The one that is there. If the same token has put both, `More` decides, so that an uploader can send a dSYM after
    /// the stripped binary.
    Keep,
    /// The new one.
    Replace,
    /// The one of the greater [grade](symdex::Metadata::grade). If both have the same, the one with more functions;
    /// then, in this order, the one with more ranges, fewer partial counts, more symbols, more names, executable
    /// segments, readable names, unwind rows, the smaller digest. The result does not depend on the order in which
    /// indexes are put.
    #[default]
    More,
}

const NAMES: [(OnConflict, &str); 3] =
    [(OnConflict::Keep, "keep"), (OnConflict::Replace, "replace"), (OnConflict::More, "more")];

/// Text that is not an [`OnConflict`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected keep, replace or more")]
pub struct ParseOnConflictError;

impl FromStr for OnConflict {
    type Err = ParseOnConflictError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        NAMES.iter().find(|(_, name)| *name == text).map(|(rule, _)| *rule).ok_or(ParseOnConflictError)
    }
}

impl fmt::Display for OnConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(rule, _)| rule == self).map_or("", |(_, name)| name))
    }
}

/// How an index is put into a store.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// Which index stays if the store has a different one. A damaged index is always replaced.
    pub on_conflict: OnConflict,
    /// What the store keeps about the index, if it is written.
    pub provenance: Option<Provenance>,
}

impl PutOptions {
    /// `OnConflict::More`, and no provenance.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which of two different indexes stays.
    #[must_use]
    pub fn on_conflict(self, on_conflict: OnConflict) -> Self {
        Self { on_conflict, ..self }
    }

    /// Sets what the store keeps about the index.
    #[must_use]
    pub fn provenance(self, provenance: Option<Provenance>) -> Self {
        Self { provenance, ..self }
    }
}

/// Whether an index of the rank `new` replaces a different, whole one of the rank `existing`. `put_by` is what the
/// store keeps about the existing index.
pub(crate) fn replaces(
    options: &PutOptions,
    new: &Rank,
    existing: &Rank,
    put_by: Option<&Provenance>,
) -> bool {
    match options.on_conflict {
        OnConflict::Replace => true,
        OnConflict::Keep if !is_own(options, put_by) => false,
        OnConflict::Keep | OnConflict::More => new > existing,
    }
}

/// Whether the token of `options` has put the existing index, about which its store keeps `put_by`.
pub(crate) fn is_own(options: &PutOptions, put_by: Option<&Provenance>) -> bool {
    let token = |provenance: Option<&Provenance>| provenance.and_then(|one| one.token.clone());
    token(put_by).is_some_and(|name| token(options.provenance.as_ref()) == Some(name))
}

/// The file with the provenance of the index file at `index`.
pub(crate) fn path_beside(index: &Path) -> PathBuf {
    index.with_extension("provenance")
}

/// The image whose provenance is the file at `path`; `None` if it is another file.
pub(crate) fn image_of(path: &Path) -> Option<ImageId> {
    let id: ImageId = path.file_stem()?.to_str()?.parse().ok()?;
    (path_beside(&path.with_file_name(IndexFolder::file_name(&id))) == path).then_some(id)
}

/// The line in the file beside an index. The digest says which index it is about: the file and its index are not
/// written in one step.
pub(crate) fn line(provenance: &Provenance, digest: [u8; 16]) -> String {
    format!("digest={:032x};{provenance}\n", u128::from_be_bytes(digest))
}

/// The provenance of the index file at `index`, which has this digest. `None` if there is none that can be read, or if
/// it is about another index.
pub(crate) fn read_beside(index: &Path, digest: [u8; 16]) -> Option<Provenance> {
    let path = path_beside(index);
    let is_short = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= MAX_TEXT as u64);
    let text = fs::read_to_string(path).ok().filter(|_| is_short)?;
    let (stated, _) = text.strip_prefix("digest=")?.split_once(';')?;
    (u128::from_str_radix(stated, 16).ok()? == u128::from_be_bytes(digest)).then_some(())?;
    Provenance::parse(&text)
}

/// Removes the provenance of the index file at `index`.
pub(crate) fn remove_beside(index: &Path) -> io::Result<()> {
    match fs::remove_file(path_beside(index)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use symdex::Grade;

    use super::*;

    fn provenance(token: &str) -> Provenance {
        let received = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_416_000);
        Provenance { token: Some(token.to_owned()), ..Provenance::new(received) }
    }

    #[test]
    fn a_provenance_reads_as_written() {
        let mut whole = provenance("ci");
        whole.client = Some("2001:db8::1".parse().expect("an address"));
        whole.sha256 = Some("ab".repeat(32));
        whole.is_index = true;
        for one in [Provenance::new(whole.received), whole.clone()] {
            assert_eq!(Provenance::parse(&one.to_string()), Some(one));
        }
        // A name can neither add a member nor end the line.
        assert_eq!(
            provenance("a;client=::1\r\nb\u{e9}").to_string(),
            "received=1795416000;token=aclient::1b"
        );
        for other in ["", "token=ci", "received=x", "received=-1", "received=99999999999999999999"] {
            assert_eq!(Provenance::parse(other), None, "{other}");
        }
        assert_eq!(Provenance::parse(&format!("received=1;token={}", "x".repeat(MAX_TEXT))), None);
        assert!(provenance(&"x".repeat(5000)).to_string().len() < 200);
    }

    #[test]
    fn a_file_beside_an_index_is_about_one_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let index = folder.path().join("ab.symdex");
        assert_eq!(read_beside(&index, [1; 16]), None);
        fs::write(path_beside(&index), line(&provenance("ci"), [1; 16])).expect("written");
        assert_eq!(read_beside(&index, [1; 16]), Some(provenance("ci")));
        assert_eq!(read_beside(&index, [2; 16]), None);
        remove_beside(&index).expect("removed");
        remove_beside(&index).expect("nothing to remove");
        for wrong in ["", "digest=", "digest=01;received=1", "received=1;digest=01"] {
            fs::write(path_beside(&index), wrong).expect("written");
            assert_eq!(read_beside(&index, [1; 16]), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_same_token_improves_an_index_that_is_kept() {
        let rank = |functions| (Grade::Lines, [functions, 0], Reverse(0), [0, 0], [false; 3], Reverse(0));
        let (ci, other) = (provenance("ci"), provenance("other"));
        let decide = |on_conflict, by: Option<&Provenance>, new, put_by: Option<&Provenance>| {
            let options = PutOptions::new().on_conflict(on_conflict).provenance(by.cloned());
            replaces(&options, &rank(new), &rank(5), put_by)
        };
        use OnConflict::{Keep, More, Replace};
        assert!(!decide(Keep, Some(&ci), 6, Some(&other)) && !decide(Keep, Some(&ci), 6, None));
        assert!(!decide(Keep, None, 6, None) && !decide(Keep, None, 6, Some(&ci)));
        assert!(decide(Keep, Some(&ci), 6, Some(&ci)) && !decide(Keep, Some(&ci), 4, Some(&ci)));
        assert!(decide(More, Some(&ci), 6, Some(&other)) && !decide(More, Some(&ci), 4, Some(&ci)));
        assert!(decide(Replace, Some(&ci), 4, Some(&other)));
        for (rule, name) in NAMES {
            assert_eq!((name.parse(), rule.to_string()), (Ok(rule), name.to_owned()));
        }
        assert_eq!("best".parse::<OnConflict>(), Err(ParseOnConflictError));
    }
}

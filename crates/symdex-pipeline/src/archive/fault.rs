//! What is wrong with an archive or with entries of it.

use std::fmt;
use std::mem::discriminant;

use symdex::Cause;

use crate::archive::limits::{NAME_BYTES, RATIO_FREE};

/// Why an archive, or an entry of it, is not read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The name of the entry has a part `..`.
    ParentFolder,
    /// The name of the entry is absolute.
    Absolute,
    /// An earlier entry has the same name.
    Duplicate,
    /// The name of the entry is too long.
    LongName,
    /// The entry is not a regular file, but a device, a pipe or similar.
    Special,
    /// The entry is a symbolic or a hard link. Links are not followed.
    Link,
    /// The entry is an archive, and lies too deep in other archives.
    TooDeep {
        /// The limit.
        nesting: u32,
    },
    /// The entry is encrypted.
    Encrypted,
    /// The entry is compressed by another method than those that are read.
    Method(u16),
    /// The file is not an archive of a supported kind.
    NotAnArchive,
    /// The archive or the entry is damaged.
    Damaged(String),
    /// The data of the entry is that of another entry, too.
    Overlap,
    /// The entry has more bytes than the archive states.
    LyingSize {
        /// How many bytes the archive states.
        stated: u64,
    },
    /// The entry has too many bytes.
    EntrySize {
        /// The limit.
        limit: u64,
    },
    /// The data unpacks to too many bytes for its compressed size.
    Ratio {
        /// The limit.
        limit: u64,
    },
    /// With its holes, a sparse entry has too many bytes for the compressed size of the archive.
    Holes {
        /// The limit.
        limit: u64,
    },
    /// The archive unpacks to too many bytes.
    Unpacked {
        /// The limit.
        limit: u64,
    },
    /// The archive has too many entries.
    Entries {
        /// The limit.
        limit: u64,
    },
    /// A file could not be read or written.
    Io(String),
}

impl FaultKind {
    /// The cause. What exceeds a limit is not read, as what is of an unknown kind.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Damaged(_) | Self::Overlap | Self::LyingSize { .. } => Cause::Damaged,
            Self::Io(_) => Cause::Other,
            _ => Cause::Unsupported,
        }
    }

    /// Whether valid archives have such entries, so that they need only be mentioned.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Link | Self::TooDeep { .. })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParentFolder => f.write_str("the name has the part \"..\""),
            Self::Absolute => f.write_str("the name is absolute"),
            Self::Duplicate => f.write_str("an earlier entry has the same name"),
            Self::LongName => write!(f, "the name has more than {NAME_BYTES} bytes"),
            Self::Special => f.write_str("it is neither a file nor a folder"),
            Self::Link => f.write_str("it is a link, and links in archives are not followed"),
            Self::TooDeep { nesting } => {
                write!(f, "it is an archive inside of more than {nesting} others, the limit of `nesting`")
            }
            Self::Encrypted => f.write_str("it is encrypted; make the archive without a password"),
            Self::Method(method) => write!(
                f,
                "it is compressed by method {method}; expected 0 (stored), 8 (deflate), 9 (deflate64) or 93 (zstd)"
            ),
            Self::NotAnArchive => {
                f.write_str("not an archive; expected zip, tar, or a file compressed by gzip or zstd")
            }
            Self::Damaged(what) => write!(f, "damaged: {what}"),
            Self::Overlap => f.write_str("damaged: its data is that of another entry, too"),
            Self::LyingSize { stated } => {
                write!(f, "damaged: it has more bytes than the {stated} that the archive states")
            }
            Self::EntrySize { limit } => {
                write!(f, "it has more than {limit} bytes, the limit of `entry_size`")
            }
            Self::Ratio { limit } => write!(
                f,
                "it unpacks to more than {limit} bytes for each compressed byte and {RATIO_FREE} more, the limit of \
                 `ratio`"
            ),
            Self::Holes { limit } => write!(
                f,
                "with its holes, it unpacks to more than {limit} bytes for each compressed byte and {RATIO_FREE} \
                 more, the limit of `ratio`"
            ),
            Self::Unpacked { limit } => {
                write!(f, "the archive unpacks to more than {limit} bytes, the limit of `unpacked`")
            }
            Self::Entries { limit } => {
                write!(f, "the archive has more than {limit} entries, the limit of `entries`")
            }
            Self::Io(error) => f.write_str(error),
        }
    }
}

/// How many entries with the same fault are named.
const NAMED: usize = 10;
/// How many faults are told apart by their details. Later ones are counted with the first of their kind.
const DETAILED: usize = 100;

/// A fault of an archive, or of one or more of its entries.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The archive: `app.zip`, or `all.zip: app.ipa` for an archive in another one.
    pub archive: String,
    /// What is wrong.
    pub kind: FaultKind,
    /// The names of the first ten entries. Empty if the archive itself is not read, or not read to its end.
    pub names: Vec<String>,
    /// How many entries have the fault.
    pub count: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { archive, kind, names, count } = self;
        match &names[..] {
            [] => write!(f, "{archive}: {kind}"),
            [name] => write!(f, "{archive}: {name}: the entry is skipped: {kind}"),
            names => {
                write!(f, "{archive}: {count} entries are skipped; of each: {kind}: {}", names.join(", "))?;
                match count - names.len() as u64 {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for Fault {}

/// The faults of one archive and of the archives in it, in the order of their first entries.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// The archive itself has the fault.
    pub(crate) fn archive(&mut self, archive: &str, kind: FaultKind) {
        if self.0.len() >= DETAILED && self.0.iter().any(|fault| fault.kind == kind) {
            return;
        }
        self.0.push(Fault { archive: archive.to_owned(), kind, names: Vec::new(), count: 0 });
    }

    /// The entry `name` has the fault.
    pub(crate) fn entry(&mut self, archive: &str, name: String, kind: FaultKind) {
        let is_full = self.0.len() >= DETAILED;
        let same = |fault: &&mut Fault| {
            let is_equal = fault.archive == archive && fault.kind == kind;
            fault.count != 0 && (is_equal || is_full && discriminant(&fault.kind) == discriminant(&kind))
        };
        match self.0.iter_mut().find(same) {
            Some(fault) => {
                fault.count += 1;
                if fault.names.len() < NAMED {
                    fault.names.push(name);
                }
            }
            None => self.0.push(Fault { archive: archive.to_owned(), kind, names: vec![name], count: 1 }),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Fault> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_the_same_fault_share_a_message() {
        let mut faults = Faults::default();
        faults.entry("a.zip", "x".to_owned(), FaultKind::Encrypted);
        (0..12).for_each(|n| faults.entry("a.zip", format!("l{n}"), FaultKind::Link));
        faults.archive("a.zip", FaultKind::Damaged("cut".to_owned()));
        let texts: Vec<_> = faults.into_vec().iter().map(ToString::to_string).collect();
        assert_eq!(
            texts[0],
            "a.zip: x: the entry is skipped: it is encrypted; make the archive without a password"
        );
        assert!(texts[1].starts_with("a.zip: 12 entries are skipped; of each: it is a link"), "{}", texts[1]);
        assert!(texts[1].ends_with(": l0, l1, l2, l3, l4, l5, l6, l7, l8, l9 and 2 more"), "{}", texts[1]);
        assert_eq!(texts[2], "a.zip: damaged: cut");
    }

    #[test]
    fn faults_without_end_are_counted_and_not_kept() {
        let mut faults = Faults::default();
        (0..10_000).for_each(|stated| faults.entry("a", stated.to_string(), FaultKind::LyingSize { stated }));
        let faults = faults.into_vec();
        assert_eq!(faults.len(), DETAILED);
        assert_eq!(faults.iter().map(|fault| fault.count).sum::<u64>(), 10_000);
    }
}

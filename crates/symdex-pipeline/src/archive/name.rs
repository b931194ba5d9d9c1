//! Names of entries. A name is a label for messages; it never becomes a path on disk.

use crate::archive::fault::FaultKind;
use crate::archive::limits::NAME_BYTES;

/// The name for messages: parts separated by `/`, without `.` and empty parts, and without control characters.
///
/// # Errors
///
/// The fault of a name that no valid archive has, and the name for messages.
pub(crate) fn checked(name: &[u8]) -> Result<String, (String, FaultKind)> {
    if name.len() > NAME_BYTES {
        let beginning = shown(&name[..NAME_BYTES.min(60)]);
        return Err((format!("{beginning}..."), FaultKind::LongName));
    }
    let text = shown(name);
    let has_drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    if text.starts_with('/') || has_drive {
        return Err((text, FaultKind::Absolute));
    }
    if text.split('/').any(|part| part == "..") {
        return Err((text, FaultKind::ParentFolder));
    }
    let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Ok(parts.join("/"))
}

/// The text of a name. Archives that Windows made have backslashes between the parts.
fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name).replace('\\', "/");
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether an archiver of macOS made the entry for itself.
pub(crate) fn is_junk(name: &str) -> bool {
    name.split('/').any(|part| part == "__MACOSX" || part == ".DS_Store" || part.starts_with("._"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_archive_are_refused() {
        for (name, kind) in [
            ("../a", FaultKind::ParentFolder),
            ("a/../../b", FaultKind::ParentFolder),
            ("a\\..\\b", FaultKind::ParentFolder),
            ("..", FaultKind::ParentFolder),
            ("/etc/passwd", FaultKind::Absolute),
            ("\\\\server\\share", FaultKind::Absolute),
            ("C:\\a", FaultKind::Absolute),
        ] {
            assert_eq!(checked(name.as_bytes()).map_err(|(_, kind)| kind), Err(kind), "{name}");
        }
        assert_eq!(checked(&[b'a'; NAME_BYTES + 1]).map_err(|(_, kind)| kind), Err(FaultKind::LongName));
    }

    #[test]
    fn names_are_shown_without_control_characters() {
        assert_eq!(checked(b"./a//b\\c..d/..e"), Ok("a/b/c..d/..e".to_owned()));
        assert_eq!(checked(b"a\x1b[31m\xff"), Ok("a\u{fffd}[31m\u{fffd}".to_owned()));
    }

    #[test]
    fn files_of_archivers_are_junk() {
        for (name, expected) in
            [("__MACOSX/a", true), ("a/._b", true), ("a/.DS_Store", true), ("a._b/c", false), ("._b/c", true)]
        {
            assert_eq!(is_junk(name), expected, "{name}");
        }
    }
}

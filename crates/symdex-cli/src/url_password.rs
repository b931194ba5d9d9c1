//! Passwords in URLs: they are not shown, and only private files may have them.

use std::ops::Range;
use std::path::Path;

use crate::failure::{Cause, Failure};

/// Where the password is in `scheme://user:password@host`, if there is one.
fn password_in(url: &str) -> Option<Range<usize>> {
    let start = url.find("://")? + 3;
    let authority = url[start..].split(['/', '?', '#']).next()?;
    let user = &authority[..authority.rfind('@')?];
    let colon = user.find(':')?;
    let password = start + colon + 1..start + user.len();
    (!password.is_empty()).then_some(password)
}

/// `value` without its password.
pub(crate) fn hidden(value: &str) -> String {
    let mut shown = value.to_owned();
    if let Some(password) = password_in(value) {
        shown.replace_range(password, "***");
    }
    shown
}

/// Refuses passwords in the file at `path` if other users can read it. `values` are its keys, lines and values.
pub(crate) fn check<'v>(
    path: &Path,
    values: impl IntoIterator<Item = (&'v str, usize, &'v str)>,
) -> Result<(), Failure> {
    let with_password = values.into_iter().find(|(_, _, value)| password_in(value).is_some());
    let Some((key, line, _)) = with_password.filter(|_| !is_private(path)) else { return Ok(()) };
    let (file, variable) = (path.display(), key.to_uppercase().replace('-', "_"));
    let message = format!(
        "{file}:{line}: `{key}` has a password, and other users may read this file; make it private with \
         `chmod 600`, or set the environment variable SYMDEX_{variable} instead"
    );
    Err(Failure::new(Cause::Usage, message).of_path(path))
}

#[cfg(unix)]
fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.permissions().mode() & 0o077 == 0)
}

/// Whether others can read the file is unknown on this system.
#[cfg(not(unix))]
fn is_private(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_a_url_is_hidden() {
        for (url, shown) in [
            ("redis://user:secret@host:6379/0", "redis://user:***@host:6379/0"),
            ("rediss://:p@ss@host", "rediss://:***@host"),
            ("s3://bucket/a:b@c", "s3://bucket/a:b@c"),
            ("redis://user@host:6379", "redis://user@host:6379"),
            ("redis://user:@host", "redis://user:@host"),
            ("/a/path:b@c", "/a/path:b@c"),
        ] {
            assert_eq!(hidden(url), shown);
        }
    }
}

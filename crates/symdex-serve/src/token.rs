//! Bearer tokens and their scopes.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To symbolicate reports and look up addresses, and to see which images there are.
    Read,
    /// To upload debug files, and to follow their jobs.
    Upload,
    /// To upload indexes that were built elsewhere, and to follow their jobs.
    Index,
    /// To read the metrics and all jobs, to resume jobs, to delete indexes and, with `Upload` or `Index`, to replace
    /// them.
    Admin,
}

const SCOPES: [(Scope, &str); 4] =
    [(Scope::Read, "read"), (Scope::Upload, "upload"), (Scope::Index, "index"), (Scope::Admin, "admin")];

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        SCOPES.iter().find(|(scope, _)| *scope == self).map_or("", |(_, name)| name)
    }
}

/// A token as the configuration has it: a name, its scopes and its hash,
/// `ci=read+upload:sha256:<64 hexadecimal digits>`. Without a name, it is called by the first digits of its hash:
/// `sha256:9b128e78`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(crate) name: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) sha256: [u8; 32],
}

/// Shows the hash no further than the name does.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("name", &self.name)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Text that is not a [`Token`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected scopes and a hash, such as read+upload:sha256:<64 hexadecimal digits>, or ci=read+upload:sha256:... for \
     a token of this name (letters, digits and ._-); {SCOPES_TEXT}"
)]
pub struct ParseTokenError;

impl FromStr for Token {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, digits) = text.split_once(":sha256:").ok_or(ParseTokenError)?;
        let (name, scopes) = rest.split_once('=').map_or((None, rest), |(name, scopes)| (Some(name), scopes));
        if !name.is_none_or(is_name) {
            return Err(ParseTokenError);
        }
        let scope = |name| SCOPES.iter().find(|(_, scope)| *scope == name).map(|(scope, _)| *scope);
        let scopes = scopes.split('+').map(scope).collect::<Option<Vec<_>>>().ok_or(ParseTokenError)?;
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(ParseTokenError);
        }
        let mut sha256 = [0; 32];
        for (byte, pair) in sha256.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| ParseTokenError)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ParseTokenError)?;
        }
        let unnamed = || format!("sha256:{}", digits.to_ascii_lowercase().split_at(SHOWN_DIGITS).0);
        Ok(Self { name: name.map_or_else(unnamed, str::to_owned), scopes, sha256 })
    }
}

/// How many digits of the hash name a token without a name.
const SHOWN_DIGITS: usize = 8;

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// A new token: what the client sends, and the line of the configuration.
#[derive(Debug)]
pub struct NewToken {
    /// What the client sends: `Authorization: Bearer <secret>`. It has 244 random bits.
    pub secret: String,
    /// The line of the configuration, which is not secret.
    pub configured: String,
}

impl NewToken {
    /// Makes a token with `scopes`.
    #[must_use]
    pub fn new(scopes: &[Scope]) -> Self {
        let random = || uuid::Uuid::new_v4().simple();
        let secret = format!("sdx_{}{}", random(), random());
        let hash = Sha256::digest(&secret);
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let scopes: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        Self { secret, configured: format!("{}:sha256:{digits}", scopes.join("+")) }
    }
}

/// What scopes there are.
pub const SCOPES_TEXT: &str = "the scopes are read (reports, addresses, images), upload (debug files and their \
                               jobs), index (indexes that were built elsewhere, and their jobs) and admin (metrics, \
                               all jobs, deleting and replacing indexes)";

/// Text that is not a [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{SCOPES_TEXT}")]
pub struct ParseScopeError;

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        SCOPES.iter().find(|(_, name)| *name == text).map(|(scope, _)| *scope).ok_or(ParseScopeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scopes_and_a_hash_are_a_token() {
        let digits = "0".repeat(64);
        let name = |text: String| text.parse::<Token>().map(|token| token.name);
        assert_eq!(name(format!("read:sha256:{digits}")), Ok("sha256:00000000".to_owned()));
        assert_eq!(name(format!("ci.7_b-2=read+admin:sha256:{digits}")), Ok("ci.7_b-2".to_owned()));
        for wrong in [
            String::new(),
            format!(":sha256:{digits}"),
            format!("=read:sha256:{digits}"),
            format!("a b=read:sha256:{digits}"),
            format!("{}=read:sha256:{digits}", "x".repeat(65)),
            format!("write:sha256:{digits}"),
            format!("read:sha256:{}", &digits[1..]),
            format!("read:sha256:{}\u{e9}", &digits[2..]),
        ] {
            assert_eq!(wrong.parse::<Token>(), Err(ParseTokenError), "{wrong}");
        }
    }
}

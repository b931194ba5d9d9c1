//! Who may do what: bearer tokens with scopes.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::str::FromStr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::app::SharedApp;
use crate::lane::{Client, Lane};
use crate::options::ServerOptions;
use crate::origin;
use crate::problem::{Problem, ProblemKind};

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To symbolicate reports and look up addresses, and to see which images there are.
    Read,
    /// To upload debug files, and to follow their jobs.
    Upload,
    /// To read the metrics and all jobs, to resume jobs, to delete indexes and, with `Upload`, to replace them.
    Admin,
}

const SCOPES: [(Scope, &str); 3] =
    [(Scope::Read, "read"), (Scope::Upload, "upload"), (Scope::Admin, "admin")];

impl Scope {
    fn name(self) -> &'static str {
        SCOPES.iter().find(|(scope, _)| *scope == self).map_or("", |(_, name)| name)
    }
}

/// A token as the configuration has it: a name, its scopes and its hash,
/// `ci=read+upload:sha256:<64 hexadecimal digits>`. Without a name, it is called by the first digits of its hash:
/// `sha256:9b128e78`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    name: String,
    scopes: Vec<Scope>,
    sha256: [u8; 32],
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
pub const SCOPES_TEXT: &str = "the scopes are read (reports, addresses, images), upload (debug files and their jobs) \
                               and admin (metrics, all jobs, deleting and replacing indexes)";

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

/// Who sends a request that may change something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requester {
    /// The name of the token, whatever its scopes. `None` if there is no valid one.
    pub(crate) token: Option<String>,
    /// The address of the connection.
    pub(crate) client: Option<IpAddr>,
}

tokio::task_local! {
    /// The address that the connection of this task comes from.
    static PEER: IpAddr;
}

/// Runs `future`, which serves a connection from `peer`.
pub(crate) fn from_peer<F: Future>(peer: IpAddr, future: F) -> impl Future<Output = F::Output> {
    PEER.scope(peer.to_canonical(), future)
}

/// Who sends the request with these headers on the connection of this task.
pub(crate) fn requester(options: &ServerOptions, headers: &HeaderMap) -> Requester {
    let token = secret_of(headers).ok().and_then(|secret| known(options, secret).next());
    Requester { token: token.map(|(_, token)| token.name.clone()), client: PEER.try_with(|peer| *peer).ok() }
}

/// Lets a request pass if one of the tokens allows `scope`, or if there are no tokens.
pub(crate) async fn require(
    scope: Scope,
    State(app): State<SharedApp>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if let Some(token) = check(&app.options, scope, request.headers())? {
        Lane::set_client(Client::Token(token));
    }
    Ok(next.run(request).await)
}

/// The position of the token that allows `scope`; `None` if there are no tokens.
///
/// # Errors
///
/// A problem if the request is not allowed.
pub(crate) fn check(
    options: &ServerOptions,
    scope: Scope,
    headers: &HeaderMap,
) -> Result<Option<usize>, Problem> {
    if options.tokens.is_empty() {
        origin::check(options, scope, headers)?;
        return Ok(None);
    }
    let mut known = known(options, secret_of(headers)?).peekable();
    if known.peek().is_none() {
        return Err(unauthorized("the token is not known here"));
    }
    if let Some((position, _)) = known.find(|(_, token)| token.scopes.contains(&scope)) {
        return Ok(Some(position));
    }
    Err(Problem::new(ProblemKind::Forbidden, format!("the token has not the scope `{}`", scope.name())))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(ProblemKind::Unauthorized, detail)
}

/// The secret that a request has sent.
fn secret_of(headers: &HeaderMap) -> Result<&str, Problem> {
    let header = headers.get(header::AUTHORIZATION).ok_or_else(|| {
        unauthorized("this server needs a token: send the header `Authorization: Bearer TOKEN`")
    })?;
    let (scheme, secret) = header.to_str().ok().and_then(|value| value.split_once(' ')).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unauthorized("expected the header `Authorization: Bearer TOKEN`"));
    }
    Ok(secret.trim())
}

/// The tokens with this secret, and their positions.
fn known<'o>(options: &'o ServerOptions, secret: &str) -> impl Iterator<Item = (usize, &'o Token)> + use<'o> {
    let hash = Sha256::digest(secret);
    // All tokens are compared, whether or not an earlier one is equal.
    let is_known = move |token: &Token| bool::from(token.sha256[..].ct_eq(&hash[..]));
    options.tokens.iter().enumerate().filter(move |(_, token)| is_known(token))
}

#[cfg(test)]
mod tests {
    use symdex_answer::SymbolicatorOptions;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect()
    }

    #[test]
    fn a_token_allows_its_scopes_only() {
        let new = NewToken::new(&[Scope::Read, Scope::Upload]);
        let mut options = ServerOptions::new(SymbolicatorOptions::new());
        options.tokens = vec![NewToken::new(&[Scope::Admin]).configured.parse().expect("a token")];
        options.tokens.push(new.configured.parse().expect("a token"));
        let bearer = headers(&[("authorization", &format!("bearer {}", new.secret))]);
        assert!(check(&options, Scope::Read, &bearer).is_ok());
        assert!(check(&options, Scope::Upload, &bearer).is_ok());
        assert!(check(&options, Scope::Admin, &bearer).is_err());
        for wrong in ["Bearer ", "Bearer x", "Basic x", "x", &format!("Bearer {}", new.configured)] {
            assert!(check(&options, Scope::Read, &headers(&[("authorization", wrong)])).is_err(), "{wrong}");
        }
        assert!(check(&options, Scope::Read, &HeaderMap::new()).is_err());
    }

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

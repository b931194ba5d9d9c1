//! Who may do what.

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::limits::{Client, Lane};
use crate::options::ServerOptions;
use crate::origin;
use crate::problem::{Problem, ProblemKind};
use crate::refusals::Refusals;
use crate::token::{Scope, Token};

/// Who sends a request that may change something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requester {
    /// The name of the token, whatever its scopes. `None` if there is no valid one.
    pub(crate) token: Option<String>,
    /// The address of the connection.
    pub(crate) client: Option<IpAddr>,
}

/// The token that has allowed a request: an extension of the answer, for the log and the metrics.
#[derive(Clone, Debug)]
pub(crate) struct KnownToken {
    /// Its position in the configuration.
    position: usize,
    pub(crate) name: String,
}

tokio::task_local! {
    /// The address that the connection of this task comes from.
    static PEER: IpAddr;
}

/// The address of the connection that this task serves.
pub(crate) fn peer() -> Option<IpAddr> {
    PEER.try_with(|peer| *peer).ok()
}

/// Runs `future`, which serves a connection from `peer`.
pub(crate) fn from_peer<F: Future>(peer: IpAddr, future: F) -> impl Future<Output = F::Output> {
    PEER.scope(peer.to_canonical(), future)
}

/// Who may do what: tokens or, without them, what the headers of a request show.
#[derive(Debug)]
pub(crate) struct Access {
    tokens: RwLock<Arc<[Token]>>,
    options: ServerOptions,
    pub(crate) refusals: Refusals,
}

impl Access {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        let tokens = RwLock::new(options.tokens.as_slice().into());
        Self { tokens, options: options.clone(), refusals: Refusals::default() }
    }

    fn tokens(&self) -> Arc<[Token]> {
        Arc::clone(&self.tokens.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the tokens.
    ///
    /// # Errors
    ///
    /// The numbers of old and new tokens, if only one of them is 0.
    pub(crate) fn replace(&self, tokens: &[Token]) -> Result<(), (usize, usize)> {
        let mut current = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        if current.is_empty() != tokens.is_empty() {
            return Err((current.len(), tokens.len()));
        }
        *current = tokens.into();
        Ok(())
    }

    /// Who sends the request with these headers on the connection of this task.
    pub(crate) fn requester(&self, headers: &HeaderMap) -> Requester {
        let tokens = self.tokens();
        let token = secret_of(headers).ok().and_then(|secret| known(&tokens, secret).next());
        Requester { token: token.map(|(_, token)| token.name.clone()), client: peer() }
    }

    /// The token that allows `scope`; `None` if there are no tokens.
    ///
    /// # Errors
    ///
    /// A problem if the request is not allowed.
    pub(crate) fn check(&self, scope: Scope, headers: &HeaderMap) -> Result<Option<KnownToken>, Problem> {
        let tokens = self.tokens();
        if tokens.is_empty() {
            origin::check(&self.options, scope, headers)?;
            return Ok(None);
        }
        let mut known = known(&tokens, secret_of(headers)?).peekable();
        if known.peek().is_none() {
            return Err(unauthorized("unknown token"));
        }
        if let Some((position, token)) = known.find(|(_, token)| token.scopes.contains(&scope)) {
            return Ok(Some(KnownToken { position, name: token.name.clone() }));
        }
        Err(Problem::new(
            ProblemKind::Forbidden,
            format!("the token does not have the scope `{}`", scope.name()),
        ))
    }
}

/// The scope that has allowed a request: an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted(pub(crate) Scope);

/// Lets a request pass if one of the tokens allows one of `scopes`, or if there are no tokens. The first such scope is
/// [`Granted`].
pub(crate) async fn require(
    scopes: &'static [Scope],
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let checked = scopes.iter().map(|scope| Ok((*scope, access.check(*scope, request.headers())?)));
    let granted = checked.reduce(|first: Result<_, Problem>, next| first.or(next));
    let (scope, token) = granted.unwrap_or_else(|| Err(unauthorized("nobody may do this")))?;
    request.extensions_mut().insert(Granted(scope));
    if let Some(token) = &token {
        Lane::set_client(Client::Token(token.position));
    }
    let mut response = next.run(request).await;
    if let Some(token) = token {
        response.extensions_mut().insert(token);
    }
    Ok(response)
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
fn known<'t>(tokens: &'t [Token], secret: &str) -> impl Iterator<Item = (usize, &'t Token)> + use<'t> {
    let hash = Sha256::digest(secret);
    // All tokens are compared, whether or not an earlier one is equal.
    let is_known = move |token: &Token| bool::from(token.sha256[..].ct_eq(&hash[..]));
    tokens.iter().enumerate().filter(move |(_, token)| is_known(token))
}

#[cfg(test)]
mod tests {
    use symdex_answer::SymbolicatorOptions;

    use super::*;
    use crate::token::NewToken;

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
        let access = Access::new(&options);
        let bearer = headers(&[("authorization", &format!("bearer {}", new.secret))]);
        assert!(access.check(Scope::Read, &bearer).is_ok());
        assert!(access.check(Scope::Upload, &bearer).is_ok());
        assert!(access.check(Scope::Admin, &bearer).is_err());
        for wrong in ["Bearer ", "Bearer x", "Basic x", "x", &format!("Bearer {}", new.configured)] {
            assert!(access.check(Scope::Read, &headers(&[("authorization", wrong)])).is_err(), "{wrong}");
        }
        assert!(access.check(Scope::Read, &HeaderMap::new()).is_err());
    }
}

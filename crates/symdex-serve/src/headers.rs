//! Headers that a request must not have twice. A proxy in front of the server may read another one of them.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, Version, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::Problem;

/// Refuses a request with an ambiguous host or token.
pub(crate) async fn check(request: Request, next: Next) -> Result<Response, Problem> {
    check_head(request.version(), request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

fn check_head(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::bad_request(detail));
    let count = |name: &HeaderName| headers.get_all(name).iter().count();
    if count(&header::AUTHORIZATION) > 1 {
        return refuse("found several headers `Authorization`, expected one");
    }
    // HTTP/1.0 has no such header.
    let is_needed = version >= Version::HTTP_11;
    match (count(&header::HOST), uri.authority(), headers.get(header::HOST)) {
        (0, ..) if is_needed => refuse("found no header `Host`, expected one"),
        (2.., ..) => refuse("found several headers `Host`, expected one"),
        (_, Some(named), Some(host)) if Authority::try_from(host.as_bytes()).ok().as_ref() != Some(named) => {
            refuse("the URL of the request names another host than the header `Host`")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host_and_at_most_one_token() {
        let is_allowed = |version, uri: &'static str, pairs: &[(HeaderName, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value.parse().expect("a value"));
            }
            check_head(version, &Uri::from_static(uri), &headers).is_ok()
        };
        let (http, host, token) = (Version::HTTP_11, header::HOST, header::AUTHORIZATION);
        assert!(is_allowed(http, "/", &[(host.clone(), "a")]));
        assert!(is_allowed(http, "/", &[(host.clone(), "a"), (token.clone(), "Bearer x")]));
        assert!(is_allowed(http, "http://a/", &[(host.clone(), "A")]));
        assert!(is_allowed(Version::HTTP_10, "/", &[]));
        for pairs in [
            vec![],
            vec![(host.clone(), "a"), (host.clone(), "a")],
            vec![(host.clone(), "a"), (token.clone(), "Bearer x"), (token, "Bearer x")],
        ] {
            assert!(!is_allowed(http, "/", &pairs), "{pairs:?}");
        }
        assert!(!is_allowed(http, "http://b/", &[(host.clone(), "a")]));
        assert!(!is_allowed(Version::HTTP_10, "/", &[(host.clone(), "a"), (host, "b")]));
    }
}

//! Which web pages may use a server without tokens.
//!
//! A browser sends a request of any page to any server that it reaches, also to one on its own machine or network. The
//! server would answer it in the name of the browser's user. Tokens prevent this: a page does not know them. Without
//! tokens, the headers of a request must prove that no foreign page has sent it.

use std::net::IpAddr;

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, HeaderName, header};

use crate::options::ServerOptions;
use crate::problem::{Problem, ProblemKind};
use crate::token::Scope;

/// Browsers state in this header whether a page of the same origin has sent a request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request whose headers show that a page of another origin has sent it. Programs that are no browsers send
/// neither `Origin` nor `Referer` nor `Sec-Fetch-Site`, and pass.
pub(crate) fn check(options: &ServerOptions, scope: Scope, headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers.get(header::HOST).map(|host| authority(host.to_str().unwrap_or_default()));
    if host.as_ref().is_some_and(|host| !host.as_ref().is_some_and(|host| is_of_this_server(options, host))) {
        return forbidden(
            "the header Host names another host than this server; add the name to `allowed_hosts`, or use tokens",
        );
    }
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same_host = |page: &str| {
        let page = page.parse::<Uri>().ok().and_then(|page| page.into_parts().authority);
        page.is_some() && Some(page) == host
    };
    // `*` lets every page read. To change something, a page must be named.
    let is_allowed = |origin: &str| {
        let fits = |one: &String| one == origin || (one == "*" && scope == Scope::Read);
        options.cors_origins.iter().any(fits)
    };
    let is_of_other_page = match (value(header::ORIGIN), value(SEC_FETCH_SITE), value(header::REFERER)) {
        (Some(origin), ..) => !is_same_host(origin) && !is_allowed(origin),
        (None, Some(site), _) => !matches!(site, "same-origin" | "none"),
        (None, None, Some(referer)) => !is_same_host(referer),
        (None, None, None) => false,
    };
    if is_of_other_page {
        return forbidden("the request comes from a page of another origin; add it to `cors_origins`");
    }
    Ok(())
}

fn forbidden(detail: &str) -> Result<(), Problem> {
    Err(Problem::new(ProblemKind::Forbidden, detail))
}

fn authority(host: &str) -> Option<Authority> {
    host.parse().ok().filter(|authority: &Authority| !authority.as_str().contains('@'))
}

/// Returns whether `host` can only be this server. Anybody can register a domain whose name resolves to the address of
/// this server, and then serve a page of that name. An IP address cannot be taken in this way, nor can a name without a
/// dot, which only the local network resolves.
fn is_of_this_server(options: &ServerOptions, host: &Authority) -> bool {
    let name = host.host();
    if options.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name)) {
        return true;
    }
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    if options.listen.ip().is_loopback() && !options.insecure_public {
        return name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback());
    }
    address.is_ok() || !name.contains('.')
}

#[cfg(test)]
mod tests {
    use symdex_answer::SymbolicatorOptions;

    use super::*;

    fn options() -> ServerOptions {
        ServerOptions::new(SymbolicatorOptions::new())
    }

    fn is_allowed(options: &ServerOptions, scope: Scope, pairs: &[(&'static str, &str)]) -> bool {
        let parsed = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"))
        };
        check(options, scope, &pairs.iter().map(parsed).collect()).is_ok()
    }

    #[test]
    fn on_the_loopback_interface_the_host_is_this_machine() {
        for (host, expected) in [
            ("127.0.0.1:8040", true),
            ("127.1.2.3", true),
            ("localhost", true),
            ("LOCALHOST:8040", true),
            ("[::1]:8040", true),
            ("[::ffff:127.0.0.1]:8040", true),
            ("127.0.0.1.nip.io:8040", false),
            ("127.evil.example", false),
            ("localhost.evil.example", false),
            ("user@127.0.0.1", false),
            ("evil.example:8040", false),
            ("10.0.0.7:8040", false),
            ("symdex", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(&options(), Scope::Read, &[("host", host)]), expected, "{host}");
        }
        assert!(is_allowed(&options(), Scope::Read, &[]), "HTTP/1.0");
        let mut options = options();
        options.allowed_hosts.push("symdex.example".to_owned());
        assert!(is_allowed(&options, Scope::Upload, &[("host", "Symdex.example:8040")]));
        assert!(!is_allowed(&options, Scope::Upload, &[("host", "evil.symdex.example")]));
    }

    #[test]
    fn on_a_network_the_host_is_an_address_or_a_local_name() {
        let mut options = options();
        options.listen = ([0, 0, 0, 0], 8040).into();
        options.insecure_public = true;
        for (host, expected) in [
            ("10.0.0.7:8040", true),
            ("[2001:db8::7]", true),
            ("symdex:8040", true),
            ("evil.example:8040", false),
            ("10.0.0.7.nip.io", false),
        ] {
            assert_eq!(is_allowed(&options, Scope::Read, &[("host", host)]), expected, "{host}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        const HOST: (&str, &str) = ("host", "127.0.0.1:8040");
        let mut options = options();
        options.cors_origins.push("https://profiler.firefox.com".to_owned());
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://127.0.0.1:8040")], true),
            (&[("origin", "http://127.0.0.1:8041")], false),
            (&[("origin", "http://localhost:8040")], false),
            (&[("origin", "null")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")], false),
            (&[("origin", "https://profiler.firefox.com"), ("sec-fetch-site", "cross-site")], true),
            (&[("referer", "http://127.0.0.1:8040/#image=1")], true),
            (&[("referer", "https://evil.example/page")], false),
            (&[], true),
        ] {
            let pairs = [&[HOST], pairs].concat();
            for scope in [Scope::Read, Scope::Upload, Scope::Admin] {
                assert_eq!(is_allowed(&options, scope, &pairs), expected, "{pairs:?}");
            }
        }
        options.cors_origins = vec!["*".to_owned()];
        let other = [HOST, ("origin", "https://other.example"), ("sec-fetch-site", "cross-site")];
        assert!(is_allowed(&options, Scope::Read, &other));
        assert!(!is_allowed(&options, Scope::Upload, &other));
    }
}

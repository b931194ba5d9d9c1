//! Redirects of web servers with debug files.

use std::sync::{Arc, Mutex};

use symdex_answer::fetch::{DebugSources, FetchError, FetchOptions, Verdict, WantedImage};
use symdex_testkit::web::{Reply, WebServer};

const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// The size of the first file at `url`.
fn fetch(url: &str) -> Result<Option<u64>, FetchError> {
    let urls = [url.parse().expect("a URL")];
    let sources = DebugSources::open(&urls, &FetchOptions::new().retries(0)).expect("opened");
    sources.fetch(&WantedImage::new(BUILD_ID.parse().expect("an id")), |file| Verdict::Used(file.size()))
}

#[test]
fn the_target_of_a_redirect_gets_no_secret_of_the_source() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let other = WebServer::start(move |request| {
        let mut heard = listener.lock().expect("not poisoned");
        heard.extend(request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        heard.push(request.path.clone());
        Reply::Body(b"\x7fELF file".to_vec())
    });
    let to = format!("http://{}/moved", other.authority().replace("127.0.0.1", "localhost"));
    let server = WebServer::start(move |_| Reply::Redirect(to.clone()));
    let url = format!("http://me:secret@{}/x?token=secret", server.authority());
    assert_eq!(fetch(&url), Ok(Some(9)));
    assert!(server.paths()[0].ends_with("?token=secret"));
    let heard = heard.lock().expect("not poisoned").join("\n");
    assert!(heard.contains("/moved") && heard.contains("user-agent: symdex/"), "{heard}");
    // "bWU6c2VjcmV0" is me:secret in base 64.
    for secret in ["secret", "bWU6c2VjcmV0", "referer", "authorization"] {
        assert!(!heard.contains(secret), "{secret}: {heard}");
    }
}

#[test]
fn redirects_into_the_network_of_this_machine_are_refused() {
    for (target, found) in [
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254, the address of a metadata service"),
        ("http://[fd00:ec2::254]/latest/meta-data", "fd00:ec2::254, the address of a metadata service"),
        ("http://0x0a000001/", "10.0.0.1, a private address"),
        ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1, a private address"),
    ] {
        let server = WebServer::start(move |_| Reply::Redirect(target.to_owned()));
        let error = fetch(&server.url()).expect_err("refused").to_string();
        assert!(error.contains("a redirect leads to") && error.contains(found), "{error}");
        assert_eq!(server.paths().len(), 2, "debuginfo and executable, once each");
    }
}

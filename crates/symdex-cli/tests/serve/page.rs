//! The files of the page.

use regex::Regex;

use crate::server::{Answer, TestServer};

/// The paths that the attributes and imports of `text` name, relative to the page.
fn references(path: &str, text: &str) -> Vec<String> {
    let folder = if path == "/" { "/" } else { "/assets/" };
    let pattern = r##"(?:src|href)="([^"#]+)"|(?:from |import\()"\./([^"]+)""##;
    let found = Regex::new(pattern).expect("a pattern");
    let names = found.captures_iter(text).filter_map(|names| names.get(1).or_else(|| names.get(2)));
    names.map(|name| format!("{folder}{}", name.as_str())).collect()
}

/// Each file of the page that the page leads to: its path, and its answer.
fn all_files(server: &TestServer) -> Vec<(String, Answer)> {
    let mut files = Vec::new();
    let mut waiting = vec!["/".to_owned()];
    while let Some(path) = waiting.pop() {
        if files.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        waiting.extend(references(&path, answer.text()));
        files.push((path, answer));
    }
    files
}

pub(crate) fn every_file_has_its_type_and_a_strict_policy() {
    let server = TestServer::empty(&[]);
    let files = all_files(&server);
    let count = |kind: &str| files.iter().filter(|(path, _)| path.ends_with(kind)).count();
    assert_eq!((count("/"), count(".css"), count(".svg")), (1, 1, 1));
    assert!(count(".js") >= 10, "{}", count(".js"));
    for (path, answer) in &files {
        let kind = match path.rsplit_once('.') {
            None => "text/html; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        };
        assert_eq!(answer.header("content-type"), kind, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cache-control"), "no-cache");
        let policy: Vec<_> = answer.header("content-security-policy").split("; ").collect();
        let expected = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"];
        assert!(expected.iter().all(|directive| policy.contains(directive)), "{policy:?}");
        let trusted = ["require-trusted-types-for 'script'", "trusted-types 'none'"];
        for directive in
            ["form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"].iter().chain(&trusted)
        {
            assert!(policy.contains(directive), "{policy:?}");
        }
        assert!(!policy.iter().any(|directive| directive.contains("unsafe")), "{policy:?}");
    }
}

pub(crate) fn a_browser_that_has_a_file_does_not_get_it_again() {
    let server = TestServer::empty(&[]);
    let first = server.get("/assets/app.js");
    let tag = first.header("etag");
    assert_eq!((tag.len(), tag.starts_with('"')), (34, true), "{tag}");
    let again = |value: &str| {
        let request =
            server.agent.get(format!("{}/assets/app.js", server.url)).header("if-none-match", value);
        let mut answer = request.call().expect("an answer");
        (answer.status().as_u16(), answer.body_mut().read_to_vec().expect("a body").len())
    };
    assert_eq!(again(tag), (304, 0));
    assert_eq!(again(&format!("\"other\", W/{tag}")), (304, 0));
    assert_eq!(again("\"other\""), (200, first.body.len()));
    assert_ne!(server.get("/assets/dom.js").header("etag"), tag);
}

pub(crate) fn no_file_has_scripts_or_styles_in_html_or_makes_html_of_text() {
    let server = TestServer::empty(&[]);
    let in_html = Regex::new(r"(?i)<script(?:\s[^>]*)?>\s*[^<\s]|<style|\sstyle=|\son[a-z]+=|javascript:");
    let in_html = in_html.expect("a pattern");
    let in_scripts = Regex::new(concat!(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment",
        r"|\beval\(|new Function|setHTMLUnsafe|localStorage|https?://"
    ));
    let in_scripts = in_scripts.expect("a pattern");
    // The patterns find what they are for.
    assert!(in_html.is_match("<p onclick=\"x\">") && in_html.is_match("<script>x</script>"));
    assert!(in_scripts.is_match("a.innerHTML = b") && in_scripts.is_match("import 'https://x'"));
    for (path, answer) in all_files(&server) {
        let mut text = answer.text().replace("http://www.w3.org/2000/svg", "");
        if path.ends_with("/flamegraph.js") {
            // A library: `html` of d3-selection, which the page does not call and its policy forbids; the namespaces of
            // XML; and licences, which come first.
            let (_, code) = text.split_once("*/").expect("the licences");
            text = code.replace("innerHTML", "").replace("http://www.w3.org/", "");
        }
        let pattern = if path.ends_with(".js") { &in_scripts } else { &in_html };
        let found = pattern.find(&text).map(|found| found.as_str());
        assert_eq!(found, None, "{path}");
    }
}

pub(crate) fn the_page_needs_no_token() {
    let configured = format!("read:sha256:{}", "0".repeat(64));
    let server = TestServer::empty(&["--token", &configured]);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.get("/assets/app.js").status, 200);
    assert_eq!(server.get(&format!("/v1/images/{}", "ab".repeat(16))).status, 401);
}

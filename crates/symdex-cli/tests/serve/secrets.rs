//! Secrets in the URLs of stores and of sources of debug files, and folders that nobody else may read.

use serde_json::json;
use symdex_testkit::folders::folder;
use symdex_testkit::redis;
use symdex_testkit::web::{Reply, WebServer};

use crate::server::{TestServer, command};

const ID: &str = "00112233445566778899aabbccddeeff";
const SECRET: &str = "geheim";

pub(crate) fn secrets_of_urls_are_in_no_answer_no_metric_and_no_log() {
    let refusing = WebServer::start(|request| match request.number % 3 {
        0 => Reply::Status(403),
        1 => Reply::Redirect("ftp://127.0.0.1/x".to_owned()),
        _ => Reply::Redirect(format!("{}&more", request.path)),
    });
    let (dead, web) = (redis::free_port(), refusing.authority());
    let mut serve = command();
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0"]);
    serve.env(
        "SYMDEX_STORE",
        [
            format!("redis://me:{SECRET}@127.0.0.1:{dead}/0"),
            format!("http://me:{SECRET}@{web}/indexes?token={SECRET}"),
            format!("http://me:{SECRET}@127.0.0.1:{dead}/indexes?token={SECRET}"),
        ]
        .join(" "),
    );
    serve.env(
        "SYMDEX_DEBUG_SOURCE",
        [
            format!("http://me:{SECRET}@{web}/files?token={SECRET}"),
            format!("unified+http://me:{SECRET}@127.0.0.1:{dead}/files?token={SECRET}"),
        ]
        .join(" "),
    );
    let server = TestServer::spawn(serve);
    let lookup = json!([{"id": ID, "addresses": ["0x400"]}]);
    let module = json!({"type": "macho", "debug_id": ID, "image_addr": "0x1000", "image_size": 0x8000});
    let sentry = json!({"stacktraces": [{"frames": [{"instruction_addr": "0x1400"}]}], "modules": [module],
        "options": {"dif_candidates": true}});
    let mozilla =
        json!({"memoryMap": [["App", format!("{}0", ID.to_uppercase())]], "stacks": [[[0, 0x400]]]});
    let answers = [
        server.post_json("/v1/lookup", &lookup),
        server.post_json("/symbolicate", &sentry),
        server.post_json("/symbolicate/v5", &mozilla),
        server.post_json("/v1/missing", &json!([ID])),
        server.get(&format!("/v1/images/{ID}")),
        server.get("/readyz"),
        server.get("/metrics"),
        server.get("/v1/jobs"),
    ];
    let mut texts: Vec<_> = answers.iter().map(|answer| answer.text().to_owned()).collect();
    texts.extend(answers.iter().map(|answer| format!("{:?}", answer.headers)));
    texts.push(server.log());
    let all = texts.join("\n");
    // The parts that are no secrets are shown: what failed, and where.
    for shown in [format!("redis://127.0.0.1:{dead}/0"), format!("http://{web}/indexes")] {
        assert!(all.contains(&shown), "{shown}: {all}");
    }
    for secret in [SECRET, "token=", "bWU6Z2VoZWlt"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[cfg(unix)]
pub(crate) fn folders_for_uploads_and_archives_are_private_whatever_the_umask() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    let (store, root) = (folder(), folder());
    let state = root.path().join("state");
    // An administrator has made it readable.
    fs::create_dir_all(state.join("uploads")).expect("made");
    fs::set_permissions(state.join("uploads"), Permissions::from_mode(0o777)).expect("ours");
    let symdex = command();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000 && exec \"$0\" \"$@\""]).arg(symdex.get_program());
    shell.envs(symdex.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
    let server = TestServer::spawn({
        shell.arg("--state").arg(&state);
        shell
    });
    assert_eq!(server.get("/healthz").status, 200);
    let folders = fs::read_dir(&state).expect("there").map(|entry| entry.expect("an entry").path());
    let folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    assert_eq!(folders.len(), 3, "uploads, jobs and the folder for archives: {folders:?}");
    for folder in folders {
        let mode = folder.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
}

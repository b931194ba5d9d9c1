//! Logging in, TLS, and what servers refuse.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use symdex::{Cause, Index};
use symdex_store::{Error, Store, StoreOptions};

use crate::common::{behaves_as_a_store, id, index, put};
use crate::redis::layout::{open, whole};
use crate::redis::{store, store_in};
use symdex_testkit::redis::{Cluster, Server, free_port};

fn put_error(url: &str) -> Error {
    let bytes = index(0xab, 3);
    let index = Index::open(&bytes[..]).expect("an index");
    store(url, &StoreOptions::new()).put(&index).expect_err(url)
}

pub(crate) fn passwords_are_needed_and_never_shown() {
    let server = Server::start(&[]);
    server.run(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}/0", server.port);
    behaves_as_a_store(&store(&at(":hunter2@"), &StoreOptions::new()));
    behaves_as_a_store(&store(&at("default:hunter2@"), &StoreOptions::new()));
    for (login, advice) in [
        ("", "(NOAUTH); set SYMDEX_REDIS_PASSWORD"),
        (":hunter3@", "(WRONGPASS); check the user"),
        ("somebody:hunter3@", "(WRONGPASS); check the user"),
    ] {
        let error = put_error(&at(login));
        let text = format!("{error} {error:?}");
        assert!(text.contains(advice) && !text.contains("hunter") && !text.contains("somebody"), "{text}");
        assert!(error.cause() != Cause::Unavailable, "{text}");
    }
}

pub(crate) fn users_have_the_permissions_that_the_documentation_lists() {
    let server = Server::start(&[]);
    let document = std::fs::read_to_string("../../docs/STORES.md").expect("the documentation");
    for user in ["symdex-reader", "symdex-writer"] {
        let start = format!("ACL SETUSER {user} ");
        let line = document.lines().find(|line| line.starts_with(&start)).expect(user);
        let line = line.replace("PASSWORD", "secret");
        server.run(&line.split(' ').collect::<Vec<_>>());
    }
    let at = |user: &str| format!("redis://{user}:secret@127.0.0.1:{}/0", server.port);
    behaves_as_a_store(&store(&at("symdex-writer"), &StoreOptions::new()));
    put(&store_in(&server), &index(0xab, 12));
    // An expiry that a reader cannot put off.
    let key = format!("symdex/1/{{{}}}/metadata", id(0xab));
    server.run(&["PEXPIRE", &key, "100000000"]);
    let reader = store(&at("symdex-reader"), &StoreOptions::new());
    assert_eq!(whole(&open(&reader, 0xab)), 3);
    assert_eq!(crate::common::entries(&reader).len(), 1);
    server.run(&["PEXPIRE", &key, "4000000000"]);
    let writer = store(&at("symdex-writer"), &StoreOptions::new());
    assert_eq!(writer.gc(Duration::from_millis(1)).expect("collected").kept, 1);
    server.run(&["DEL", &key]);
    let error = put_error(&at("symdex-reader")).to_string();
    assert!(error.contains("(NOPERM); docs/STORES.md lists"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

pub(crate) fn a_cluster_is_named_as_one() {
    let cluster = Cluster::start();
    // Of several ids, some are on other nodes.
    let single = store_in(&cluster.0[0]);
    let errors = (0..20).filter_map(|byte| single.open(&id(byte)).err());
    let error = errors.map(|error| error.to_string()).next().expect("an id of another node");
    assert!(error.contains("use a URL with redis+cluster://"), "{error}");
    let alone = Server::start(&[]);
    let error = put_error(&format!("redis+cluster://127.0.0.1:{}", alone.port)).to_string();
    assert!(error.contains("cluster"), "{error}");
}

pub(crate) fn replicas_and_full_servers_say_what_to_do() {
    let at_once = ["--repl-diskless-sync-delay", "0"];
    let (primary, replica) = (Server::start(&at_once), Server::start(&[]));
    put(&store_in(&primary), &index(0xcd, 12));
    replica.run(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    let begun = Instant::now();
    while replica.keys().len() < 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the replica has no keys");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(whole(&open(&store_in(&replica), 0xcd)), 3);
    let error = put_error(&replica.url());
    assert!(error.to_string().contains("(READONLY); use the URL of the primary"), "{error}");
    assert!(error.cause() != Cause::Unavailable);

    primary.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = put_error(&primary.url());
    assert!(error.to_string().contains("(OOM); raise its maxmemory"), "{error}");
    assert!(error.cause() == Cause::Unavailable);
}

/// Runs openssl in `folder`.
fn openssl(folder: &Path, arguments: &str) {
    let mut command = symdex_testkit::program("openssl", "version");
    command.args(arguments.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("openssl runs").success(), "{arguments}");
}

pub(crate) fn tls_trusts_the_certificates_of_the_given_file_only() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path();
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").expect("written");
    let steps = [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=redis",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names",
        "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other",
    ];
    steps.iter().for_each(|step| openssl(folder, step));
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let tls_port = free_port().to_string();
    let options = [
        ("--tls-port", &*tls_port),
        ("--tls-cert-file", &path("cert.pem")),
        ("--tls-key-file", &path("key.pem")),
        ("--tls-ca-cert-file", &path("ca.pem")),
        ("--tls-auth-clients", "no"),
    ];
    let options: Vec<_> = options.iter().flat_map(|(name, value)| [*name, *value]).collect();
    let _server = Server::start(&options);
    let url = format!("rediss://127.0.0.1:{tls_port}/0");
    behaves_as_a_store(&store(&url, &StoreOptions::new().ca_file(path("ca.pem"))));
    for options in [StoreOptions::new().ca_file(path("other.pem")), StoreOptions::new()] {
        let store = store(&url, &options);
        let error = store.open(&id(0xab)).expect_err("an unknown CA").to_string();
        assert!(error.contains("SYMDEX_REDIS_CA_FILE"), "{error}");
        assert_eq!(store.counts().retries, 0, "a wrong certificate does not become right");
    }
}

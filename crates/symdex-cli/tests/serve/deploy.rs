//! The command lines and the configuration in docs/deploy.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use saphyr::{LoadableYamlNode as _, YamlOwned};
use symdex_answer::SymbolicatorOptions;
use symdex_serve::ServerOptions;
use symdex_testkit::folders::folder;
use symdex_testkit::testdata::testdata;

use crate::server::symdex;

fn deployed(name: &str) -> String {
    fs::read_to_string(testdata().join("../docs/deploy").join(name)).expect("the file")
}

/// Panics unless these arguments are options of the command. `--help` comes last, so that they are read before it.
fn are_arguments(arguments: &[&str]) {
    let checked = symdex(arguments.iter().copied().chain(["--help"]));
    assert_eq!(checked.code, Some(0), "{arguments:?}: {}", checked.err);
    assert!(checked.out.contains("Answer crash reports and addresses over HTTP"), "{}", checked.out);
}

/// The manifest of this kind.
fn manifest(kind: &str) -> YamlOwned {
    let manifests = YamlOwned::load_from_str(&deployed("kubernetes.yaml")).expect("YAML");
    manifests.into_iter().find(|manifest| manifest["kind"].as_str() == Some(kind)).expect("the kind")
}

/// The elements of the JSON lists in the lines that begin with `keyword`.
fn words_of(file: &str, keyword: &str) -> Vec<String> {
    let lines = file.lines().filter_map(|line| line.strip_prefix(keyword));
    lines.flat_map(|list| serde_json::from_str::<Vec<String>>(list).expect("a list")).collect()
}

pub(crate) fn the_container_runs_a_command_that_exists() {
    let file = deployed("Dockerfile");
    let (entry, arguments) = (words_of(&file, "ENTRYPOINT "), words_of(&file, "CMD "));
    assert_eq!(entry[0], "/usr/bin/symdex");
    let words: Vec<_> = entry[1..].iter().chain(&arguments).map(String::as_str).collect();
    assert!(!words.contains(&"--insecure-public"), "a container asks for tokens");
    are_arguments(&words);
}

pub(crate) fn the_unit_runs_a_command_that_exists() {
    let unit = deployed("symdex.service");
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/symdex ")).expect("a command");
    let config = folder();
    let path = config.path().join("symdex.toml");
    fs::write(&path, "").expect("written");
    let line = line.replace("%d/symdex.toml", path.to_str().expect("text"));
    are_arguments(&line.split(' ').collect::<Vec<_>>());
}

pub(crate) fn the_manifests_have_a_command_and_a_configuration_that_exist() {
    let config = folder();
    let path: PathBuf = config.path().join("symdex.toml");
    let text = &manifest("ConfigMap")["data"]["symdex.toml"];
    fs::write(&path, text.as_str().expect("a configuration")).expect("written");
    let shown = symdex(["--config", path.to_str().expect("text"), "config", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let keys: Vec<_> = shown.json().iter().map(|line| line["key"].clone()).collect();
    assert!(["token", "listen", "state"].iter().all(|key| keys.contains(&(*key).into())), "{keys:?}");
    let arguments = &manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments: Vec<_> = arguments.as_vec().expect("arguments").iter().map(YamlOwned::as_str).collect();
    assert!(matches!(arguments[..], [Some("--config"), _, Some("serve")]), "{arguments:?}");
    are_arguments(&["--config", path.to_str().expect("text"), "serve"]);
}

/// Jobs and pending requests are known to one pod only, and a pod that stops still gets connections for a while.
pub(crate) fn the_manifests_send_a_client_to_one_pod_and_stop_pods_without_errors() {
    assert_eq!(manifest("Service")["spec"]["sessionAffinity"].as_str(), Some("ClientIP"));
    let pod = &manifest("Deployment")["spec"]["template"]["spec"];
    let pause = &pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"];
    let seconds = |number: &YamlOwned| {
        Duration::from_secs(number.as_integer().and_then(|seconds| seconds.try_into().ok()).expect("seconds"))
    };
    let grace = ServerOptions::new(SymbolicatorOptions::new()).grace;
    assert!(seconds(pause) + grace < seconds(&pod["terminationGracePeriodSeconds"]));
}

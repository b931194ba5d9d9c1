//! The command lines and the configuration in docs/deploy.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use saphyr::{LoadableYamlNode as _, YamlOwned};
use symdex_answer::SymbolicatorOptions;
use symdex_serve::ServerOptions;
use symdex_testkit::command::CommandOutput;
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

/// The socket is at the address of the service, whose configuration may say another one.
pub(crate) fn the_socket_is_where_the_server_listens() {
    let listen = ServerOptions::new(SymbolicatorOptions::new()).listen;
    assert!(deployed("symdex.socket").lines().any(|line| line == format!("ListenStream={listen}")));
}

pub(crate) fn the_manifests_have_a_command_and_a_configuration_that_exist() {
    let config = folder();
    let path: PathBuf = config.path().join("symdex.toml");
    let text = &manifest("ConfigMap")["data"]["symdex.toml"];
    fs::write(&path, text.as_str().expect("a configuration")).expect("written");
    let shown = symdex(["--config", path.to_str().expect("text"), "config", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let keys: Vec<_> = shown.json().iter().map(|line| line["key"].clone()).collect();
    assert!(["token", "listen"].iter().all(|key| keys.contains(&(*key).into())), "{keys:?}");
    let arguments = &manifest("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments: Vec<_> = arguments.as_vec().expect("arguments").iter().map(YamlOwned::as_str).collect();
    assert!(matches!(arguments[..], [Some("--config"), _, Some("serve")]), "{arguments:?}");
    are_arguments(&["--config", path.to_str().expect("text"), "serve"]);
}

/// Pending requests are known to one pod only, and a pod that stops still gets connections for a while.
pub(crate) fn the_manifests_send_a_client_to_one_pod_and_stop_pods_without_errors() {
    assert_eq!(manifest("Service")["spec"]["sessionAffinity"].as_str(), Some("ClientIP"));
    let pod = &manifest("Deployment")["spec"]["template"]["spec"];
    let seconds = |number: &YamlOwned| {
        Duration::from_secs(number.as_integer().and_then(|seconds| seconds.try_into().ok()).expect("seconds"))
    };
    let options = ServerOptions::new(SymbolicatorOptions::new());
    assert!(options.drain + options.grace < seconds(&pod["terminationGracePeriodSeconds"]));
    let volumes = pod["volumes"].as_vec().expect("volumes").iter().map(|one| one["name"].as_str());
    assert_eq!(volumes.flatten().collect::<Vec<_>>(), ["config", "tmp"], "jobs are in the bucket");
}

pub(crate) fn prometheus_accepts_the_alerts_and_they_fire_as_their_tests_say() {
    let promtool = |verb: &str, file: &str| {
        let mut command = symdex_testkit::program("promtool", "--version");
        command.current_dir(testdata().join("../docs/deploy")).args([verb, "rules", file]);
        let checked = CommandOutput::from(command.output().expect("promtool runs"));
        assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    };
    promtool("check", "alerts.yaml");
    promtool("test", "alerts.test.yaml");
    // The queries of the dashboard, as rules. JSON is YAML.
    let dashboard: serde_json::Value = serde_json::from_str(&deployed("grafana.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let rules = targets.zip(0..).map(|(target, number)| {
        let query = target["expr"].as_str().expect("a query").replace("$__rate_interval", "5m");
        serde_json::json!({"record": format!("query_{number}"), "expr": query})
    });
    let rules: Vec<_> = rules.collect();
    let folder = folder();
    let path = folder.path().join("queries.yaml");
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    fs::write(&path, groups.to_string()).expect("written");
    promtool("check", path.to_str().expect("text"));
}

/// Grafana imports a dashboard that has its schema. Panels do not overlap, and each query has its data source.
pub(crate) fn the_dashboard_has_the_form_that_grafana_imports() {
    let dashboard: serde_json::Value = serde_json::from_str(&deployed("grafana.json")).expect("JSON");
    assert!(dashboard["schemaVersion"].is_u64() && dashboard["uid"] == "symdex-serve", "{dashboard}");
    let variables = dashboard["templating"]["list"].as_array().expect("a list");
    let names: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().expect("text")).collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    let mut taken = std::collections::BTreeSet::new();
    let mut ids = std::collections::BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("a list") {
        assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{panel}");
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a number"));
        assert!(x + w <= 24, "{panel}");
        assert!((x..x + w).all(|x| (y..y + h).all(|y| taken.insert((x, y)))), "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
            let query = target["expr"].as_str().expect("a query");
            assert!(query.contains("instance=~\"$instance\""), "{query}");
        }
    }
    assert!(ids.len() > 20);
}

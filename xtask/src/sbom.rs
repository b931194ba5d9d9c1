//! `cargo xtask sbom`: a software bill of materials of the command `symdex`, in the JSON of CycloneDX 1.5.
//!
//! The crates are those that `cargo tree` lists for this system: normal dependencies, with the features that are used.
//! (cargo-cyclonedx also lists crates of optional features that are off, and writes the paths of this machine.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// The package of the command.
const PACKAGE: &str = "symdex-cli";

/// Prints the bill of materials, or writes it to the file given with `-o`.
///
/// # Errors
/// cargo fails, or a crate has no licence or no checksum.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let mut tree = super::cargo();
    tree.current_dir(super::workspace()?)
        .args(["tree", "--locked", "--package", PACKAGE, "--edges", "normal", "--prefix", "depth"])
        .args(["--format", "|{p}|{l}|{r}"]);
    let tree = tree.output().context("cannot run cargo")?;
    ensure!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
    let lock = fs::read_to_string(super::workspace()?.join("Cargo.lock")).context("Cargo.lock")?;
    let bill = bill_of(&DependencyTree::parse(&String::from_utf8(tree.stdout)?)?, &checksums(&lock))?;
    let text = serde_json::to_string_pretty(&bill)? + "\n";
    match words {
        [] => print!("{text}"),
        ["-o", path] => fs::write(path, text).with_context(|| (*path).to_owned())?,
        _ => bail!("expected `cargo xtask sbom [-o FILE]`"),
    }
    Ok(())
}

/// A crate: its name and its version.
type Crate = (String, String);

/// The crates of `cargo tree`.
#[derive(Default)]
struct DependencyTree {
    /// The first crate, which depends on all others.
    root: Crate,
    crates: BTreeMap<Crate, CrateInfo>,
}

/// What `cargo tree` says of a crate.
#[derive(Default)]
struct CrateInfo {
    license: String,
    repository: String,
    /// Whether the crate is part of the workspace.
    is_local: bool,
    dependencies: BTreeSet<Crate>,
}

impl DependencyTree {
    /// Reads lines of `DEPTH|NAME vVERSION (PATH)|LICENSE|REPOSITORY`. ` (*)` at the end of a line stands for lines that
    /// are left out because they are elsewhere.
    fn parse(text: &str) -> Result<Self> {
        let mut tree = Self::default();
        // The crates from the root to the current one.
        let mut path: Vec<Crate> = Vec::new();
        for line in text.lines() {
            let line = line.strip_suffix(" (*)").unwrap_or(line);
            let fields: Vec<&str> = line.split('|').collect();
            let &[depth, package, license, repository] = fields.as_slice() else {
                bail!("cargo tree: {line}")
            };
            let mut words = package.split(' ');
            let (name, version) =
                words.next().zip(words.next()).with_context(|| format!("cargo tree: {line}"))?;
            let key = (name.to_owned(), version.trim_start_matches('v').to_owned());
            path.truncate(depth.parse().with_context(|| format!("cargo tree: {line}"))?);
            match path.last() {
                Some(parent) => {
                    tree.crates.entry(parent.clone()).or_default().dependencies.insert(key.clone());
                }
                None => tree.root = key.clone(),
            }
            let info = tree.crates.entry(key.clone()).or_default();
            // The old form of `OR`, which is not in the SPDX standard.
            info.license = license.replace('/', " OR ");
            info.repository = repository.to_owned();
            info.is_local = words.any(|word| word.starts_with("(/") || word.contains(":\\"));
            path.push(key);
        }
        Ok(tree)
    }
}

/// The SHA-256 checksums of the crates in a Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<Crate, String> {
    let field = |package: &str, name: &str| {
        let value = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        Some(value.strip_suffix('"')?.to_owned())
    };
    let packages = lock.split("[[package]]");
    let checksum = |package: &str| {
        Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?))
    };
    packages.filter_map(checksum).collect()
}

/// The bill of materials of a tree of crates.
fn bill_of(tree: &DependencyTree, checksums: &BTreeMap<Crate, String>) -> Result<Value> {
    let (mut components, mut dependencies, mut root) = (Vec::new(), Vec::new(), Value::Null);
    for (key, info) in &tree.crates {
        let mut component = component(key, info);
        match checksums.get(key) {
            Some(checksum) => component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]),
            None => ensure!(info.is_local, "Cargo.lock has no checksum of {} {}", key.0, key.1),
        }
        ensure!(!info.license.is_empty(), "{} {} states no licence", key.0, key.1);
        let depends_on: Vec<_> = info.dependencies.iter().map(purl).collect();
        dependencies.push(json!({ "ref": purl(key), "dependsOn": depends_on }));
        if *key == tree.root {
            component["type"] = "application".into();
            root = component;
        } else {
            components.push(component);
        }
    }
    let tool =
        json!({ "type": "application", "name": "cargo xtask sbom", "version": env!("CARGO_PKG_VERSION") });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "tools": { "components": [tool] }, "component": root },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(key: &Crate, info: &CrateInfo) -> Value {
    let (name, version) = key;
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(key),
        "name": name,
        "version": version,
        "licenses": [{ "expression": info.license }],
        "purl": purl(key),
    });
    if !info.repository.is_empty() {
        component["externalReferences"] = json!([{ "type": "vcs", "url": info.repository }]);
    }
    component
}

/// The package URL of a crate. In a version, `+` has to be escaped.
fn purl((name, version): &Crate) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0|app v0.1.0 (/src/app)|MIT|
1|zstd v0.13.0+zstd.1.5|MIT/Apache-2.0|https://example.org/zstd
2|cc v1.0.0 (proc-macro)|MIT|https://example.org/cc
1|library v0.2.0 (/src/library)|MIT|
2|zstd v0.13.0+zstd.1.5|MIT/Apache-2.0|https://example.org/zstd (*)
1|cc v1.0.0 (proc-macro)|MIT|https://example.org/cc (*)
";
    const LOCK: &str = "\
[[package]]
name = \"zstd\"
version = \"0.13.0+zstd.1.5\"
checksum = \"aa\"
dependencies = [
 \"cc\",
]

[[package]]
name = \"cc\"
version = \"1.0.0\"
checksum = \"bb\"

[[package]]
name = \"app\"
version = \"0.1.0\"
";

    #[test]
    fn each_crate_is_listed_once_with_its_licence_checksum_and_dependencies() {
        let tree = DependencyTree::parse(TREE).expect("a tree");
        let bill = bill_of(&tree, &checksums(LOCK)).expect("complete");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/app@0.1.0");
        let components = bill["components"].as_array().expect("a list");
        let names: Vec<_> = components.iter().map(|component| component["name"].as_str()).collect();
        assert_eq!(names, [Some("cc"), Some("library"), Some("zstd")]);
        assert_eq!(components[2]["licenses"], json!([{ "expression": "MIT OR Apache-2.0" }]));
        assert_eq!(components[2]["hashes"], json!([{ "alg": "SHA-256", "content": "aa" }]));
        assert_eq!(components[2]["purl"], "pkg:cargo/zstd@0.13.0%2Bzstd.1.5");
        assert!(components[1].get("hashes").is_none(), "a crate of the workspace");
        let all = ["pkg:cargo/cc@1.0.0", "pkg:cargo/library@0.2.0", "pkg:cargo/zstd@0.13.0%2Bzstd.1.5"];
        let dependencies = bill["dependencies"].as_array().expect("a list");
        assert_eq!(dependencies[0], json!({ "ref": "pkg:cargo/app@0.1.0", "dependsOn": all }));
        assert_eq!(dependencies[3], json!({ "ref": all[2], "dependsOn": [all[0]] }));
    }

    #[test]
    fn a_crate_without_a_checksum_or_a_licence_is_an_error() {
        let bill = |tree: &str, lock: &str| {
            bill_of(&DependencyTree::parse(tree)?, &checksums(lock)).map_err(|error| error.context("bill"))
        };
        let message = |result: Result<Value>| format!("{:#}", result.expect_err("incomplete"));
        let without_checksum = LOCK.replace("checksum = \"bb\"\n", "");
        assert!(message(bill(TREE, &without_checksum)).contains("no checksum of cc 1.0.0"));
        assert!(
            message(bill(&TREE.replace("|MIT|\n1|zstd", "||\n1|zstd"), LOCK)).contains("app 0.1.0 states no")
        );
        assert!(DependencyTree::parse("1 app v0.1.0").is_err());
    }
}

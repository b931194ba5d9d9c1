//! `cargo xtask api`: lists the public items of the library crates in docs/API.md, with the first sentence of each
//! item's documentation. The items come from rustdoc's JSON output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// The crates in the order in which a reader meets them.
const CRATES: [&str; 9] = [
    "symdex",
    "symdex-demangle",
    "symdex-build",
    "symdex-isolate",
    "symdex-archive",
    "symdex-store",
    "symdex-fetch",
    "symdex-report",
    "symdex-audit",
];

/// The longest line of the list, in characters.
const LINE: usize = 120;

const INTRODUCTION: &str = "\
# The public items of the libraries

`cargo xtask api` makes this list from the documentation of the crates, with all of their features. `cargo doc --open`
shows the items in full.
";

/// Makes docs/API.md, or with `--check` compares it with what it should be.
///
/// # Errors
/// rustdoc fails, an item has no documentation, or the list on disk is another one.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let path = super::workspace()?.join("docs/API.md");
    let mut list = INTRODUCTION.to_owned();
    for name in CRATES {
        writeln!(list, "\n## {name}\n")?;
        let crate_docs = rustdoc_json(name).with_context(|| format!("the documentation of {name}"))?;
        let items = Items { index: &crate_docs["index"], undocumented: Vec::new(), list: String::new() };
        list += &items.of_crate(&crate_docs["root"])?;
    }
    match words {
        [] => Ok(fs::write(path, list)?),
        ["--check"] if fs::read_to_string(&path).unwrap_or_default() == list => Ok(()),
        ["--check"] => bail!("docs/API.md is not what the crates say; run `cargo xtask api`"),
        _ => bail!("expected `cargo xtask api [--check]`"),
    }
}

/// The output of rustdoc for the library `name`.
fn rustdoc_json(name: &str) -> Result<Value> {
    let target = super::workspace()?.join("target/api");
    let mut rustdoc = super::cargo();
    rustdoc
        // The JSON output needs this on a stable compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["rustdoc", "--quiet", "--package", name, "--lib", "--all-features", "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    ensure!(rustdoc.status().context("cannot run cargo")?.success(), "rustdoc failed");
    read(&target.join("doc").join(name.replace('-', "_")).with_extension("json"))
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// The list of one crate.
struct Items<'a> {
    /// The items by their ids.
    index: &'a Value,
    undocumented: Vec<String>,
    list: String,
}

impl<'a> Items<'a> {
    fn of_crate(mut self, root: &'a Value) -> Result<String> {
        self.module(root, "")?;
        ensure!(self.undocumented.is_empty(), "without documentation: {}", self.undocumented.join(", "));
        Ok(self.list)
    }

    fn get(&self, id: &Value) -> &'a Value {
        &self.index[id.to_string()]
    }

    /// Lists what the module has, its own modules last.
    fn module(&mut self, id: &Value, path: &str) -> Result<()> {
        let mut items: Vec<(String, &Value)> = Vec::new();
        for id in ids(&self.get(id)["inner"]["module"]["items"]) {
            let item = self.get(id);
            match item["inner"].get("use") {
                // A re-export of an item of another crate has no entry in the index.
                Some(used) if self.get(&used["id"]).is_null() => {}
                Some(used) => items.push((text(&used["name"]).to_owned(), &used["id"])),
                None => items.push((text(&item["name"]).to_owned(), id)),
            }
        }
        items.sort_by_key(|(name, id)| (kind(self.get(id)) == "module", name.clone()));
        for (name, id) in items {
            let path = if path.is_empty() { name } else { format!("{path}::{name}") };
            self.item(id, &path)?;
        }
        Ok(())
    }

    /// Lists an item and all that belongs to it.
    fn item(&mut self, id: &Value, path: &str) -> Result<()> {
        let item = self.get(id);
        let inner = &item["inner"][kind(item)];
        match kind(item) {
            "module" => {
                writeln!(
                    self.list,
                    "\n### `{path}`\n\n{}\n",
                    wrapped(&first_sentence(text(&item["docs"])), 0)
                )?;
                return self.module(id, path);
            }
            "struct" => {
                self.line("struct", item, path);
                let fields = ids(&inner["kind"]["plain"]["fields"]);
                self.members("field", fields, path);
            }
            "enum" => {
                self.line("enum", item, path);
                self.members("variant", ids(&inner["variants"]), path);
            }
            "trait" => {
                self.line("trait", item, path);
                self.members("fn", ids(&inner["items"]), path);
                return Ok(());
            }
            "function" => self.line("fn", item, path),
            "constant" => self.line("const", item, path),
            other => self.line(&other.replace('_', " "), item, path),
        }
        for id in ids(&inner["impls"]) {
            let of = &self.get(id)["inner"]["impl"];
            if of["trait"].is_null() {
                self.members("fn", ids(&of["items"]), path);
            }
        }
        Ok(())
    }

    /// Lists public fields, variants, or the functions and constants of an `impl` block.
    fn members(&mut self, what: &str, members: &'a [Value], path: &str) {
        for id in members {
            let item = self.get(id);
            if item.is_null() || item["visibility"] == "crate" {
                continue;
            }
            let what = if kind(item) == "assoc_const" { "const" } else { what };
            self.line(what, item, &format!("{path}::{}", text(&item["name"])));
        }
    }

    fn line(&mut self, what: &str, item: &Value, path: &str) {
        let sentence = first_sentence(text(&item["docs"]));
        if sentence.is_empty() {
            self.undocumented.push(path.to_owned());
        }
        self.list += &wrapped(&format!("* {what} `{path}`: {sentence}"), 2);
        self.list.push('\n');
    }
}

fn ids(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `struct`, `enum`, `function` and so on.
fn kind(item: &Value) -> &str {
    item["inner"].as_object().and_then(|inner| inner.keys().next()).map_or("", String::as_str)
}

/// The first sentence of a documentation comment, without links.
fn first_sentence(docs: &str) -> String {
    let paragraph =
        docs.split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    let mut out = String::new();
    let mut rest = &paragraph[..end];
    // `[text]` and `[text](target)` become `text`.
    while let Some((before, link)) = rest.split_once('[') {
        let Some((text, after)) = link.split_once(']') else { break };
        out += before;
        out += text;
        rest = after
            .strip_prefix('(')
            .and_then(|target| target.split_once(')'))
            .map_or(after, |(_, after)| after);
    }
    out + rest
}

/// `text` in lines of at most [`LINE`] characters. All but the first are indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line != 0 && line + 1 + word.chars().count() > LINE {
            lines.push(" ".repeat(indent));
        }
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_has_no_links_and_ends_at_its_full_stop() {
        let docs = "Opens the [`Index`](crate::Index) in\n`bytes`. As [`open`] does.\n\n# Errors";
        assert_eq!(first_sentence(docs), "Opens the `Index` in `bytes`.");
        assert_eq!(first_sentence("No stop [here"), "No stop [here");
    }

    #[test]
    fn lines_end_by_column_120_and_continue_indented() {
        let text = format!("* {}", ["word"; 60].join(" "));
        let lines = wrapped(&text, 2);
        assert!(lines.lines().count() == 3 && lines.lines().all(|line| line.len() <= LINE), "{lines}");
        assert!(lines.lines().skip(1).all(|line| line.starts_with("  word")), "{lines}");
    }
}

//! The configuration file `symdex.toml`, and the environment variables of options.
//!
//! A key of the file is the long name of an option. Values of the file become the default values of the options, so
//! the command line overrides the environment, and the environment overrides the file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};
use serde::Serialize;
use symdex_answer::fetch::Layout;
use toml::de::{DeTable, DeValue};

use crate::failure::{Cause, CommandResult, Failure};
use crate::url_password;

/// The name of the file.
const FILE: &str = "symdex.toml";

/// An option that the file and the environment can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The key of the file: the long name of the option.
    pub(crate) name: &'static str,
    /// The environment variable.
    pub(crate) variable: &'static str,
    /// Whether relative values are paths in the folder of the file.
    is_path: bool,
}

const fn key(name: &'static str, variable: &'static str, is_path: bool) -> Key {
    Key { name, variable, is_path }
}

/// The stores of indexes.
pub(crate) const STORE: Key = key("store", "SYMDEX_STORE", true);

/// The sources of debug files.
pub(crate) const DEBUG_SOURCE: Key = key("debug-source", "SYMDEX_DEBUG_SOURCE", true);

/// The server of `symdex upload`, and the file with its token.
pub(crate) const SERVER: Key = key("server", "SYMDEX_SERVER", false);
pub(crate) const TOKEN_FILE: Key = key("token-file", "SYMDEX_TOKEN_FILE", true);

const KEYS: [Key; 43] = [
    STORE,
    key("index", "SYMDEX_INDEX", true),
    key("debug-dir", "SYMDEX_DEBUG_DIR", true),
    DEBUG_SOURCE,
    key("symbol-map", "SYMDEX_SYMBOL_MAP", true),
    key("unwind", "SYMDEX_UNWIND", false),
    key("map", "SYMDEX_MAP", false),
    key("cache-size", "SYMDEX_CACHE_SIZE", false),
    key("store-timeout", "SYMDEX_STORE_TIMEOUT", false),
    SERVER,
    TOKEN_FILE,
    key("jobs", "SYMDEX_JOBS", false),
    key("max-memory", "SYMDEX_MAX_MEMORY", false),
    key("max-seconds", "SYMDEX_MAX_SECONDS", false),
    key("max-entries", "SYMDEX_MAX_ENTRIES", false),
    key("max-unpacked", "SYMDEX_MAX_UNPACKED", false),
    key("max-entry-size", "SYMDEX_MAX_ENTRY_SIZE", false),
    key("max-ratio", "SYMDEX_MAX_RATIO", false),
    key("max-nesting", "SYMDEX_MAX_NESTING", false),
    key("max-temporary", "SYMDEX_MAX_TEMPORARY", false),
    key("listen", "SYMDEX_LISTEN", false),
    key("fetch-wait", "SYMDEX_FETCH_WAIT", false),
    key("fetch-absent", "SYMDEX_FETCH_ABSENT", false),
    key("token", "SYMDEX_TOKEN", false),
    key("insecure-public", "SYMDEX_INSECURE_PUBLIC", false),
    key("allow-host", "SYMDEX_ALLOW_HOST", false),
    key("tls-cert", "SYMDEX_TLS_CERT", true),
    key("tls-key", "SYMDEX_TLS_KEY", true),
    key("cors-origin", "SYMDEX_CORS_ORIGIN", false),
    key("threads", "SYMDEX_THREADS", false),
    key("index-memory", "SYMDEX_INDEX_MEMORY", false),
    key("memory", "SYMDEX_MEMORY", false),
    key("max-body", "SYMDEX_MAX_BODY", false),
    key("timeout", "SYMDEX_TIMEOUT", false),
    key("address-connections", "SYMDEX_ADDRESS_CONNECTIONS", false),
    key("drain", "SYMDEX_DRAIN", false),
    key("state", "SYMDEX_STATE", true),
    key("max-upload", "SYMDEX_MAX_UPLOAD", false),
    key("min-free", "SYMDEX_MIN_FREE", false),
    key("build-jobs", "SYMDEX_BUILD_JOBS", false),
    key("on-conflict", "SYMDEX_ON_CONFLICT", false),
    key("keep-jobs", "SYMDEX_KEEP_JOBS", false),
    key("publish-within", "SYMDEX_PUBLISH_WITHIN", false),
];

/// The values of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct Config {
    file: Option<PathBuf>,
    /// Whether the command line names the file.
    #[cfg(feature = "stores")]
    pub(crate) is_named: bool,
    settings: Vec<Setting>,
}

/// A key of the file with its values.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    key: &'static Key,
    values: Vec<String>,
    line: usize,
}

impl Config {
    /// Reads the file that the command line names, or the first `symdex.toml` in the working folder and the folders
    /// above it.
    pub(crate) fn load(arguments: &[OsString]) -> Result<Self, Failure> {
        let mut words = arguments.iter().skip(1).take_while(|word| *word != "--");
        let mut named = None;
        while let Some(word) = words.next() {
            match word.to_str() {
                Some("--no-config") => return Ok(Self::default()),
                Some("--config") => named = words.next().map(PathBuf::from),
                Some(word) => named = word.strip_prefix("--config=").map(PathBuf::from).or(named),
                None => {}
            }
        }
        let found = || {
            let folder = std::env::current_dir().ok()?;
            folder.ancestors().map(|folder| folder.join(FILE)).find(|path| path.is_file())
        };
        let is_named = named.is_some();
        let Some(path) = named.or_else(found) else { return Ok(Self::default()) };
        let text = read(&path, is_named)?;
        let settings = settings(&text, &path)?;
        url_password::check(
            &path,
            settings.iter().flat_map(|setting| {
                setting.values.iter().map(|value| (setting.key.name, setting.line, &**value))
            }),
        )?;
        Ok(Self {
            file: Some(path),
            #[cfg(feature = "stores")]
            is_named,
            settings,
        })
    }

    /// Gives the options of all commands their environment variables, and the values of the file as defaults. `--store`
    /// and `--debug-source` get none: `stores.rs` and `debug_sources.rs` read them, because their URLs may have secrets
    /// and those of the command line may not. The server and its token have no defaults: `upload` reads them, because a
    /// file that was found may not decide who gets a token.
    pub(crate) fn apply(&self, command: Command) -> Command {
        command.mut_subcommands(|command| {
            command.mut_args(|arg| {
                let is_of_arg =
                    |key: &&Key| arg.get_long() == Some(key.name) && ![STORE, DEBUG_SOURCE].contains(key);
                let Some(key) = KEYS.iter().find(is_of_arg) else { return arg };
                // A value may have a password.
                let arg = arg.env(key.variable).hide_env_values(true);
                let setting =
                    self.setting(key).filter(|setting| ![&SERVER, &TOKEN_FILE].contains(&setting.key));
                let Some(setting) = setting else { return arg };
                let takes = if matches!(arg.get_action(), ArgAction::Append) { usize::MAX } else { 1 };
                let takes_values = arg.get_action().takes_values();
                let values = setting.values.iter().take(takes).cloned();
                arg.hide_default_value(takes_values).default_values(values)
            })
        })
    }

    /// The values of `key` in the file, and their place.
    pub(crate) fn values(&self, key: &Key) -> Option<(&[String], String)> {
        let setting = self.setting(key)?;
        let place = format!("{}:{}: `{}`", self.file.as_ref()?.display(), setting.line, key.name);
        Some((&setting.values, place))
    }

    fn setting(&self, key: &Key) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }
}

/// The contents of the file at `path`. A file that the command line does not name has to belong to the user.
fn read(path: &Path, is_named: bool) -> Result<String, Failure> {
    let unreadable = |error: io::Error| Failure::unreadable(path, &error);
    let mut file = File::open(path).map_err(unreadable)?;
    if !is_named && let Some(why) = distrust(&file, path).map_err(unreadable)? {
        let shown = path.display();
        let message = format!(
            "{shown}: this file is not used, because {why}; to use it, pass `--config {shown}`; to go on without it, \
             pass `--no-config`"
        );
        return Err(Failure::new(Cause::Usage, message).of_path(path));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Why `file`, which was found at `path`, may be the work of another user. A link counts as a file of its own.
#[cfg(unix)]
fn distrust(file: &File, path: &Path) -> io::Result<Option<&'static str>> {
    use std::os::unix::fs::MetadataExt as _;

    let (file, named) = (file.metadata()?, path.symlink_metadata()?);
    let user = rustix::process::geteuid().as_raw();
    let is_of_other = [file.uid(), named.uid()].into_iter().any(|owner| ![user, 0].contains(&owner));
    Ok(match (is_of_other, file.mode() & 0o002 != 0) {
        (true, _) => Some("it belongs to another user"),
        (false, true) => Some("every user may write to it"),
        (false, false) => None,
    })
}

/// Owners are unknown on this system.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on Unix systems")]
fn distrust(_: &File, _: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

/// The keys and values in `text`, the contents of the file at `path`.
fn settings(text: &str, path: &Path) -> Result<Vec<Setting>, Failure> {
    let line_of = |at: usize| 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
    let wrong = |line: usize, what: &str| {
        let message = format!("{}:{line}: {what}", path.display());
        Failure::new(Cause::Usage, message).of_path(path)
    };
    let table = DeTable::parse(text)
        .map_err(|error| wrong(line_of(error.span().map_or(0, |span| span.start)), error.message()))?;
    let mut settings = Vec::new();
    for (name, value) in table.get_ref() {
        let line = line_of(name.span().start);
        let key = KEYS.iter().find(|key| key.name == name.get_ref().as_ref()).ok_or_else(|| {
            let keys = KEYS.map(|key| key.name).join(", ");
            wrong(line, &format!("unknown key `{}`; the keys are {keys}", name.get_ref()))
        })?;
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| value_of(value.get_ref())).collect(),
            value => value_of(value).map(|value| vec![value]),
        };
        let expected = || {
            let what = "expected a text, a whole number, true, false, or a list of these";
            wrong(line, &format!("`{}`: {what}", key.name))
        };
        let values = values.ok_or_else(expected)?;
        let values = values.into_iter().map(|value| if key.is_path { in_folder(value, path) } else { value });
        settings.push(Setting { key, values: values.collect(), line });
    }
    settings.sort_by_key(|setting| setting.line);
    Ok(settings)
}

/// The text of a value of one line.
fn value_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(is_set) => Some(is_set.to_string()),
        _ => None,
    }
}

/// A relative path of the file `config`, in the folder of that file. A URL stays unchanged.
fn in_folder(value: String, config: &Path) -> String {
    if let Some((layout, rest)) = value.split_once('+')
        && Layout::from_name(layout).is_some()
    {
        return format!("{layout}+{}", in_folder(rest.to_owned(), config));
    }
    let (scheme, path) = match value.split_once(':') {
        Some(("dir", path)) => ("dir:", path),
        // One letter is a drive of Windows.
        Some((scheme, _))
            if scheme.len() > 1
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+') =>
        {
            return value;
        }
        _ => ("", &*value),
    };
    let folder = config.parent().unwrap_or(Path::new(""));
    format!("{scheme}{}", folder.join(path).display())
}

/// Show the effective configuration, and where each value comes from
///
/// An option on the command line overrides its environment variable, which overrides symdex.toml. symdex.toml is
/// searched in the working folder and in the folders above it. Keys of symdex.toml are the names of options. A relative
/// path starts at the folder of the file. An environment variable has one value; a key of the file may have a list.
/// Passwords are not shown. A file with a password in a URL has to be private (mode 600). A symdex.toml that belongs to
/// another user, or that every user may write to, is an error; --config FILE uses it all the same.
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Print JSON, one object per line for each option: key, values, source
    #[arg(long)]
    json: bool,
}

const EXAMPLE: &str = "\
Example of a symdex.toml:
  index = [\"indexes\", \"/srv/indexes\"]
  debug-dir = [\"/usr/lib/debug\"]
  max-memory = \"512MB\"
  jobs = 8";

/// An option and its values. With `--json`, its line.
#[derive(Serialize)]
struct Row {
    key: &'static str,
    values: Vec<String>,
    source: String,
}

pub(crate) fn run(args: &Args, config: &Config, commands: &Command) -> CommandResult {
    let mut out = io::stdout().lock();
    for key in &KEYS {
        let row = config.row(key, commands);
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&row).map_err(io::Error::from)?)?;
        } else {
            let values = if row.values.is_empty() { "-".to_owned() } else { row.values.join(", ") };
            writeln!(out, "{:15} {values:40} {}", row.key, row.source)?;
        }
    }
    Ok(None)
}

impl Config {
    fn row(&self, key: &'static Key, commands: &Command) -> Row {
        let shown = |values: Vec<String>| values.iter().map(|value| url_password::hidden(value)).collect();
        if let Some(value) = std::env::var_os(key.variable) {
            let values = shown(vec![value.to_string_lossy().into_owned()]);
            return Row { key: key.name, values, source: format!("environment variable {}", key.variable) };
        }
        if let Some((setting, file)) = self.setting(key).zip(self.file.as_ref()) {
            let source = format!("{}:{}", file.display(), setting.line);
            return Row { key: key.name, values: shown(setting.values.clone()), source };
        }
        let args = commands.get_subcommands().flat_map(Command::get_arguments);
        let defaults = args.filter(|arg| arg.get_long() == Some(key.name)).map(clap::Arg::get_default_values);
        let values = defaults.max_by_key(|values| values.len()).unwrap_or_default();
        let values: Vec<_> = values.iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let source = if values.is_empty() { "not set" } else { "built in" };
        Row { key: key.name, values, source: source.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Vec<(&'static str, Vec<String>, usize)>;

    fn read(text: &str) -> Result<Read, String> {
        let settings =
            settings(text, Path::new("/project/symdex.toml")).map_err(|failure| failure.message)?;
        Ok(settings.into_iter().map(|setting| (setting.key.name, setting.values, setting.line)).collect())
    }

    #[test]
    fn texts_numbers_and_lists_are_values_and_paths_start_at_the_file() {
        let text = "# ours\nstore = [\"a\", \"/b\", \"s3://c/d\", \"dir:e\", \"gdb+f\"]\njobs = 8\n\nmax-memory = \"512MB\"\nunwind = true\n";
        let store =
            ["/project/a", "/b", "s3://c/d", "dir:/project/e", "gdb+/project/f"].map(str::to_owned).to_vec();
        let expected =
            [("store", store, 2), ("jobs", vec!["8".into()], 3), ("max-memory", vec!["512MB".into()], 5)];
        let expected = expected.into_iter().chain([("unwind", vec!["true".into()], 6)]);
        assert_eq!(read(text), Ok(expected.collect()));
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_the_keys() {
        let unknown = read("jobs = 8\nstor = \"a\"\n").expect_err("unknown");
        assert!(
            unknown.starts_with("/project/symdex.toml:2: unknown key `stor`; the keys are store, index, "),
            "{unknown}"
        );
        let syntax = read("jobs = 8\nstore = [\n").expect_err("no TOML");
        assert!(syntax.starts_with("/project/symdex.toml:"), "{syntax}");
        for value in ["1.5", "{ a = 1 }", "[[1]]", "0x10"] {
            let wrong = read(&format!("jobs = {value}\n")).expect_err("no value");
            let expected = "expected a text, a whole number, true, false, or a list of these";
            assert_eq!(wrong, format!("/project/symdex.toml:1: `jobs`: {expected}"));
        }
    }

    /// As docs/SERVICE.md says.
    #[cfg(feature = "serve")]
    #[test]
    fn every_option_of_serve_is_a_key() {
        use clap::CommandFactory as _;
        let commands = crate::Cli::command();
        let serve = commands.find_subcommand("serve").expect("a command");
        let options = serve.get_arguments().filter_map(clap::Arg::get_long);
        let missing: Vec<_> = options.filter(|name| KEYS.iter().all(|key| key.name != *name)).collect();
        assert_eq!(missing, ["new-token", "no-unwind"]);
    }
}

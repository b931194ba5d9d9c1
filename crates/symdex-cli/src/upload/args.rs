//! The command line of `symdex upload`.

use std::path::PathBuf;
use std::time::Duration;

use crate::build::BuildArgs;
use crate::number::parse_time;

/// Build indexes here, and send those that a server does not have
///
/// The inputs and the options of the build are those of `symdex build`. The headers of the debug files are read first,
/// and the server is asked which images it answers with lines already: these are neither built nor sent. The others are
/// built in a temporary folder. An index is sent unless it answers less than the server does: names less than lines,
/// bounds less than names.
///
/// An index is compressed with zstd and sent in parts. After a broken connection, or after a run that was killed, only
/// the rest is sent. The command then waits until the server has taken each index, and asks it again: exit code 0 means
/// that the server answers every image of the inputs as well as its index does.
///
/// The token is read from a file or from the environment variable SYMDEX_SERVER_TOKEN. It needs the scopes `read` and
/// `index`; with --debug-files, `read` and `upload`. It is sent to no other server: redirects are not followed. Proxies
/// are those of the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
///
/// With --json, standard output has one object per line: one for each image, with its id, architecture, sizes, outcome
/// and what was sent for it; {"file", "error": {"kind", "message"}} for each failure; and {"totals": {...}} as the last
/// line, whose size is the number of bytes sent. docs/schema/upload.schema.json describes the objects.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("inputs", |arg| arg.required_unless_present("discover")))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Search the INPUTs, by default the working folder, for build outputs: Xcode archives, dSYMs, native libraries
    /// of Gradle, symbols of Flutter, programs and libraries in the build folders of cargo and CMake. What is found is
    /// printed before anything is sent
    #[arg(long, conflicts_with_all = ["inputs_from", "shard"])]
    pub(super) discover: bool,
    /// Send the debug files, for a server that builds the indexes itself. What is not an archive is sent as a zip of
    /// its debug files
    #[arg(long, conflicts_with = "require_all")]
    pub(super) debug_files: bool,
    /// Also send images for which the server already has lines
    #[arg(long)]
    pub(super) force: bool,
    /// Print what would be sent, without sending it
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not wait until the server has taken what was sent. Exit code 0 then means that it was received
    #[arg(long, conflicts_with = "wait")]
    pub(super) no_wait: bool,
    /// How long to wait until the server has taken everything that was sent
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_time)]
    pub(super) wait: Duration,
    #[command(flatten)]
    pub(super) build: BuildArgs,
}

/// The server, and how it is asked.
#[derive(clap::Args)]
pub(super) struct ServerArgs {
    /// The URL of a `symdex serve`
    #[arg(long, value_name = "URL")]
    pub(super) server: Option<String>,
    /// A file with the token of the server. Without it, the token is in the environment variable SYMDEX_SERVER_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// How long to retry a request when the server cannot be reached or is overloaded. If the server asks for a longer
    /// pause (Retry-After), the request fails at once
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_time)]
    pub(super) retry_for: Duration,
}

const EXAMPLES: &str = "\
Examples:
  symdex upload MyApp.xcarchive --server https://symbols.example.com --token-file token
  symdex upload MyApp.ipa appDsyms.zip --require-all
  symdex upload --discover app/build --dry-run
  symdex upload libapp.so --json | jq -r 'select(.outcome) | \"\\(.id) \\(.outcome)\"'
  symdex upload MyApp.app.dSYM --debug-files --no-wait

SYMDEX_SERVER, or `server` in symdex.toml, names the server if --server does not.

Exit codes:
  0  the server answers every image
  4  a debug file or an archive is damaged
  6  a file is not a debug file, or the server is none that takes uploads
  5  a file is missing
  1  the server cannot be reached or is overloaded, an upload exceeds its limits, or the server has not taken an index
  2  the server does not accept the token, or the token lacks a scope
  3  a file has nothing to answer, no image has the architecture, an image of --id is missing, or --require-all lacks
     debug information
If several apply, the first of these after 0 counts.";

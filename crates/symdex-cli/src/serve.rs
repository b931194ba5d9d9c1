//! `symdex serve`: symbolication over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use symdex_answer::SymbolicatorOptions;
use symdex_pipeline::isolate::Isolation;
use symdex_serve::{NewToken, Reloader, SCOPES_TEXT, Scope, Server, ServerOptions, Token, init_logging};
use symdex_store::{OnConflict, ReaderOptions, StoreUrl, StoreUrlError};

use crate::build::UnwindOption;
use crate::debug_sources::DebugSourceArgs;
use crate::failure::{Cause, CommandResult, Failure, complain};
use crate::number;
use crate::open::AccessOption;
use crate::stores::StoreArgs;

/// The smallest `--memory`: what an idle server needs, and room for a few requests.
const MIN_MEMORY: usize = 32_000_000;

/// Answer crash reports and addresses over HTTP
///
/// The server answers from the indexes in its stores. Without tokens, it listens on this machine only, and every user
/// of the machine has full access. Logs go to standard error: lines on a terminal, otherwise JSON. Contents of reports
/// are not logged.
///
/// With --debug-source, the debug file of an image that no store has is fetched, built in a child process with limits,
/// and its index is put into the first writable store.
///
/// SIGTERM or Ctrl-C stops the server: it accepts connections for --drain, then running requests have 30 seconds to
/// finish. A socket of systemd (LISTEN_FDS) takes the place of --listen.
///
/// SIGHUP reads the tokens and the files of --tls-cert and --tls-key again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address to listen on. Port 0 selects a free port, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8040")]
    listen: SocketAddr,
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    debug_sources: DebugSourceArgs,
    /// How long a request waits for images to be fetched and built before it reports them as being fetched. Limited by
    /// --timeout
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = number::parse_time)]
    fetch_wait: Duration,
    /// How long to wait before an image that no --debug-source has is requested again
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = number::parse_time)]
    fetch_absent: Duration,
    #[command(flatten)]
    access: AccessOption,
    /// A valid token: its scopes and its hash, as --new-token prints it, with an optional name that appears in the
    /// audit log and in the provenance of uploads. May be repeated
    #[arg(long, value_name = "[NAME=]SCOPES:sha256:HASH")]
    token: Vec<Token>,
    /// Create a token with these scopes, print it and its line for symdex.toml, and exit. The scopes are read
    /// (reports, addresses, images), upload (debug files and their jobs), index (indexes that were built elsewhere, and
    /// their jobs) and admin (metrics, all jobs, deleting and replacing indexes)
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', num_args = 0..)]
    new_token: Option<Vec<Scope>>,
    /// Listen on a network address without tokens, with full access for everyone
    #[arg(long)]
    insecure_public: bool,
    /// A name of this server, without a port. Without tokens, requests may name it only by an IP address or one of
    /// these names, so that no other web page can use it. May be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The certificate chain for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Pages of this origin may read answers, for example https://profiler.firefox.com; * is every origin. May be
    /// repeated
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<String>,
    /// How many requests run at the same time. The default is 4 per CPU, and at least 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// How much memory the server may allocate; less than 32MB counts as 32MB. Above 80 % of it, requests that need more
    /// than 1 MiB are rejected with 503; above all of it, every request. Child processes and mapped files do not count.
    /// On Windows, only what requests need is limited
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = number::parse_size)]
    memory: usize,
    /// The memory limit for cached indexes and values of the stores, at most half of --memory. The least recently used
    /// ones are evicted. Mapped files do not count
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = number::parse_size)]
    index_memory: usize,
    /// The maximum size of a request, before and after decompression. Uploads have their own limit
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = number::parse_size)]
    max_body: usize,
    /// The time limit of a request, until its answer begins
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = number::parse_time)]
    timeout: Duration,
    /// How many connections one address may have open, or one /64 network of IPv6; never more than half of all
    /// connections. Further ones are rejected with 503. A proxy in front of the server has one address: allow as many as
    /// it opens
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u16).range(1..))]
    address_connections: u16,
    /// How long to accept connections after SIGTERM. Meanwhile, /readyz returns 503 and each answer closes its
    /// connection, so that load balancers and clients move on without an error
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = number::parse_time)]
    drain: Duration,
    #[command(flatten)]
    uploads: UploadArgs,
}

/// The heading of these options in the help.
const UPLOADS: &str = "Uploads";

#[derive(clap::Args)]
struct UploadArgs {
    /// Where uploads and jobs are kept: a folder for this server only, or a bucket (s3://, gs://, az://) that servers
    /// share. They then know each other's jobs, and take over those of servers that were killed. The default is the
    /// first --store that is a bucket; without one, symdex/serve in the user's state folder
    #[arg(long, help_heading = UPLOADS, value_name = "DIR|URL", value_parser = StoreUrl::from_argument)]
    state: Option<StoreUrl>,
    /// The maximum size of an upload
    #[arg(long, help_heading = UPLOADS, value_name = "SIZE", default_value = "16GB", value_parser = number::parse_size)]
    max_upload: usize,
    /// How much disk space must stay free. Uploads that would leave less are rejected with 507
    #[arg(long, help_heading = UPLOADS, value_name = "SIZE", default_value = "2GB", value_parser = number::parse_size)]
    min_free: usize,
    /// How many debug files are built at the same time. The default is one per two CPUs
    #[arg(long, help_heading = UPLOADS, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    build_jobs: Option<u16>,
    /// The memory limit of each build, at least 32MB. Its child process may use 1.25 times as much, plus 256 MB
    #[arg(long, help_heading = UPLOADS, value_name = "SIZE", default_value = "1GB", value_parser = number::parse_size)]
    max_memory: usize,
    /// The time limit for building the index of one image, in seconds
    #[arg(long, help_heading = UPLOADS, value_name = "SECONDS", default_value = "3600",
          value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: u64,
    #[command(flatten, next_help_heading = UPLOADS)]
    unwind: UnwindOption,
    /// Which index to keep if an upload yields a different one of the same image: keep (the existing one, unless the
    /// same token uploaded both), replace (the new one), more (the one with more functions). A damaged one is always
    /// replaced. The default is keep with tokens, more without
    #[arg(long, help_heading = UPLOADS, value_name = "RULE")]
    on_conflict: Option<OnConflict>,
    /// How long finished jobs are kept
    #[arg(long, help_heading = UPLOADS, value_name = "TIME", default_value = "7d", value_parser = number::parse_time)]
    keep_jobs: Duration,
    /// How long publishing the indexes of an upload is retried if no store accepts them. The job then waits for an
    /// operator: GET /v1/jobs says so, and POST /v1/jobs/ID/resume or the next start of the server builds it again
    #[arg(long, help_heading = UPLOADS, value_name = "TIME", default_value = "5m", value_parser = number::parse_time)]
    publish_within: Duration,
}

impl UploadArgs {
    fn set(&self, stores: &[StoreUrl], options: &mut ServerOptions) -> Result<(), Failure> {
        options.isolation = Some(Isolation::of_this_program()?);
        options.state = {
            let bucket = stores.iter().find(|store| store.is_bucket()).cloned();
            self.state.clone().or(bucket).or_else(default_state)
        };
        options.max_upload = self.max_upload as u64;
        options.min_free = self.min_free as u64;
        if let Some(jobs) = self.build_jobs {
            options.build_jobs = jobs.into();
        }
        options.build_memory = self.max_memory;
        options.build_seconds = self.max_seconds;
        options.build_unwind_rows = self.unwind.is_wanted();
        options.keep_jobs = self.keep_jobs;
        options.on_conflict = self.on_conflict;
        options.publish_within = self.publish_within;
        Ok(())
    }
}

/// The folder for uploads if the command line names none. `None`, with a warning, if there is no such folder: a server
/// without one still answers.
fn default_state() -> Option<StoreUrl> {
    use etcetera::BaseStrategy as _;
    let folders = etcetera::base_strategy::choose_native_strategy().ok();
    let folder = folders.map(|folders| folders.state_dir().unwrap_or_else(|| folders.data_dir()));
    let made = folder
        .map(|folder| folder.join("symdex").join("serve"))
        .ok_or("the user has no home folder".to_owned());
    let made = made.and_then(|folder| match symdex_store::create_private_folder(&folder) {
        Ok(()) => {
            format!("dir:{}", folder.display()).parse().map_err(|error: StoreUrlError| error.to_string())
        }
        Err(error) => Err(format!("{}: {error}", folder.display())),
    });
    let warn = |error: &String| {
        complain(&format!(
            "warning: uploads are refused: there is no folder for them; name one with --state: {error}"
        ));
    };
    made.inspect_err(warn).ok()
}

const EXAMPLES: &str = "\
Examples:
  symdex serve --store indexes
  symdex serve --store redis://cache:6379 --store s3://bucket/indexes --listen 0.0.0.0:8040 \\
    --tls-cert cert.pem --tls-key key.pem
  symdex serve --store indexes --debug-source unified+s3://bucket/symbols
  symdex serve --new-token read,upload
  symdex serve --store indexes --token ci=read+upload:sha256:9b128e78...
  curl -T MyApp.app.dSYM.zip 'http://127.0.0.1:8040/v1/debug-files?name=MyApp.app.dSYM.zip'
  curl --data-binary @MyApp.ips http://127.0.0.1:8040/v1/symbolicate
  curl --json '[{\"id\": \"0c37c502-aba0-3641-a08f-84c794684f36\", \"addresses\": [\"0x5ed8\"]}]' \\
    http://127.0.0.1:8040/v1/lookup

docs/SERVICE.md describes all requests; /openapi.json does so for programs.";

/// Serves. `args_again` yields the options with what the configuration file has at that time.
pub(crate) fn run(args: &Args, args_again: fn() -> Result<Box<Args>, Failure>) -> CommandResult {
    if let Some(scopes) = &args.new_token {
        if scopes.is_empty() {
            let message = format!("--new-token needs scopes, such as --new-token read,upload; {SCOPES_TEXT}");
            return Err(Failure::new(Cause::Usage, message).into());
        }
        let token = NewToken::new(scopes);
        println!("{}\ntoken = [\"{}\"]", token.secret, token.configured);
        return Ok(None);
    }
    let options = args.options()?;
    #[cfg(all(feature = "jemalloc", any(target_os = "linux", target_os = "macos")))]
    crate::allocator::start_giving_back();
    let _logging = init_logging();
    let other = |message: String| Failure::new(Cause::Other, message);
    let socket =
        given_socket().map_err(|error| other(format!("LISTEN_FDS: cannot use the socket: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| other(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let server = match socket {
            Some(socket) => Server::on(options, socket),
            None => Server::bind(options).await,
        };
        let server = server.map_err(|error| other(error.to_string()))?;
        let address = server.local_addr().map_err(|error| other(error.to_string()))?;
        reload_on_hangup(server.reloader(), args_again);
        let stop = told_to_stop();
        complain(&format!("listening at {address}"));
        server.run(stop).await;
        Ok(None)
    })
}

/// The listening socket that systemd or another supervisor has opened, if there is one. Call this before threads are
/// started: it removes the variables from the environment.
#[cfg(unix)]
fn given_socket() -> std::io::Result<Option<std::net::TcpListener>> {
    listenfd::ListenFd::from_env().take_tcp_listener(0)
}

#[cfg(not(unix))]
fn given_socket() -> std::io::Result<Option<std::net::TcpListener>> {
    Ok(None)
}

impl Args {
    fn options(&self) -> Result<ServerOptions, Failure> {
        let stores = self.stores.urls()?;
        if stores.is_empty() {
            let message =
                "name a store of indexes with --store, for example a folder; it is made if it does not exist";
            return Err(Failure::new(Cause::Usage, message));
        }
        let memory = self.memory.max(MIN_MEMORY) as u64;
        let reader = ReaderOptions::new().memory((self.index_memory as u64).min(memory / 2));
        let symbolicator =
            SymbolicatorOptions::new().store_options(self.stores.options(self.access)).reader_options(reader);
        let mut options =
            ServerOptions::new(stores.iter().cloned().fold(symbolicator, SymbolicatorOptions::store));
        self.uploads.set(&stores, &mut options)?;
        options.listen = self.listen;
        options.tokens.clone_from(&self.token);
        options.insecure_public = self.insecure_public;
        options.allowed_hosts = self.allow_host.clone();
        options.tls = self.tls_cert.clone().zip(self.tls_key.clone());
        options.cors_origins.clone_from(&self.cors_origin);
        if let Some(threads) = self.threads {
            options.threads = threads.into();
        }
        options.memory = memory;
        #[cfg(all(feature = "jemalloc", any(target_os = "linux", target_os = "macos")))]
        {
            options.allocated = crate::allocator::allocated;
        }
        options.max_body = self.max_body as u64;
        options.timeout = self.timeout;
        options.drain = self.drain;
        options.address_connections = self.address_connections.into();
        options.debug_sources = self.debug_sources.urls()?;
        // A little time is left to answer.
        options.fetch_wait = self.fetch_wait.min(self.timeout * 3 / 4);
        options.absent = self.fetch_absent;
        Ok(options)
    }
}

/// Reads tokens and certificates again whenever the process gets SIGHUP. What cannot be used is logged, and changes
/// nothing.
#[cfg(unix)]
fn reload_on_hangup(reloader: Reloader, args_again: fn() -> Result<Box<Args>, Failure>) {
    use tokio::signal::unix::{SignalKind, signal};
    let reload = move || {
        let args = args_again().map_err(|failure| failure.message)?;
        reloader.reload(&args.token).map_err(|error| error.to_string())?;
        Ok::<_, String>(args.token.len())
    };
    match signal(SignalKind::hangup()) {
        Ok(mut hangups) => {
            _ = tokio::spawn(async move {
                while hangups.recv().await.is_some() {
                    match reload() {
                        Ok(tokens) => tracing::info!(tokens, "reloaded"),
                        Err(error) => {
                            tracing::error!(error, "not reloaded; the old tokens and certificates stay")
                        }
                    }
                }
            })
        }
        Err(error) => tracing::warn!(%error, "SIGHUP cannot be handled"),
    }
}

#[cfg(not(unix))]
fn reload_on_hangup(_: Reloader, _: fn() -> Result<Box<Args>, Failure>) {}

/// Ready when the process gets Ctrl-C or, on Unix, SIGTERM. They are handled from this call on.
#[cfg(unix)]
fn told_to_stop() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let [interrupted, terminated] = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| {
        let handled = signal(kind).ok();
        async move {
            match handled {
                Some(mut handled) => _ = handled.recv().await,
                // Without the handler, the system ends the process.
                None => std::future::pending().await,
            }
        }
    });
    async move {
        tokio::select! {
            () = interrupted => (),
            () = terminated => (),
        }
    }
}

/// Ready when the process gets Ctrl-C.
#[cfg(not(unix))]
async fn told_to_stop() {
    // Without the handler, the system ends the process.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

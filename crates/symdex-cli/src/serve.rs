//! `symdex serve`: symbolication over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use symdex_serve::{NewToken, Scope, Server, ServerOptions, Token, init_logging};
use symdex_store::symbolicator::SymbolicatorOptions;

use crate::failure::{CommandResult, Failure, FailureKind, complain};
use crate::number;
use crate::open::AccessOption;
use crate::stores::StoreArgs;

/// Answer crash reports and addresses over HTTP
///
/// The server answers from the indexes in its stores. Without tokens, it listens at this machine only, and everybody on
/// it may use it. Logs go to standard error: lines on a terminal, otherwise JSON. Nothing of a report is logged.
///
/// SIGTERM or Ctrl-C stops the server: it accepts no more connections, and requests that run have 30 seconds to end.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address to listen at. Port 0 is any free port, which is printed
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8040")]
    listen: SocketAddr,
    #[command(flatten)]
    stores: StoreArgs,
    #[command(flatten)]
    access: AccessOption,
    /// A token that may be used: its scopes (read, upload, admin) and its hash, as --new-token prints it. May be repeated
    #[arg(long, value_name = "SCOPES:sha256:HASH")]
    token: Vec<Token>,
    /// Make a new token with these scopes, print it and its line for symdex.toml, and exit
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', num_args = 1..)]
    new_token: Vec<Scope>,
    /// Listen at an address of the network although there are no tokens, so that everybody may do everything
    #[arg(long)]
    insecure_public: bool,
    /// The certificate chain for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Pages of this origin may read answers, for example https://profiler.firefox.com. May be repeated
    #[arg(long, value_name = "ORIGIN")]
    cors_origin: Vec<String>,
    /// How many requests are answered at one time. The default is 4 for each CPU, at least 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// How much memory the reports and answers of all requests may take. More requests are refused with 503
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = number::parse_size)]
    request_memory: usize,
    /// How many bytes a request may have, before and after it is decompressed. Uploads are not limited by this
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = number::parse_size)]
    max_body: usize,
    /// How long a request may take until its answer begins
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = number::parse_time)]
    timeout: Duration,
}

const EXAMPLES: &str = "\
Examples:
  symdex serve --store indexes
  symdex serve --store redis://cache:6379 --store s3://bucket/indexes --listen 0.0.0.0:8040 --tls-cert cert.pem --tls-key key.pem
  symdex serve --new-token read,upload
  curl --data-binary @MyApp.ips http://127.0.0.1:8040/v1/symbolicate
  curl --json '[{\"id\": \"0c37c502-aba0-3641-a08f-84c794684f36\", \"addresses\": [\"0x5ed8\"]}]' \\
    http://127.0.0.1:8040/v1/lookup

docs/SERVICE.md describes all requests; /openapi.json does so for programs.";

pub(crate) fn run(args: &Args) -> CommandResult {
    if !args.new_token.is_empty() {
        let token = NewToken::new(&args.new_token);
        println!("{}\ntoken = [\"{}\"]", token.secret, token.configured);
        return Ok(None);
    }
    let options = args.options()?;
    init_logging();
    let other = |message: String| Failure::new(FailureKind::Other, message);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| other(format!("cannot start threads: {error}")))?;
    runtime.block_on(async {
        let server = Server::bind(options).await.map_err(|error| other(error.to_string()))?;
        let address = server.local_addr().map_err(|error| other(error.to_string()))?;
        complain(&format!("listening at {address}"));
        server.run(told_to_stop()).await;
        Ok(None)
    })
}

impl Args {
    fn options(&self) -> Result<ServerOptions, Failure> {
        let stores = self.stores.urls()?;
        if stores.is_empty() {
            let message =
                "name a store of indexes with --store, for example a folder; it is made if it does not exist";
            return Err(Failure::new(FailureKind::Usage, message));
        }
        let symbolicator = SymbolicatorOptions::new().store_options(self.stores.options(self.access));
        let mut options =
            ServerOptions::new(stores.into_iter().fold(symbolicator, SymbolicatorOptions::store));
        options.listen = self.listen;
        options.tokens.clone_from(&self.token);
        options.insecure_public = self.insecure_public;
        options.tls = self.tls_cert.clone().zip(self.tls_key.clone());
        options.cors_origins.clone_from(&self.cors_origin);
        if let Some(threads) = self.threads {
            options.threads = threads.into();
        }
        options.memory = self.request_memory as u64;
        options.max_body = self.max_body as u64;
        options.timeout = self.timeout;
        Ok(options)
    }
}

/// Ready when the process gets Ctrl-C or, on Unix, SIGTERM.
async fn told_to_stop() {
    let interrupted = async {
        // Without the handler, the system ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                () = interrupted => (),
                _ = terminated.recv() => (),
            }
            return;
        }
    }
    interrupted.await;
}

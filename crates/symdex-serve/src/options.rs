//! The options of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use symdex_answer::SymbolicatorOptions;
use symdex_answer::fetch::{FetchOptions, SourceUrl};
use symdex_pipeline::isolate::Isolation;
use symdex_store::{OnConflict, StoreUrl};

use crate::token::Token;

/// The options of a [`Server`](crate::Server).
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen at. Port 0 is any free port. The default is 127.0.0.1:8040.
    pub listen: SocketAddr,
    /// The indexes that answer.
    pub symbolicator: SymbolicatorOptions,
    /// Who may do what. Without tokens, everybody may do everything.
    pub tokens: Vec<Token>,
    /// Listen on a network address without tokens.
    pub insecure_public: bool,
    /// Names of this server, without a port, that requests may have in the header `Host`, in addition to IP addresses.
    /// Without tokens, requests with other names are refused, because anybody can register a name for any address.
    pub allowed_hosts: Vec<String>,
    /// The certificate chain and the private key for TLS, in PEM. Without them, the server speaks plain HTTP.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The origins (`https://host:port`) whose pages may read answers in browsers. None by default. `*` is every
    /// origin.
    pub cors_origins: Vec<String>,
    /// How many requests run at the same time. The default is 4 for each CPU, at least 8, because threads wait for
    /// stores.
    pub threads: usize,
    /// How many requests may wait for a thread, half of them from one client. More are refused with 503. Bodies that
    /// wait take a part of `memory`. The default is 2048.
    pub queue: usize,
    /// How many bytes the program may allocate, as [`allocated`](Self::allocated) counts them; above four fifths, small
    /// requests only. The reports and answers of all requests may reserve half of it, three quarters of that for one
    /// client. Requests that do not fit are refused with 503. The default is 2 GB.
    pub memory: u64,
    /// Returns how many bytes the program has allocated; `None` if that is not known. By default it is not, and only
    /// what requests reserve counts.
    pub allocated: fn() -> Option<u64>,
    /// How many bytes a request may have, uploads excepted, before and after it is decompressed. The default is
    /// 64 MiB.
    pub max_body: u64,
    /// How long a request may take until its answer begins. The default is 60 seconds.
    pub timeout: Duration,
    /// How long a client may take to send the head of a request, how long it may stay idle between requests, and how
    /// long it may keep the server waiting while it sends a body or reads an answer: a second longer for each 16 KiB
    /// that it has sent or read. The default is 30 seconds.
    pub idle_timeout: Duration,
    /// How many connections may be open. More are refused with 503. The default is 16384, or as many as the limit of
    /// open files of the process allows, less 256. A server raises the soft limit to the hard limit.
    pub max_connections: usize,
    /// How many of them may come from one address, or from one /64 network of IPv6. Never more than half of all. The
    /// default is 1024.
    pub address_connections: usize,
    /// How child processes are started that read debug files:
    /// [`Isolation::of_this_program`](symdex_pipeline::isolate::Isolation::of_this_program), if this program calls
    /// [`symdex_pipeline::run_child`] first of all in its `main`. The limits of children are set by the options below.
    /// Without it, debug files are refused.
    pub isolation: Option<Isolation>,
    /// Where uploads and jobs are kept. A folder is made if it does not exist, and is for one server at a time. A
    /// bucket is shared: each server with the same URL knows all jobs, and takes over those of servers that were
    /// killed. Without it, uploads are refused.
    pub state: Option<StoreUrl>,
    /// How many bytes an upload may have. The default is 16 GB.
    pub max_upload: u64,
    /// How many bytes of the file system with the folder [`state`](Self::state) stay free. Uploads that would take them
    /// are refused with 507. The default is 2 GB. Only Unix systems enforce it.
    pub min_free: u64,
    /// How many debug files are built at the same time. The default is one for two CPUs.
    pub build_jobs: usize,
    /// How many bytes of memory each build may take. Its child process may allocate a quarter and 256 MiB more. The
    /// default is 1 GB.
    pub build_memory: usize,
    /// How many seconds the index of one image may take. The default is one hour.
    pub build_seconds: u64,
    /// Whether the indexes of uploads and of fetched debug files have unwind rows. They have none by default.
    pub build_unwind_rows: bool,
    /// How long finished jobs are kept. The default is 7 days.
    pub keep_jobs: Duration,
    /// Which index stays if an upload makes a different one of an image. The default is [`OnConflict::Keep`] if there
    /// are tokens, and [`OnConflict::More`] if there are none.
    pub on_conflict: Option<OnConflict>,
    /// How long publishing the indexes of an upload is retried if no store accepts them. Its job then waits for an
    /// operator. The default is 5 minutes.
    pub publish_within: Duration,
    /// Where the debug files of images that no store has are fetched. None by default. They are built as
    /// [`isolation`](Self::isolation) says.
    pub debug_sources: Vec<SourceUrl>,
    /// How debug files are fetched. The folder for temporary files is that of builds.
    pub fetch: FetchOptions,
    /// How long a request waits for images that are fetched and built. The default is 45 seconds.
    pub fetch_wait: Duration,
    /// For how long an image that no source of debug files has is not asked for again. The default is 10 minutes.
    pub absent: Duration,
    /// How long the server still accepts connections after it was told to stop, so that no client is refused before its
    /// load balancer has noticed. Each answer closes its connection meanwhile. The default is 5 seconds.
    pub drain: Duration,
    /// How long requests that run may take to end after [`drain`](Self::drain). The default is 30 seconds.
    pub grace: Duration,
}

impl ServerOptions {
    /// The default options, with answers from `symbolicator`.
    #[must_use]
    pub fn new(symbolicator: SymbolicatorOptions) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (4 * cpus).max(8);
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8040).into(),
            symbolicator,
            tokens: Vec::new(),
            insecure_public: false,
            allowed_hosts: Vec::new(),
            tls: None,
            cors_origins: Vec::new(),
            threads,
            queue: 2048,
            memory: 2_000_000_000,
            allocated: || None,
            max_body: 64 << 20,
            timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            max_connections: 16384,
            address_connections: 1024,
            isolation: None,
            state: None,
            max_upload: 16_000_000_000,
            min_free: 2_000_000_000,
            build_jobs: (cpus / 2).max(1),
            build_memory: 1_000_000_000,
            build_seconds: 60 * 60,
            build_unwind_rows: false,
            keep_jobs: Duration::from_secs(7 * 24 * 60 * 60),
            on_conflict: None,
            publish_within: Duration::from_secs(5 * 60),
            debug_sources: Vec::new(),
            fetch: FetchOptions::new(),
            fetch_wait: Duration::from_secs(45),
            absent: Duration::from_secs(10 * 60),
            drain: Duration::from_secs(5),
            grace: Duration::from_secs(30),
        }
    }
}

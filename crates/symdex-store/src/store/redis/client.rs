//! Sends batches of commands to Redis: one round trip each, with time-outs and retries.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::Mutex;

use super::config::{AnyClient, Config};
use super::failure::Failure;
use crate::store::runtime;

/// How often a batch is sent. The delays between attempts add up to 1.6 to 3.2 seconds.
const ATTEMPTS: u32 = 7;
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// The address of one node of a cluster.
pub(super) type Node = (String, u16);

/// What a [`RedisStore`](super::RedisStore) has sent and received since it was opened.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisCounts {
    /// Batches of commands that were sent and waited for. The commands of a batch are sent at once, in a cluster to all
    /// nodes concerned.
    pub round_trips: u64,
    /// Commands in these batches.
    pub commands: u64,
    /// Batches that were sent again after an error.
    pub retries: u64,
    /// Bytes of the strings in the replies.
    pub reply_bytes: u64,
    /// Images whose expiry was put off. They are renewed in the background, apart from the round trips.
    pub renewals: u64,
}

/// A connection to Redis that several threads share. It is made again when it is lost.
pub(super) struct Client {
    config: Config,
    timeout: Duration,
    /// The connection with its number, by which a failed one is told from its successor.
    connection: Mutex<Option<(u64, Connection)>>,
    connections: AtomicU64,
    pub(super) counters: Counters,
}

#[derive(Default)]
pub(super) struct Counters {
    round_trips: AtomicU64,
    commands: AtomicU64,
    retries: AtomicU64,
    reply_bytes: AtomicU64,
    pub(super) renewals: AtomicU64,
}

#[derive(Clone)]
enum Connection {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The reply to one command of a batch.
pub(super) type Reply = Result<Value, Failure>;

impl Client {
    pub(super) fn new(config: Config, timeout: Duration) -> Self {
        let counters = Counters::default();
        Self { config, timeout, connection: Mutex::new(None), connections: AtomicU64::new(0), counters }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.config.client, AnyClient::Cluster(_))
    }

    /// Sends `commands` at once and waits for all replies. Commands must be such that they may be sent again.
    pub(super) fn send(self: &Arc<Self>, commands: Vec<Cmd>) -> Result<Vec<Reply>, Failure> {
        self.send_to(None, commands)
    }

    /// Sends `commands` to `node`, or to the nodes that have their keys.
    pub(super) fn send_to(
        self: &Arc<Self>,
        node: Option<Node>,
        commands: Vec<Cmd>,
    ) -> Result<Vec<Reply>, Failure> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let client = Arc::clone(self);
        let sent = runtime::wait(self.timeout, async move { client.send_retrying(node, &commands).await });
        sent.unwrap_or_else(|error| match error.kind() {
            std::io::ErrorKind::TimedOut => {
                Err(Failure::transient(format!("no reply within {:?}", self.timeout)))
            }
            _ => Err(Failure::lasting(error.to_string())),
        })
    }

    /// Sends one command.
    pub(super) fn send_one(self: &Arc<Self>, command: Cmd) -> Reply {
        let mut replies = self.send(vec![command])?;
        replies.pop().unwrap_or_else(|| Err(Failure::unexpected_reply()))
    }

    /// Sends a command in the background. Calls `done` with the reply.
    pub(super) fn send_later(self: &Arc<Self>, command: Cmd, done: impl FnOnce(Reply) + Send + 'static) {
        let client = Arc::clone(self);
        runtime::spawn(async move {
            let replies = client.attempt(None, std::slice::from_ref(&command)).await;
            done(
                replies.and_then(|mut replies| {
                    replies.pop().unwrap_or_else(|| Err(Failure::unexpected_reply()))
                }),
            );
        });
    }

    async fn send_retrying(&self, node: Option<Node>, commands: &[Cmd]) -> Result<Vec<Reply>, Failure> {
        let mut attempt = 1;
        loop {
            self.counters.round_trips.fetch_add(1, Ordering::Relaxed);
            self.counters.commands.fetch_add(commands.len() as u64, Ordering::Relaxed);
            let replies = self.attempt(node.as_ref(), commands).await;
            let failure = match &replies {
                Ok(replies) => {
                    replies.iter().find_map(|reply| reply.as_ref().err().filter(|f| f.is_transient))
                }
                Err(failure) => Some(failure).filter(|failure| failure.is_transient),
            };
            if failure.is_none() || attempt == ATTEMPTS {
                if let Ok(replies) = &replies {
                    let size = replies.iter().flatten().map(size).sum();
                    self.counters.reply_bytes.fetch_add(size, Ordering::Relaxed);
                }
                return replies;
            }
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(delay(attempt)).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, node: Option<&Node>, commands: &[Cmd]) -> Result<Vec<Reply>, Failure> {
        let failure = |error: &RedisError| Failure::new(error, self.is_cluster(), &self.config.secrets);
        let (number, connection) = self.connect().await.map_err(|error| failure(&error))?;
        let replies = connection.send(node, commands).await;
        // Replies of the server have a code.
        let is_lost = |error: &RedisError| error.code().is_none();
        let lost = match &replies {
            Ok(replies) => replies.iter().any(|reply| reply.as_ref().is_err_and(is_lost)),
            Err(_) => true,
        };
        if lost {
            self.connection.lock().await.take_if(|(current, _)| *current == number);
        }
        match replies {
            Ok(replies) => {
                Ok(replies.into_iter().map(|reply| reply.map_err(|error| failure(&error))).collect())
            }
            Err(error) => Err(failure(&error)),
        }
    }

    /// The connection, opened now if there is none. Other threads wait.
    async fn connect(&self) -> RedisResult<(u64, Connection)> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = &*connection {
            return Ok(connection.clone());
        }
        let made = match &self.config.client {
            AnyClient::Node(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(self.config.connect_timeout))
                    .set_response_timeout(Some(self.config.response_timeout));
                Connection::Node(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            AnyClient::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
        };
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        Ok(connection.insert((number, made)).clone())
    }

    pub(super) fn counts(&self) -> RedisCounts {
        let Counters { round_trips, commands, retries, reply_bytes, renewals } = &self.counters;
        let [round_trips, commands, retries, reply_bytes, renewals] =
            [round_trips, commands, retries, reply_bytes, renewals]
                .map(|count| count.load(Ordering::Relaxed));
        RedisCounts { round_trips, commands, retries, reply_bytes, renewals }
    }
}

impl Connection {
    /// Sends `commands` at once. A node gets one pipeline. The client of a cluster follows redirections of commands but
    /// not of pipelines, so that it gets all commands at the same time.
    async fn send(self, node: Option<&Node>, commands: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::Node(mut connection) => {
                let mut pipeline = Pipeline::with_capacity(commands.len());
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                let replies = connection.req_packed_commands(&pipeline, 0, commands.len()).await?;
                Ok(replies.into_iter().map(Value::extract_error).collect())
            }
            Self::Cluster(connection) => {
                let send = |command: &Cmd| {
                    let (mut connection, command) = (connection.clone(), command.clone());
                    let node = node.cloned();
                    async move {
                        let reply = match node {
                            Some((host, port)) => {
                                let node = SingleNodeRoutingInfo::ByAddress { host, port };
                                connection.route_command(command, RoutingInfo::SingleNode(node)).await
                            }
                            None => connection.req_packed_command(&command).await,
                        };
                        reply.and_then(Value::extract_error)
                    }
                };
                Ok(join_all(commands.iter().map(send)).await)
            }
        }
    }
}

/// How long to wait after failed attempt number `attempt`: a random time between half of the delay and the delay, so
/// that clients do not come back all at once.
fn delay(attempt: u32) -> Duration {
    let delay = FIRST_DELAY * 2_u32.pow(attempt - 1);
    let random = RandomState::new().hash_one(attempt) % 1024;
    delay / 2 + delay / 2 * u32::try_from(random).unwrap_or(0) / 1024
}

/// The bytes of the strings in `value`.
fn size(value: &Value) -> u64 {
    match value {
        Value::BulkString(bytes) => bytes.len() as u64,
        Value::Array(values) => values.iter().map(size).sum(),
        _ => 0,
    }
}

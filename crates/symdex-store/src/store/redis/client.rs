//! Sends batches of commands to Redis: one round trip each, with time-outs and retries.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, Value, from_redis_value,
};
use tokio::sync::Mutex;

use super::config::{AnyClient, Config};
use super::failure::Failure;
use crate::store::runtime;

/// How often a batch is sent. The delays between attempts add up to 1.6 to 3.2 seconds.
const ATTEMPTS: u32 = 7;
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// The address of one node of a cluster.
pub(super) type Node = (String, u16);

/// What a [`RedisStore`](super::RedisStore) has sent since it was opened.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisCounts {
    /// Batches of commands that were sent and waited for. The commands of a batch are sent at once, in a cluster to all
    /// nodes concerned.
    pub round_trips: u64,
    /// Batches that were sent again after an error.
    pub retries: u64,
    /// Images whose expiry was put off. Readers do this in the background, apart from the round trips.
    pub renewals: u64,
}

/// A connection to Redis that several threads share. It is made again when it is lost.
pub(super) struct Client {
    config: Config,
    timeout: Duration,
    /// The connection with its number, by which a failed one is told from its successor.
    connection: Mutex<Option<(u64, Connection)>>,
    connections: AtomicU64,
    counts: std::sync::Mutex<RedisCounts>,
    /// Whether the server has refused to put off an expiry. A reader need not be allowed to write.
    is_read_only: AtomicBool,
}

#[derive(Clone)]
enum Connection {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The reply to one command of a batch.
pub(super) type Reply = Result<Value, Failure>;

/// The value of a reply.
pub(super) fn typed<T: FromRedisValue>(reply: Reply) -> Result<T, Failure> {
    from_redis_value(reply?).map_err(|_| Failure::unexpected_reply())
}

impl Client {
    pub(super) fn new(config: Config, timeout: Duration) -> Self {
        let (connection, connections, is_read_only) = Default::default();
        Self { config, timeout, connection, connections, counts: std::sync::Mutex::default(), is_read_only }
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.config.client, AnyClient::Cluster(_))
    }

    /// Sends `commands` at once and waits for all replies, one for each command. Commands must be such that they may be
    /// sent again.
    pub(super) fn send(self: &Arc<Self>, commands: Vec<Cmd>) -> Vec<Reply> {
        self.send_to(None, commands)
    }

    /// Sends `commands` to `node`, or to the nodes that have their keys.
    pub(super) fn send_to(self: &Arc<Self>, node: Option<Node>, commands: Vec<Cmd>) -> Vec<Reply> {
        let (client, len) = (Arc::clone(self), commands.len());
        if len == 0 {
            return Vec::new();
        }
        let sent = runtime::wait(self.timeout, async move { client.send_retrying(node, &commands).await });
        sent.unwrap_or_else(|error| {
            let failure = match error.kind() {
                std::io::ErrorKind::TimedOut => {
                    Failure::transient(format!("no reply within {:?}", self.timeout))
                }
                _ => Failure::lasting(error.to_string()),
            };
            vec![Err(failure); len]
        })
    }

    /// Sends one command.
    pub(super) fn send_one(self: &Arc<Self>, command: Cmd) -> Reply {
        self.send(vec![command]).swap_remove(0)
    }

    /// Sends `command`, which puts off the expiry of an image, and waits for it.
    pub(super) fn renew(self: &Arc<Self>, command: Cmd) -> Result<(), Failure> {
        self.renewed(self.send_one(command))
    }

    /// Sends `command`, which puts off the expiry of an image, in the background. The first refusal ends all further
    /// attempts.
    pub(super) fn renew_later(self: &Arc<Self>, command: Cmd) {
        let client = Arc::clone(self);
        if !self.is_read_only.load(Ordering::Relaxed) {
            runtime::spawn(async move {
                let reply = client.attempt(None, std::slice::from_ref(&command)).await.swap_remove(0);
                if client.renewed(reply).is_err_and(|failure| failure.is_refused) {
                    client.is_read_only.store(true, Ordering::Relaxed);
                }
            });
        }
    }

    fn renewed(&self, reply: Reply) -> Result<(), Failure> {
        let is_renewed = typed::<i64>(reply)? == 1;
        self.count(|counts| counts.renewals += u64::from(is_renewed));
        Ok(())
    }

    async fn send_retrying(&self, node: Option<Node>, commands: &[Cmd]) -> Vec<Reply> {
        let mut attempt = 1;
        loop {
            self.count(|counts| counts.round_trips += 1);
            let replies = self.attempt(node.as_ref(), commands).await;
            let is_transient = |reply: &Reply| reply.as_ref().is_err_and(|failure| failure.is_transient);
            if attempt == ATTEMPTS || !replies.iter().any(is_transient) {
                return replies;
            }
            self.count(|counts| counts.retries += 1);
            tokio::time::sleep(delay(attempt)).await;
            attempt += 1;
        }
    }

    /// Sends `commands` once. Returns as many replies as there are commands.
    async fn attempt(&self, node: Option<&Node>, commands: &[Cmd]) -> Vec<Reply> {
        let failure = |error: RedisError| Failure::new(&error, self.is_cluster(), &self.config.secrets);
        let (number, connection) = match self.connect().await {
            Ok(connection) => connection,
            Err(error) => return vec![Err(failure(error)); commands.len()],
        };
        let replies = connection.send(node, commands).await;
        let replies = replies.unwrap_or_else(|error| vec![Err(error); commands.len()]);
        // Replies of the server have a code.
        if replies.iter().flat_map(|reply| reply.as_ref().err()).any(|error| error.code().is_none()) {
            self.connection.lock().await.take_if(|(current, _)| *current == number);
        }
        let mut replies: Vec<_> = replies.into_iter().map(|reply| reply.map_err(failure)).collect();
        replies.resize(commands.len(), Err(Failure::unexpected_reply()));
        replies
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
        self.count(|counts| *counts)
    }

    fn count<T>(&self, change: impl FnOnce(&mut RedisCounts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
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

//! Where a Redis server or cluster is, and how to log in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::cluster::ClusterClient;
use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, RedisResult,
    TlsCertificates, TlsMode,
};

use crate::store::url::RedisParts;
use crate::store::{StoreOptions, StoreUrl};

const DEFAULT_PORT: u16 = 6379;

/// Environment variables.
const PASSWORD: &str = "SYMDEX_REDIS_PASSWORD";
const PASSWORD_FILE: &str = "SYMDEX_REDIS_PASSWORD_FILE";
const CA_FILE: &str = "SYMDEX_REDIS_CA_FILE";

/// How to connect. It has secrets and cannot be printed.
pub(super) struct Config {
    pub(super) client: AnyClient,
    /// Text that must not be in messages.
    pub(super) secrets: Vec<String>,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
}

/// A client of one server, or of a cluster.
pub(super) enum AnyClient {
    Node(Box<Client>),
    Cluster(Box<ClusterClient>),
}

impl Config {
    /// Reads the URL, and `environment`, which returns the values of variables. An error says what is wrong, without
    /// secrets.
    pub(super) fn new(
        url: &StoreUrl,
        options: &StoreOptions,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let parts = url.redis_parts();
        if parts.has_query {
            return Err("the URL has a query; a URL of Redis has none".to_owned());
        }
        let (user, password) = login(&parts, environment)?;
        let settings = settings(&parts, user.as_deref(), password.as_deref())?;
        let ca = options.ca_file.clone().or_else(|| environment(CA_FILE).map(PathBuf::from));
        let ca = ca.map(|path| read(CA_FILE, &path)).transpose()?;
        let addresses: Vec<_> =
            parts.hosts.split(',').map(|host| address(host, parts.is_tls)).collect::<Result<_, _>>()?;
        // Requests are never sent to the other hosts of a single server.
        if addresses.len() > 1 && !parts.is_cluster {
            return Err("the URL has several hosts; use redis+cluster:// for a cluster".to_owned());
        }
        let connect_timeout = options.timeout.min(Duration::from_secs(5));
        let response_timeout = options.timeout.min(Duration::from_secs(10));
        let certificates = parts.is_tls.then_some(TlsCertificates { client_tls: None, root_cert: ca });
        if parts.is_tls {
            // Fails if the process has chosen a provider already.
            _ = rustls::crypto::ring::default_provider().install_default();
        }
        let infos = addresses.into_iter().map(|address| info(address, &settings));
        let infos = infos.collect::<RedisResult<Vec<_>>>().map_err(|error| error.to_string())?;
        let client = if parts.is_cluster {
            cluster(infos, certificates, connect_timeout, response_timeout)
        } else {
            node(infos, certificates)
        };
        let client = client.map_err(|error| format!("the URL or {CA_FILE} is not valid: {error}"))?;
        let secrets = [user, password].into_iter().flatten().filter(|secret| !secret.is_empty()).collect();
        Ok(Self { client, secrets, connect_timeout, response_timeout })
    }
}

fn node(infos: Vec<ConnectionInfo>, certificates: Option<TlsCertificates>) -> RedisResult<AnyClient> {
    let info = infos.into_iter().next().ok_or((redis::ErrorKind::InvalidClientConfig, "no host"))?;
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates),
        None => Client::open(info),
    };
    Ok(AnyClient::Node(Box::new(client?)))
}

fn cluster(
    infos: Vec<ConnectionInfo>,
    certificates: Option<TlsCertificates>,
    connect_timeout: Duration,
    response_timeout: Duration,
) -> RedisResult<AnyClient> {
    // Connections that are lost are retried by this crate. The client itself follows redirections.
    let mut builder = ClusterClient::builder(infos)
        .retries(3)
        .connection_timeout(connect_timeout)
        .response_timeout(response_timeout);
    if let Some(certificates) = certificates {
        builder = builder.tls(TlsMode::Secure).certs(certificates);
    }
    Ok(AnyClient::Cluster(Box::new(builder.build()?)))
}

fn info(address: ConnectionAddr, settings: &RedisConnectionInfo) -> RedisResult<ConnectionInfo> {
    Ok(address.into_connection_info()?.set_redis_settings(settings.clone()))
}

/// The address of `HOST` or `HOST:PORT`. An IPv6 address is in brackets.
fn address(text: &str, is_tls: bool) -> Result<ConnectionAddr, String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').or(rest.is_empty().then_some(""))),
        None => text.split_once(':').map_or((text, Some("")), |(host, port)| (host, Some(port))),
    };
    let port = match port {
        Some("") => Some(DEFAULT_PORT),
        port => port.and_then(|port| port.parse().ok()),
    };
    let (Some(port), false) = (port, host.is_empty()) else {
        return Err(format!("not a host and a port: {text:?}; expected HOST, HOST:PORT or [IPV6]:PORT"));
    };
    let host = host.to_owned();
    Ok(if is_tls {
        ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host, port)
    })
}

/// The database, the user and the password of each connection.
fn settings(
    parts: &RedisParts<'_>,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<RedisConnectionInfo, String> {
    let mut settings = RedisConnectionInfo::default().set_lib_name("symdex", env!("CARGO_PKG_VERSION"));
    if let Some(user) = user {
        settings = settings.set_username(user);
    }
    if let Some(password) = password {
        settings = settings.set_password(password);
    }
    match parts.database {
        None => Ok(settings),
        Some("0") if parts.is_cluster => Ok(settings),
        Some(database) if parts.is_cluster => {
            Err(format!("a cluster has only database 0, found {database:?} in the URL"))
        }
        Some(database) => match database.parse::<u32>() {
            Ok(database) => Ok(settings.set_db(database.into())),
            Err(_) => Err(format!("expected the number of a database in the URL, found {database:?}")),
        },
    }
}

/// The user and the password. A password in the URL is used first, then that of the environment.
fn login(
    parts: &RedisParts<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<String>, Option<String>), String> {
    let (user, password) = match parts.user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
        Some((user, password)) => (decoded(user)?, decoded(password)?),
        None => (None, None),
    };
    let password = match (password, environment(PASSWORD), environment(PASSWORD_FILE)) {
        (None, None, Some(path)) => {
            let text = String::from_utf8(read(PASSWORD_FILE, path.as_ref())?);
            let text = text.map_err(|_| format!("{path}: the file of {PASSWORD_FILE} is not text"))?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        (in_url, variable, _) => in_url.or(variable),
    };
    if user.is_some() && password.is_none() {
        return Err(format!(
            "the URL names a user, and there is no password; set {PASSWORD} or {PASSWORD_FILE}"
        ));
    }
    Ok((user, password))
}

/// The text of a part of the URL; `None` if it is empty.
fn decoded(text: &str) -> Result<Option<String>, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| "the user or the password in the URL is not UTF-8")?.into_owned();
    Ok(Some(decoded).filter(|text| !text.is_empty()))
}

/// The content of the file that the environment variable `name` names.
fn read(name: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path)
        .map_err(|error| format!("{}: cannot read the file that {name} names: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::new(&url.parse().expect("a URL"), &StoreOptions::new(), &environment)
    }

    fn secrets(url: &str, variables: &[(&str, &str)]) -> Vec<String> {
        config(url, variables).unwrap_or_else(|error| panic!("{error}")).secrets
    }

    #[test]
    fn passwords_come_from_the_url_the_environment_or_a_file() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("password");
        std::fs::write(&path, "p w\r\n").expect("written");
        let file = (PASSWORD_FILE, path.to_str().expect("text"));
        assert_eq!(secrets("redis://me:a%40b@host", &[(PASSWORD, "x"), file]), ["me", "a@b"]);
        assert_eq!(secrets("redis://me@host", &[(PASSWORD, "x%40"), file]), ["me", "x%40"]);
        assert_eq!(secrets("redis+cluster://host,other:1", &[file]), ["p w"]);
        assert!(secrets("redis://host", &[]).is_empty());
        assert!(config("redis://me@host", &[]).err().expect("no password").contains(PASSWORD));
        let error = config("redis://host", &[(PASSWORD_FILE, "nowhere/at/all")]).err().expect("no file");
        assert!(error.starts_with("nowhere/at/all: cannot read the file that SYMDEX_REDIS_PASSWORD_FILE"));
    }

    #[test]
    fn hosts_are_names_and_addresses_with_and_without_ports() {
        let read = |text| match address(text, false) {
            Ok(ConnectionAddr::Tcp(host, port)) => Some((host, port)),
            _ => None,
        };
        assert_eq!(read("host"), Some(("host".to_owned(), 6379)));
        assert_eq!(read("host:1"), Some(("host".to_owned(), 1)));
        assert_eq!(read("[::1]"), Some(("::1".to_owned(), 6379)));
        assert_eq!(read("[::1]:7"), Some(("::1".to_owned(), 7)));
        for wrong in ["", ":1", "host:x", "host:70000", "[::1]x", "[]:1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_urls_are_refused_without_secrets() {
        let error = |url: &str| config(url, &[]).err().expect("refused");
        assert!(error("redis://:hunter2@a,b").contains("use redis+cluster://"));
        assert!(error("redis://host/x").contains("expected the number of a database"));
        assert!(error("redis+cluster://host/1").contains("only database 0"));
        let query = error("redis://:hunter2@host/0?password=hunter2");
        assert!(query.contains("has a query") && !query.contains("hunter2"), "{query}");
    }

    #[test]
    fn a_wrong_ca_file_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("ca.pem");
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA").expect("written");
        let error = config("rediss://host", &[(CA_FILE, path.to_str().expect("text"))]);
        assert!(error.err().expect("refused").contains(CA_FILE));
    }
}

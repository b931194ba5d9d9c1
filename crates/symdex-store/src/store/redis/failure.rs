//! Why a request to Redis has failed, and what to do about it.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::error::Error;

/// Why a request has failed. The text says what to do, and has no secrets.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether the server cannot be reached or is overloaded.
    pub(super) is_unavailable: bool,
    /// Whether the same request may succeed in a moment.
    pub(super) is_transient: bool,
    /// Whether the server does not allow the request: the user may not write, or the server is a replica.
    pub(super) is_refused: bool,
}

impl Failure {
    /// A failure that stays.
    pub(super) fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_unavailable: false, is_transient: false, is_refused: false }
    }

    /// A failure that may be over in a moment.
    pub(super) fn transient(reason: impl Into<String>) -> Self {
        Self { is_unavailable: true, is_transient: true, ..Self::lasting(reason) }
    }

    /// A reply that the command does not have.
    pub(super) fn unexpected_reply() -> Self {
        Self::lasting("the server has sent an unexpected reply; expected Redis 7 or Valkey")
    }

    /// The error of a store that cannot do `action` at `location`.
    pub(super) fn at(self, location: &str, action: &'static str) -> Error {
        let Self { reason, is_unavailable, .. } = self;
        Error::Store { location: location.to_owned(), action, reason, is_unavailable }
    }

    /// The failure that `error` means. `secrets` are left out.
    pub(super) fn new(error: &RedisError, is_cluster: bool, secrets: &[String]) -> Self {
        let shown = || {
            let text = error.to_string();
            secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "***"))
        };
        match (error.code(), error.kind()) {
            (Some("NOAUTH"), _) => Self::lasting(
                "the server requires a password (NOAUTH); set SYMDEX_REDIS_PASSWORD or SYMDEX_REDIS_PASSWORD_FILE",
            ),
            (Some("WRONGPASS"), _) | (_, ErrorKind::AuthenticationFailed) => Self::wrong_password(),
            (Some("NOPERM"), _) => Self {
                is_refused: true,
                ..Self::lasting(
                    "the user has no permission for a command or a key (NOPERM); docs/STORES.md lists the permissions \
                     that readers and writers need",
                )
            },
            (Some("READONLY"), _) => Self {
                is_refused: true,
                is_transient: is_cluster,
                ..Self::lasting(
                    "the server is a read-only replica (READONLY); use the URL of the primary server",
                )
            },
            (Some("OOM"), _) => Self {
                is_unavailable: true,
                ..Self::lasting(
                    "the server has no memory left (OOM); raise its maxmemory, or remove indexes with `symdex store gc`",
                )
            },
            (Some("MOVED" | "ASK" | "CROSSSLOT"), _) if !is_cluster => {
                Self::lasting("the server is a node of a cluster (MOVED); use a URL with redis+cluster://")
            }
            (_, ErrorKind::Server(kind)) => Self::of_server(kind, shown()),
            (Some(_), _) => Self::lasting(shown()),
            _ => Self::of_connection(&shown()),
        }
    }

    fn wrong_password() -> Self {
        Self::lasting(
            "the server refuses the user or the password (WRONGPASS); check the user in the URL and the password in \
             SYMDEX_REDIS_PASSWORD or SYMDEX_REDIS_PASSWORD_FILE",
        )
    }

    fn of_server(kind: ServerErrorKind, shown: String) -> Self {
        use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, TryAgain};
        match kind {
            Ask | BusyLoading | ClusterDown | MasterDown | Moved | TryAgain => Self::transient(shown),
            _ => Self::lasting(shown),
        }
    }

    /// The server cannot be reached, or the connection was lost.
    fn of_connection(shown: &str) -> Self {
        if shown.contains("certificate") {
            return Self::lasting(format!("{shown}; name the certificate of the CA in SYMDEX_REDIS_CA_FILE"));
        }
        // The client of a cluster has several errors of connections in one text.
        if shown.contains("Password authentication failed") {
            Self::wrong_password()
        } else {
            Self::transient(shown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: &str, is_cluster: bool) -> Failure {
        let detail = Some("with args beginning with: 'AUTH' 'hunter2'".to_owned());
        let error = redis::make_extension_error(code.to_owned(), detail);
        Failure::new(&error, is_cluster, &["hunter2".to_owned()])
    }

    #[test]
    fn errors_say_what_to_do_and_have_no_secrets() {
        for (code, advice) in [
            ("NOAUTH", "set SYMDEX_REDIS_PASSWORD"),
            ("WRONGPASS", "check the user in the URL"),
            ("NOPERM", "docs/STORES.md"),
            ("READONLY", "the URL of the primary"),
            ("OOM", "maxmemory"),
            ("MOVED", "redis+cluster://"),
            ("STRANGE", "***"),
        ] {
            let failure = failure(code, false);
            assert!(failure.reason.contains(advice) && failure.reason.contains(code), "{}", failure.reason);
            assert!(!failure.reason.contains("hunter2") && !failure.is_transient, "{}", failure.reason);
        }
        assert!(failure("OOM", false).is_unavailable);
        assert!(failure("NOPERM", false).is_refused);
    }

    #[test]
    fn a_lost_connection_and_a_busy_server_are_transient() {
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        let busy = RedisError::from((ServerErrorKind::BusyLoading.into(), "LOADING"));
        for error in [lost, busy] {
            let failure = Failure::new(&error, false, &[]);
            assert!(failure.is_transient && failure.is_unavailable, "{failure:?}");
        }
        let unknown =
            std::io::Error::new(std::io::ErrorKind::InvalidData, "invalid peer certificate: UnknownIssuer");
        let failure = Failure::new(&unknown.into(), false, &[]);
        assert!(!failure.is_transient && failure.reason.contains("SYMDEX_REDIS_CA_FILE"), "{failure:?}");
    }
}

//! TLS: the certificate of the server, which can be replaced while it runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Accepts TLS connections with a certificate chain and a key.
pub(crate) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    /// For new connections. Older ones keep theirs.
    identity: RwLock<Identity>,
}

/// A certificate chain and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    acceptor: TlsAcceptor,
    /// When the first certificate of the chain expires, since 1970; `None` if it does not say so readably.
    expires: Option<Duration>,
}

/// A file that cannot be used, and why.
pub(crate) type TlsError = (PathBuf, String);

impl Tls {
    /// Reads the certificate chain and the key at these paths.
    pub(crate) fn open(cert: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let identity = RwLock::new(identity(&cert, &key)?);
        Ok(Self { cert, key, identity })
    }

    /// What accepts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }

    /// When the certificate expires, since 1970. `None` if that is not known.
    pub(crate) fn expires(&self) -> Option<Duration> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).expires
    }

    /// Reads the files again.
    pub(crate) fn read(&self) -> Result<Identity, TlsError> {
        identity(&self.cert, &self.key)
    }

    /// Accepts new connections with `identity`.
    pub(crate) fn replace(&self, identity: Identity) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }
}

/// The certificate chain and the key at these paths.
fn identity(cert: &PathBuf, key: &PathBuf) -> Result<Identity, TlsError> {
    let wrong = |path: &PathBuf, error: &dyn fmt::Display| (path.clone(), error.to_string());
    let certs = CertificateDer::pem_file_iter(cert).map_err(|error| wrong(cert, &error))?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(cert, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let first = certs.first().and_then(|first| Certificate::from_der(first).ok());
    let expires = first.map(|first| first.tbs_certificate().validity().not_after.to_unix_duration());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certs, private))
        .map_err(|error| wrong(cert, &error))?;
    Ok(Identity { acceptor: TlsAcceptor::from(Arc::new(config)), expires })
}

//! TLS: the certificate of the server, which can be replaced while it runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Accepts TLS connections with a certificate chain and a key.
pub(crate) struct Tls {
    cert: PathBuf,
    key: PathBuf,
    /// For new connections. Older ones keep theirs.
    acceptor: RwLock<TlsAcceptor>,
}

/// A file that cannot be used, and why.
pub(crate) type TlsError = (PathBuf, String);

impl Tls {
    /// Reads the certificate chain and the key at these paths.
    pub(crate) fn open(cert: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let acceptor = RwLock::new(acceptor(&cert, &key)?);
        Ok(Self { cert, key, acceptor })
    }

    /// What accepts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again.
    pub(crate) fn read(&self) -> Result<TlsAcceptor, TlsError> {
        acceptor(&self.cert, &self.key)
    }

    /// Accepts new connections with `acceptor`.
    pub(crate) fn replace(&self, acceptor: TlsAcceptor) {
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
    }
}

/// What accepts TLS connections with the certificate chain and the key at these paths.
fn acceptor(cert: &PathBuf, key: &PathBuf) -> Result<TlsAcceptor, TlsError> {
    let wrong = |path: &PathBuf, error: &dyn fmt::Display| (path.clone(), error.to_string());
    let certs = CertificateDer::pem_file_iter(cert).map_err(|error| wrong(cert, &error))?;
    let certs = certs.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(cert, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certs, private))
        .map_err(|error| wrong(cert, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

//! The client for a URL.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, Result, RetryConfig};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use crate::store::StoreUrl;
use crate::store::url::Scheme;

/// How long a request may take. A shorter time would end the transfer of a large index.
const TRANSFER: Duration = Duration::from_secs(24 * 60 * 60);

/// The client of an object store.
pub(super) struct StoreClient {
    pub(super) client: Arc<dyn ObjectStore>,
    /// What all keys begin with.
    pub(super) prefix: Key,
    /// What the environment adds to the URL: the server and the account. Two buckets of one name differ in it.
    pub(super) server: String,
}

/// The client for `url`. The environment has the credentials and the options of the provider, such as
/// `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT` or `AZURE_STORAGE_ACCOUNT_NAME`.
pub(super) fn of_url(url: &StoreUrl, timeout: Duration) -> Result<StoreClient> {
    // Another part of the program may have chosen an implementation of TLS. Then that one is used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let (bucket, prefix) = url.bucket();
    let connect = timeout.clamp(Duration::from_millis(1), Duration::from_secs(5));
    let times = [(ClientConfigKey::ConnectTimeout, connect), (ClientConfigKey::Timeout, TRANSFER)]
        .map(|(key, time)| (key, format!("{}ms", time.as_millis())));
    let retry = retries(timeout);
    let (client, server): (Arc<dyn ObjectStore>, _) = match url.scheme() {
        Scheme::S3 => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            let with =
                |b: AmazonS3Builder, (key, value)| b.with_config(AmazonS3ConfigKey::Client(key), value);
            let server = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            (Arc::new(times.into_iter().fold(builder, with).build()?), server)
        }
        Scheme::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry);
            let with = |b: GoogleCloudStorageBuilder, (key, value)| {
                b.with_config(GoogleConfigKey::Client(key), value)
            };
            let server = builder.get_config_value(&GoogleConfigKey::BaseUrl);
            (Arc::new(times.into_iter().fold(builder, with).build()?), server)
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry);
            let with =
                |b: MicrosoftAzureBuilder, (key, value)| b.with_config(AzureConfigKey::Client(key), value);
            let server = [AzureConfigKey::Endpoint, AzureConfigKey::AccountName]
                .map(|key| builder.get_config_value(&key).unwrap_or_default());
            (Arc::new(times.into_iter().fold(builder, with).build()?), Some(server.join(" ")))
        }
        Scheme::Http | Scheme::Https => {
            let mut headers = HeaderMap::new();
            if let Some(user) = url.user() {
                let mut value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(user)))
                    .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            let builder = HttpBuilder::new().with_url(url.without_user()).with_retry(retry);
            let builder = builder.with_http_connector(WebClient { headers, connect });
            let (client, server) = (Arc::new(builder.build()?), String::new());
            return Ok(StoreClient { client, prefix: Key::default(), server });
        }
        Scheme::Dir | Scheme::Redis | Scheme::RedisTls | Scheme::RedisCluster | Scheme::RedisClusterTls => {
            return Err(object_store::Error::NotSupported { source: "it is no object store".into() });
        }
    };
    Ok(StoreClient { client, prefix: Key::parse(prefix)?, server: server.unwrap_or_default() })
}

/// Makes the client of a web server. The URL of the store may have a secret in its query, which the targets of
/// redirects do not get as `Referer`.
#[derive(Debug)]
struct WebClient {
    headers: HeaderMap,
    connect: Duration,
}

impl HttpConnector for WebClient {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let client = reqwest::Client::builder()
            .default_headers(self.headers.clone())
            .connect_timeout(self.connect)
            .timeout(TRANSFER)
            .referer(false)
            .build();
        client
            .map(HttpClient::new)
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })
    }
}

/// Requests that fail are repeated after a growing, random time.
fn retries(timeout: Duration) -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(50),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 5, retry_timeout: timeout }
}

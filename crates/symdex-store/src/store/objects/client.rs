//! The client for a URL.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, Result, RetryConfig};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use crate::store::StoreUrl;
use crate::store::url::Scheme;

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
    let connect = format!("{}ms", timeout.as_millis().clamp(1, 5000));
    // The time-out of a whole request would end the transfer of a large index.
    let times = [(ClientConfigKey::ConnectTimeout, connect.as_str()), (ClientConfigKey::Timeout, "1day")];
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
            let options = ClientOptions::new().with_default_headers(headers);
            let builder = HttpBuilder::new().with_url(url.without_user()).with_client_options(options);
            let builder = builder.with_retry(retry);
            let builder = times.into_iter().fold(builder, |b, (key, value)| b.with_config(key, value));
            // Plain HTTP is only accepted for this machine.
            let builder = builder.with_config(ClientConfigKey::AllowHttp, "true");
            let (client, server) = (Arc::new(builder.build()?), String::new());
            return Ok(StoreClient { client, prefix: Key::default(), server });
        }
        Scheme::Dir | Scheme::Redis | Scheme::RedisTls | Scheme::RedisCluster | Scheme::RedisClusterTls => {
            return Err(object_store::Error::NotSupported { source: "it is no object store".into() });
        }
    };
    Ok(StoreClient { client, prefix: Key::parse(prefix)?, server: server.unwrap_or_default() })
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

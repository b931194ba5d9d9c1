//! The options of all commands that put indexes into stores.

use std::time::Duration;

use symdex_store::StoreOptions;

use crate::number;

/// The options for new indexes in stores.
#[derive(clap::Args)]
pub(crate) struct PutArgs {
    /// The zstd level of new indexes in object stores and in Redis, 1 to 22. At 0, object stores do not compress. By
    /// default, it is 6 in object stores and 19 in Redis, where memory costs more than the time to compress
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=22))]
    zstd_level: Option<u8>,
    /// How long after its last use a new index in Redis expires, such as 45d or 12h. An existing index keeps its expiry
    #[arg(long, value_name = "TIME", default_value = "45d", value_parser = parse_ttl)]
    ttl: Duration,
}

impl PutArgs {
    /// `options` with these.
    pub(crate) fn add_to(&self, options: StoreOptions) -> StoreOptions {
        let options = options.ttl(self.ttl);
        match self.zstd_level {
            Some(level) => options.zstd_level(level),
            None => options,
        }
    }
}

/// Reads a time of at least a second: Redis would remove the index at once.
fn parse_ttl(text: &str) -> Result<Duration, String> {
    let time = number::parse_time(text)?;
    if time < Duration::from_secs(1) {
        return Err("expected at least a second, such as 45d, 12h or 30m".to_owned());
    }
    Ok(time)
}

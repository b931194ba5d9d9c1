//! Puts off the expiry of images that are used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;

use super::client::Client;
use super::failure::Failure;
use super::record::Record;
use super::scripts;

/// Whether this process may put off the expiry of images.
#[derive(Default)]
pub(super) struct Renewals {
    is_refused: AtomicBool,
}

impl Renewals {
    /// Puts off the expiry of `record` in the background. A reader need not be allowed to write: the first refusal ends
    /// all further attempts.
    pub(super) fn renew(self: &Arc<Self>, client: &Arc<Client>, record: &Record) {
        if self.is_refused.load(Ordering::Relaxed) {
            return;
        }
        let (renewals, counting) = (Arc::clone(self), Arc::clone(client));
        client.send_later(scripts::renew(record), move |reply| {
            if count(&counting, reply).is_err_and(|failure| failure.is_refused) {
                renewals.is_refused.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Puts off the expiry of `record` if it is time to, and waits for it.
    pub(super) fn renew_now(client: &Arc<Client>, record: &Record, ttl: Option<u64>) -> Result<(), Failure> {
        if ttl.is_some_and(|ttl| ttl >= record.renew_below()) {
            return Ok(());
        }
        count(client, client.send_one(scripts::renew(record)))
    }
}

fn count(client: &Client, reply: Result<Value, Failure>) -> Result<(), Failure> {
    if let Value::Int(1) = reply? {
        client.counters.renewals.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

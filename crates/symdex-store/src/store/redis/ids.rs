//! Finds images by the start of their ids.

use std::sync::Arc;

use redis::Value;
use symdex::ImageId;

use super::client::{Client, Reply};
use super::failure::Failure;
use super::found::{Found, command, find};
use super::keys::{START, ids_key};
use crate::store::begins_with;

/// The ids of the images that begin with each of `starts`, sorted. Ids of more than [`START`] bytes are found by
/// exactly these bytes. The sets are read in one round trip, the metadata of all ids in another.
pub(super) fn ids_from(client: &Arc<Client>, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Failure>> {
    let sets = starts.iter().map(|start| command("SMEMBERS", &ids_key(start)));
    let candidates: Vec<_> = match client.send(sets.collect()) {
        Ok(replies) => starts.iter().zip(replies).map(|(start, set)| candidates(start, set)).collect(),
        Err(failure) => starts.iter().map(|_| Err(failure.clone())).collect(),
    };
    // The set may have ids of images that have expired.
    let all: Vec<_> = candidates.iter().flatten().flatten().cloned().collect();
    let mut found = find(client, &all).into_iter();
    let mut is_there = || match found.next() {
        Some(Ok(found)) => Ok(!matches!(found, Found::Nothing)),
        Some(Err(failure)) => Err(failure),
        None => Err(Failure::unexpected_reply()),
    };
    let mut those_there = |ids: Vec<ImageId>| -> Result<Vec<ImageId>, Failure> {
        // Each id takes its answer, even if one before it has failed.
        let there: Vec<_> = ids.into_iter().map(|id| is_there().map(|there| there.then_some(id))).collect();
        there.into_iter().filter_map(Result::transpose).collect()
    };
    candidates.into_iter().map(|ids| ids.and_then(&mut those_there)).collect()
}

/// The ids that may be those of images that begin with `start`: itself, and those in its set.
fn candidates(start: &ImageId, set: Reply) -> Result<Vec<ImageId>, Failure> {
    let members = match set? {
        Value::Array(members) | Value::Set(members) => members,
        _ => return Err(Failure::unexpected_reply()),
    };
    let id = |member: &Value| match member {
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    };
    let mut ids = vec![start.clone()];
    if start.as_bytes().len() == START {
        ids.extend(members.iter().filter_map(id).filter(|id| begins_with(id, start)));
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

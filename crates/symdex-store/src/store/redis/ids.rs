//! Finds images by the start of their ids.

use std::sync::Arc;

use symdex::ImageId;

use super::client::{Client, Reply, typed};
use super::failure::Failure;
use super::keys::{START, ids_key};
use super::metadata::{command, find};
use crate::store::begins_with;

/// The ids of the images that begin with each of `starts`, sorted. Ids of more than [`START`] bytes are found by
/// exactly these bytes. The sets are read in one round trip, the metadata of all ids in another.
pub(super) fn ids_from(client: &Arc<Client>, starts: &[ImageId]) -> Vec<Result<Vec<ImageId>, Failure>> {
    let sets = client.send(starts.iter().map(|start| command("SMEMBERS", &ids_key(start))).collect());
    let candidates: Vec<_> = starts.iter().zip(sets).map(|(start, set)| candidates(start, set)).collect();
    // The set may have ids of images that have expired.
    let all: Vec<_> = candidates.iter().flatten().flatten().cloned().collect();
    let mut found = find(client, &all).into_iter();
    let mut those_there = |ids: Vec<ImageId>| -> Result<Vec<ImageId>, Failure> {
        // Each id takes its answer, even if one before it has failed.
        let found: Vec<_> = found.by_ref().take(ids.len()).collect();
        let there = |(id, found): (_, Result<Option<_>, _>)| found.map(|found| found.map(|_| id)).transpose();
        ids.into_iter().zip(found).filter_map(there).collect()
    };
    candidates.into_iter().map(|ids| ids.and_then(&mut those_there)).collect()
}

/// The ids that may be those of images that begin with `start`: itself, and those in its set.
fn candidates(start: &ImageId, set: Reply) -> Result<Vec<ImageId>, Failure> {
    let mut ids = vec![start.clone()];
    let members = typed::<Vec<Vec<u8>>>(set)?;
    let id = |member: &Vec<u8>| str::from_utf8(member).ok()?.parse().ok();
    if start.as_bytes().len() == START {
        ids.extend(members.iter().filter_map(id).filter(|id| begins_with(id, start)));
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

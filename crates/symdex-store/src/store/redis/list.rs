//! Lists the images in Redis.

use std::ops::ControlFlow;
use std::sync::Arc;

use redis::{Value, from_redis_value};
use symdex::ImageId;

use super::client::{Client, Node, typed};
use super::failure::Failure;
use super::keys::{METADATA_PATTERN, id_of_metadata_key};
use super::metadata::{StoredMetadata, find};

/// Gets an image. Returns whether to go on.
pub(super) type VisitImage<'v> = dyn FnMut(ImageId, StoredMetadata) -> ControlFlow<()> + 'v;

/// How many keys the server looks at in one step. It answers others between two steps.
const KEYS_PER_STEP: u32 = 5000;

/// Calls `visit` with each image, until it returns [`ControlFlow::Break`]. Redis may name an image twice.
pub(super) fn list(client: &Arc<Client>, visit: &mut VisitImage<'_>) -> Result<(), Failure> {
    let nodes =
        if client.is_cluster() { primaries(client)?.into_iter().map(Some).collect() } else { vec![None] };
    for node in nodes {
        if list_node(client, node.as_ref(), visit)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn list_node(
    client: &Arc<Client>,
    node: Option<&Node>,
    visit: &mut VisitImage<'_>,
) -> Result<ControlFlow<()>, Failure> {
    let mut cursor = b"0".to_vec();
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(METADATA_PATTERN).arg("COUNT").arg(KEYS_PER_STEP);
        let reply = client.send_to(node.cloned(), vec![command]).swap_remove(0);
        let (next, keys): (Vec<u8>, Vec<Vec<u8>>) = typed(reply)?;
        let ids: Vec<_> = keys.iter().filter_map(|key| id_of_metadata_key(key)).collect();
        for (id, found) in ids.iter().zip(find(client, &ids)) {
            let Some(found) = found? else { continue };
            if visit(id.clone(), found).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if next == b"0" {
            return Ok(ControlFlow::Continue(()));
        }
        cursor = next;
    }
}

/// The nodes of a cluster that have slots, each once.
fn primaries(client: &Arc<Client>) -> Result<Vec<Node>, Failure> {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    let mut nodes = Vec::new();
    for range in typed::<Vec<Value>>(client.send_one(command))? {
        let node = primary(&range).ok_or_else(Failure::unexpected_reply)?;
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

/// The first node of a range of slots, `[first, last, [host, port, ...], ...]`, which is its primary.
fn primary(range: &Value) -> Option<Node> {
    let Value::Array(fields) = range else { return None };
    let Value::Array(node) = fields.get(2)? else { return None };
    Some((from_redis_value(node.first()?.clone()).ok()?, from_redis_value(node.get(1)?.clone()).ok()?))
}

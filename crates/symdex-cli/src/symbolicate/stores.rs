//! What the stores have answered, in the summary.

use symdex_store::StoreCounts;

use crate::failure::complain;
use crate::text;

/// Prints on standard error a line for each store. Prints nothing if the only store is a folder: the lines of the
/// images suffice.
pub(super) fn report_stores(stores: &[StoreCounts]) {
    if stores.iter().any(|store| store.url.folder().is_none()) || stores.len() > 1 {
        stores.iter().for_each(|store| complain(&described(store)));
    }
}

/// `store URL: 80 images and values found in 2 calls, 40 from memory, 1 not there`.
fn described(counts: &StoreCounts) -> String {
    let StoreCounts { url, calls, found, from_memory, absent, lost_values, failed, skipped, .. } = counts;
    let mut said = match (calls, skipped) {
        (0, 0) => return format!("store {url}: not asked"),
        _ => format!("store {url}: {found} images and values found in {}", text::count(*calls, "call")),
    };
    for (count, what) in [
        (from_memory, "from memory"),
        (absent, "not there"),
        (lost_values, "lost"),
        (failed, "of the calls failed"),
        (skipped, "more not made after failures"),
    ] {
        if *count != 0 {
            said += &format!(", {count} {what}");
        }
    }
    said
}

//! jemalloc. It is faster than the allocator of musl, counts what is allocated, and gives memory back to the system.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How many bytes Rust code has allocated. Libraries in C have the system's allocator.
#[cfg(feature = "serve")]
pub(crate) fn allocated() -> Option<u64> {
    tikv_jemalloc_ctl::epoch::advance().ok()?;
    tikv_jemalloc_ctl::stats::allocated::read().ok().map(|bytes| bytes as u64)
}

/// Starts a thread that gives unused memory back to the system within half a minute. Without it, as on macOS, memory is
/// given back only while other memory is allocated or freed.
///
/// Only servers call this: a child must have one thread when it limits itself.
#[cfg(feature = "serve")]
pub(crate) fn start_giving_back() {
    let _ = tikv_jemalloc_ctl::max_background_threads::write(1);
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

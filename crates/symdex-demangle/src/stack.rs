//! A stack of its own for a name that may need more than the thread has left.

/// Calls `work` with at least `size` bytes of stack.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn with_stack<T>(size: usize, work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(size, size, work)
}

/// Calls `work`. WebAssembly has one stack, whose size the linker sets.
#[cfg(target_family = "wasm")]
pub(crate) fn with_stack<T>(_: usize, work: impl FnOnce() -> T) -> T {
    work()
}

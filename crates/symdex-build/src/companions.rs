//! What images borrow beside the bytes of their own file.

use typed_arena::Arena;

/// What images borrow that is not in their own file's bytes: sections that are stored compressed.
///
/// It has to outlive the images that are loaded with it.
#[derive(Default)]
pub struct Companions {
    buffers: Arena<Vec<u8>>,
}

impl Companions {
    /// Keeps `bytes`.
    pub(crate) fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        self.buffers.alloc(bytes)
    }
}

impl std::fmt::Debug for Companions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Companions({} buffers)", self.buffers.len())
    }
}

//! The metadata of an index for JavaScript, as JSON.

use serde::Serialize;
use symdex::{Counts, Grade, Metadata, Partial};

/// The members of `Metadata` in `index.d.ts`. Addresses are hexadecimal text: JSON's numbers have 53 bits.
#[derive(Serialize)]
pub(crate) struct MetadataView<'m> {
    id: String,
    name: &'m str,
    arch: &'m str,
    base: String,
    size: u64,
    text_exec_base: Option<String>,
    grade: Grade,
    counts: Counts,
    partial: &'m [Partial],
    builder: &'m str,
}

impl<'m> From<&'m Metadata> for MetadataView<'m> {
    fn from(metadata: &'m Metadata) -> Self {
        let hexadecimal = |address: u64| format!("{address:#x}");
        Self {
            id: metadata.id.to_string(),
            name: &metadata.image_name,
            arch: &metadata.arch.name,
            base: hexadecimal(metadata.base),
            size: metadata.image_size,
            text_exec_base: metadata.text_exec_base.map(hexadecimal),
            grade: metadata.grade(),
            counts: metadata.counts,
            partial: &metadata.partial,
            builder: &metadata.builder,
        }
    }
}

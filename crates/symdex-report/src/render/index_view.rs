//! The JSON form of what an index states about its image.

use serde::Serialize;
use symdex::{Counts, Grade, Metadata, Partial};

/// The JSON form of the metadata of an index.
#[non_exhaustive]
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct IndexView {
    /// The `LC_UUID` or the build id.
    pub id: String,
    /// The file name of the image.
    pub name: String,
    /// The architecture.
    pub arch: String,
    /// The type of its CPU in Mach-O.
    pub cputype: u32,
    /// The subtype of its CPU in Mach-O.
    pub cpusubtype: u32,
    /// The most that the index answers: `lines`, `names`, `bounds` or `nothing`.
    pub grade: Grade,
    /// The address in the debug file that image offsets count from, in hexadecimal.
    pub base: String,
    /// Bytes from the base to the end of the last executable section.
    pub image_size: u64,
    /// The start and the end, exclusive, of each executable section: image offsets in hexadecimal.
    pub executable: Vec<[String; 2]>,
    /// The address of `__TEXT_EXEC` in the debug file of a kernel image, in hexadecimal.
    pub text_exec_base: Option<String>,
    /// The position in the file, the address and the size of each executable segment of an ELF file, in hexadecimal.
    /// Empty if the index was built of a debug file without code; absent if of no ELF file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<[String; 3]>>,
    /// How many bytes of the image a chunk covers.
    pub chunk_span: u32,
    /// How much the index has.
    pub counts: Counts,
    /// What could not be indexed, and how often. Empty for a whole index.
    pub partial: Vec<Partial>,
    /// The version of symdex that wrote the index.
    pub builder: String,
    /// XXH3-128 of the input of the build. A build skips an image without debug information whose index has it.
    pub input_digest: Option<String>,
}

impl From<&Metadata> for IndexView {
    fn from(metadata: &Metadata) -> Self {
        let hexadecimal = |number: u64| format!("{number:#x}");
        let executable = metadata.executable.iter();
        let segments = metadata.segments.as_ref();
        Self {
            id: metadata.id.to_string(),
            name: metadata.image_name.clone(),
            arch: metadata.arch.name.clone(),
            cputype: metadata.arch.cputype,
            cpusubtype: metadata.arch.cpusubtype,
            grade: metadata.grade(),
            base: hexadecimal(metadata.base),
            image_size: metadata.image_size,
            executable: executable.map(|(start, end)| [*start, *end].map(hexadecimal)).collect(),
            text_exec_base: metadata.text_exec_base.map(hexadecimal),
            segments: segments.map(|all| all.iter().map(|numbers| numbers.map(hexadecimal)).collect()),
            chunk_span: metadata.chunk_span,
            counts: metadata.counts,
            partial: metadata.partial.clone(),
            builder: metadata.builder.clone(),
            input_digest: metadata.input_digest.map(|digest| format!("{:032x}", u128::from_le_bytes(digest))),
        }
    }
}

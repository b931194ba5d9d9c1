//! Makes the checksums and the digest of a changed index correct, so that a test reaches what is checked later.

use xxhash_rust::xxh3::Xxh3Default;

/// Bytes of a header.
pub const HEADER_SIZE: usize = 140;
/// Where a header states the size of the file, the size of the metadata and the size of the chunks, 8 bytes each.
pub const FILE_SIZE: usize = 64;
pub const METADATA_SIZE: usize = 72;
pub const CHUNKS_SIZE: usize = 112;
const DIGEST: usize = 120;

/// The checksum of page `number` of the section `section`, in the index of `id`, which has at most 32 bytes.
///
/// # Panics
///
/// If `id` has more bytes.
pub fn page_checksum(id: &[u8], section: u32, number: u32, page: &[u8]) -> [u8; 4] {
    let mut place = [0; 36];
    place[..32][..id.len()].copy_from_slice(id);
    place[32..].copy_from_slice(&section.to_le_bytes());
    (crc32fast::hash(page) ^ crc32fast::hash(&place) ^ number).to_le_bytes()
}

/// Corrects the digest and the header's checksum of `index`, whose header states the right sizes.
///
/// # Panics
///
/// If the sizes are not those of the file.
pub fn seal(index: &mut [u8]) {
    let size =
        |at: usize| u64::from_le_bytes(*index[at..].first_chunk().expect("a header has sizes")) as usize;
    // The chunks follow the other sections, and optional sections follow the chunks.
    let chunks = HEADER_SIZE + (METADATA_SIZE..CHUNKS_SIZE).step_by(8).map(size).sum::<usize>();
    let end = chunks + size(CHUNKS_SIZE);
    let mut digest = Xxh3Default::new();
    for part in [chunks..end, 0..DIGEST, HEADER_SIZE..chunks, end..index.len()] {
        digest.update(&index[part]);
    }
    index[DIGEST..DIGEST + 16].copy_from_slice(&digest.digest128().to_le_bytes());
    seal_header(index);
}

/// Adds `more` to these sizes in the header of `index`, and corrects the header's checksum.
///
/// # Panics
///
/// If the file ends before the header does.
pub fn enlarge(index: &mut [u8], sizes: &[usize], more: u64) {
    for place in sizes {
        let size = index[*place..].first_chunk_mut::<8>().expect("a header has sizes");
        *size = (u64::from_le_bytes(*size) + more).to_le_bytes();
    }
    seal_header(index);
}

/// Corrects the checksum at the end of the header that `index` begins with, whatever size of it is stated.
///
/// # Panics
///
/// If the file ends before the header does.
pub fn seal_header(index: &mut [u8]) {
    let size = u16::from_le_bytes([index[10], index[11]]);
    let (header, checksum) = index[..size.into()].split_last_chunk_mut().expect("a checksum");
    *checksum = crc32fast::hash(header).to_le_bytes();
}

//! Makes the checksums and the digest of a changed index correct, so that a test reaches what is checked later.

use xxhash_rust::xxh3::Xxh3Default;

/// Bytes of a header.
pub const HEADER_SIZE: usize = 140;
/// Where a header states the size of the file, the size of the metadata and the size of the chunks, 8 bytes each.
pub const FILE_SIZE: usize = 64;
pub const METADATA_SIZE: usize = 72;
pub const CHUNKS_SIZE: usize = 112;
const DIGEST: usize = 120;
const PAGE_SIZE: usize = 512;
/// Where the header states the sizes of the six sections, 8 bytes each.
const SIZES: std::ops::Range<usize> = 72..120;
const METADATA: u32 = 1;
/// The section of compatible feature 0. That of each other feature is as much greater as its bit.
const OPTIONAL: u32 = 9;
/// The features whose sections symdex knows: readable names and unwind rows.
const KNOWN_FEATURES: u8 = 0b11;

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

/// An index of the fields and sections in `data`, with correct sizes and checksums. Sections that `data` is too short
/// for are cut. Returns `None` if `data` is shorter than a header.
#[must_use]
pub fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = data.split_at_checked(HEADER_SIZE)?;
    let mut out = header.to_vec();
    out[..12].copy_from_slice(b"\x89SYMDEX\n\x01\0\x8c\0");
    let id: [u8; 32] = header[32..64].try_into().ok()?;
    // Metadata, codes, files, checksums, names and chunks.
    let mut parts = [&[][..]; 6];
    for (part, field) in parts.iter_mut().zip(SIZES.step_by(8)) {
        let stated = u64::from_le_bytes(header[field..field + 8].try_into().ok()?);
        let size = usize::try_from(stated).unwrap_or(usize::MAX).min(rest.len());
        (*part, rest) = rest.split_at(size);
    }
    let [metadata, codes, files, _, names, chunks] = parts;
    let metadata = match metadata.split_first_chunk::<4>() {
        Some((_, fields)) => [&page_checksum(&id, METADATA, 0, fields), fields].concat(),
        None => metadata.to_vec(),
    };
    let paged = [codes, files, names, chunks].into_iter().zip(METADATA + 1..);
    let checksums: Vec<u8> = paged.flat_map(|(part, section)| page_sums(&id, section, part)).collect();
    let parts = [&metadata[..], codes, files, &checksums, names, chunks];
    for (part, field) in parts.iter().zip(SIZES.step_by(8)) {
        out[field..field + 8].copy_from_slice(&(part.len() as u64).to_le_bytes());
    }
    out.extend(parts.concat());
    // Of the optional sections, only those that symdex knows are kept.
    out[24..28].copy_from_slice(&[header[24] & KNOWN_FEATURES, 0, 0, 0]);
    for bit in (0..8).filter(|bit| (header[24] & KNOWN_FEATURES) >> bit & 1 == 1) {
        let (size, after) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX).min(after.len());
        let (contents, after) = after.split_at(size);
        out.extend((size as u64).to_le_bytes());
        out.extend(contents);
        out.extend(page_sums(&id, OPTIONAL + bit, contents));
        rest = &after[(4 * size.div_ceil(PAGE_SIZE)).min(after.len())..];
    }
    let size = (out.len() as u64).to_le_bytes();
    out[64..72].copy_from_slice(&size);
    seal(&mut out);
    Some(out)
}

/// The checksums of the pages of a section.
fn page_sums(id: &[u8; 32], section: u32, contents: &[u8]) -> Vec<u8> {
    let pages = (0..).zip(contents.chunks(PAGE_SIZE));
    pages.flat_map(|(page, bytes)| page_checksum(id, section, page, bytes)).collect()
}

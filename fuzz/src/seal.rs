//! Makes the checksums of changed indexes correct, so that changes reach the code after the checks.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const HEADER_SIZE: usize = 128;
const TRAILER_SIZE: usize = 32;
const PAGE_SIZE: usize = 512;
const METADATA: u32 = 1;
/// The section of compatible feature 0. That of each other feature is as much greater as its bit.
const OPTIONAL: u32 = 9;
/// The features whose sections symdex knows: readable names and unwind rows.
const KNOWN_FEATURES: u8 = 0b11;

/// An index of the fields and sections in `data`, with correct sizes and checksums. Sections that `data` is too short
/// for are cut. Returns `None` if `data` is shorter than a header.
#[must_use]
pub fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = data.split_at_checked(HEADER_SIZE)?;
    let mut out = header.to_vec();
    out[..12].copy_from_slice(b"\x89SYMDEX\n\x01\0\x80\0");
    let id: [u8; 32] = header[32..64].try_into().ok()?;
    let mut checksums = Vec::new();
    // Metadata, codes, chunks, names and files. Their numbers begin with 1.
    for (section, field) in (METADATA..=5).zip((72..112).step_by(8)) {
        let stated = u64::from_le_bytes(header[field..field + 8].try_into().ok()?);
        let size = usize::try_from(stated).unwrap_or(usize::MAX).min(rest.len());
        out[field..field + 8].copy_from_slice(&(size as u64).to_le_bytes());
        let (bytes, after) = rest.split_at(size);
        rest = after;
        if let (METADATA, Some((_, fields))) = (section, bytes.split_first_chunk::<8>()) {
            out.extend(checksum(&id, section, 0, fields).to_le_bytes());
            out.extend(fields);
            continue;
        }
        out.extend(bytes);
        for (page, bytes) in (0..).zip(bytes.chunks(PAGE_SIZE)) {
            checksums.extend_from_slice(&checksum(&id, section, page, bytes).to_le_bytes()[..4]);
        }
    }
    let old = u64::from_le_bytes(header[112..120].try_into().ok()?);
    rest = &rest[usize::try_from(old).unwrap_or(usize::MAX).min(rest.len())..];
    out[112..120].copy_from_slice(&(checksums.len() as u64).to_le_bytes());
    out.extend(checksums);
    // Of the optional sections, only those that symdex knows are kept.
    out[24..28].copy_from_slice(&[header[24] & KNOWN_FEATURES, 0, 0, 0]);
    for bit in (0..8).filter(|bit| (header[24] & KNOWN_FEATURES) >> bit & 1 == 1) {
        let (size, after) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX).min(after.len());
        let (contents, after) = after.split_at(size);
        out.extend((size as u64).to_le_bytes());
        out.extend(contents);
        for (page, bytes) in (0..).zip(contents.chunks(PAGE_SIZE)) {
            out.extend_from_slice(&checksum(&id, OPTIONAL + bit, page, bytes).to_le_bytes()[..4]);
        }
        rest = &after[(4 * size.div_ceil(PAGE_SIZE)).min(after.len())..];
    }
    let size = ((out.len() + TRAILER_SIZE) as u64).to_le_bytes();
    out[64..72].copy_from_slice(&size);
    let checksum = xxh3_64(&out[..HEADER_SIZE - 8]);
    out[HEADER_SIZE - 8..HEADER_SIZE].copy_from_slice(&checksum.to_le_bytes());
    let digest = xxh3_128(&out).to_le_bytes();
    out.extend([&size[..], &digest, b"XEDMYS\n\x89"].concat());
    Some(out)
}

/// The checksum of `bytes` at this place of the index of `id`.
fn checksum(id: &[u8; 32], section: u32, index: u64, bytes: &[u8]) -> u64 {
    let place = [&id[..], &section.to_le_bytes(), &index.to_le_bytes()].concat();
    xxh3_64(bytes) ^ xxh3_64(&place)
}

#[cfg(test)]
mod tests {
    use symdex::Index;

    use super::sealed;

    #[test]
    fn an_intact_index_is_sealed_to_the_same_bytes() {
        for index in crate::input::indexes() {
            assert!(sealed(&index).is_some_and(|sealed| sealed == index));
        }
    }

    #[test]
    fn a_changed_index_passes_its_checksums() {
        for index in crate::input::indexes() {
            for at in [130, 200, index.len() / 2] {
                let mut changed = index.clone();
                changed[at] ^= 0x55;
                let changed = sealed(&changed).expect("longer than a header");
                let error = Index::open(changed).and_then(|index| index.verify()).err();
                let is_checksum = matches!(error, Some(symdex::Error::Checksum { .. }));
                assert!(!is_checksum, "byte {at}: {error:?}");
            }
        }
    }
}

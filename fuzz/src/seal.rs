//! Makes the checksums of changed indexes correct, so that changes reach the code after the checks.

use symdex_testkit::images::seal::{HEADER_SIZE, page_checksum, seal};

const PAGE_SIZE: usize = 512;
/// Where the header states the sizes of the six sections, 8 bytes each.
const SIZES: std::ops::Range<usize> = 72..120;
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

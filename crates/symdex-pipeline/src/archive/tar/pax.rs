//! The records of a header of PAX, which precedes the header of an entry.

use std::io;

use super::header::damaged;

/// What the records state of an entry.
#[derive(Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    /// The size of the data in the archive.
    pub(super) size: Option<u64>,
    pub(super) sparse: Option<PaxSparse>,
}

/// What they state of a sparse file, in the formats 0.0, 0.1 and 1.0 of GNU.
#[derive(Default)]
pub(super) struct PaxSparse {
    pub(super) path: Option<Vec<u8>>,
    /// The size of the file.
    pub(super) size: u64,
    pub(super) regions: Vec<(u64, u64)>,
    /// Whether the data begins with the list of regions instead.
    pub(super) is_map_in_data: bool,
    /// The offset of a region whose length follows.
    offset: Option<u64>,
}

impl Pax {
    /// Parses records of the form `length key=value\n`.
    pub(super) fn parse(mut bytes: &[u8]) -> io::Result<Self> {
        let mut pax = Self::default();
        while !bytes.iter().all(|byte| *byte == 0) {
            let (record, rest) = record(bytes).ok_or_else(malformed)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
            pax.set(&record[..equals], &record[equals + 1..])?;
            bytes = rest;
        }
        Ok(pax)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let Some(key) = key.strip_prefix(b"GNU.sparse.") else {
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value)?),
                _ => {}
            }
            return Ok(());
        };
        let sparse = self.sparse.get_or_insert_default();
        match key {
            b"name" => sparse.path = Some(value.to_vec()),
            b"size" | b"realsize" => sparse.size = decimal(value)?,
            b"major" => sparse.is_map_in_data = decimal(value)? != 0,
            b"offset" => sparse.offset = Some(decimal(value)?),
            b"numbytes" => {
                sparse.regions.push((sparse.offset.take().ok_or_else(malformed)?, decimal(value)?));
            }
            b"map" => {
                let numbers =
                    value.split(|byte| *byte == b',').map(decimal).collect::<io::Result<Vec<_>>>()?;
                let (regions, []) = numbers.as_chunks::<2>() else { return Err(malformed()) };
                sparse.regions = regions.iter().map(|[offset, len]| (*offset, *len)).collect();
            }
            _ => {}
        }
        Ok(())
    }
}

/// The first record, without its length and its end, and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length = usize::try_from(decimal(&bytes[..space]).ok()?).ok()?;
    let (record, rest) = bytes.split_at_checked(length)?;
    Some((record.get(space + 1..)?.strip_suffix(b"\n")?, rest))
}

/// A number of decimal digits.
pub(super) fn decimal(digits: &[u8]) -> io::Result<u64> {
    let number = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
    number.and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

fn malformed() -> io::Error {
    damaged("a PAX header is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_state_paths_sizes_and_maps() {
        // A value may have line breaks.
        let pax = Pax::parse(
            b"12 path=a\nb\n9 size=3\n27 GNU.sparse.size=4199200\n26 GNU.sparse.map=0,1,5,2\n\0\0",
        );
        let pax = pax.expect("whole");
        assert_eq!((pax.path.as_deref(), pax.size), (Some(&b"a\nb"[..]), Some(3)));
        let sparse = pax.sparse.expect("sparse");
        assert_eq!((sparse.size, &sparse.regions[..]), (4_199_200, &[(0, 1), (5, 2)][..]));
    }

    #[test]
    fn malformed_records_are_damage() {
        for records in [
            &b"9 size=3"[..],
            b"99 size=3\n",
            b"0 size=3\n",
            b"9 size:3\n",
            b"9 size=x\n",
            b"size=3\n",
            b"24 GNU.sparse.map=0,1,5\n",
            b"25 GNU.sparse.numbytes=1\n",
            b"99999999999999999999 size=3\n",
        ] {
            assert!(Pax::parse(records).is_err(), "{}", records.escape_ascii());
        }
    }
}

//! The data of an entry, with the holes of sparse files filled in.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::header::{BLOCK, block, cut, damaged, too_large};
use super::pax::decimal;
use crate::archive::kind::HEAD;
use crate::archive::limits::HEADER_BYTES;
use crate::archive::meter::Metered;

/// Which parts of a file the archive has. Everything else in the file is zero.
pub(super) struct Map {
    /// Offset and length of each part. They are in order.
    regions: VecDeque<(u64, u64)>,
    /// The size of the file.
    size: u64,
}

impl Map {
    /// The map of a file that is not sparse.
    pub(super) fn whole(size: u64) -> Self {
        Self { regions: [(0, size)].into(), size }
    }

    /// The map of a sparse file of `size` bytes, of which the archive has `stored` bytes.
    ///
    /// # Errors
    ///
    /// An error if the regions are not in order, or have another size.
    pub(super) fn sparse(regions: Vec<(u64, u64)>, size: u64, stored: u64) -> io::Result<Self> {
        let (mut end, mut sum) = (0_u64, 0_u64);
        for (offset, len) in &regions {
            // Each region begins in a block of its own.
            let fits = *offset >= end && (sum.is_multiple_of(BLOCK as u64) || *len == 0);
            end = offset.checked_add(*len).filter(|end| fits && *end <= size).ok_or_else(wrong_map)?;
            sum += len;
        }
        if sum == stored { Ok(Self { regions: regions.into(), size }) } else { Err(wrong_map()) }
    }

    /// The size of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

fn wrong_map() -> io::Error {
    damaged("the regions of a sparse entry do not fit its sizes")
}

/// Reads the list of regions with which data begins: their number, and then the offset and the length of each, one
/// number on each line. Returns the list and the number of bytes that it takes.
pub(super) fn map_in_data(data: &mut impl Read) -> io::Result<(Vec<(u64, u64)>, u64)> {
    let (mut numbers, mut line, mut size) = (Vec::new(), Vec::new(), 0);
    loop {
        size += BLOCK as u64;
        if size > HEADER_BYTES {
            return Err(too_large());
        }
        for byte in block(data)?.ok_or_else(cut)? {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            numbers.push(decimal(&line).map_err(|_| wrong_map())?);
            line.clear();
            if let [count, numbers @ ..] = &numbers[..]
                && count.checked_mul(2).is_none_or(|all| all <= numbers.len() as u64)
            {
                let (regions, []) = numbers.as_chunks::<2>() else { return Err(wrong_map()) };
                return Ok((regions.iter().map(|[offset, len]| (*offset, *len)).collect(), size));
            }
        }
    }
}

/// Reads the data of an entry.
pub(super) struct Data<'d, R> {
    data: &'d mut Metered<R>,
    map: Map,
    /// The place in the file.
    at: u64,
    /// How many bytes of the entry, with those that fill its last block, are not read from the archive yet.
    left: u64,
    /// How many bytes of its holes are not filled in yet.
    holes: u64,
}

impl<'d, R: Read> Data<'d, R> {
    /// `stored` is how many bytes of the file the archive has.
    pub(super) fn new(data: &'d mut Metered<R>, map: Map, stored: u64) -> io::Result<Self> {
        let left = stored.checked_next_multiple_of(BLOCK as u64);
        let left = left.ok_or_else(|| damaged("an entry has too large a size"))?;
        let holes = map.size.saturating_sub(stored);
        Ok(Self { data, map, at: 0, left, holes })
    }

    /// Reads what is left of the entry, so that the next header follows.
    pub(super) fn skip(self) -> io::Result<()> {
        match io::copy(&mut self.data.take(self.left), &mut io::sink())? {
            read if read == self.left => Ok(()),
            read => Err(missing(self.left - read)),
        }
    }
}

impl<R: Read> Read for Data<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        while self.map.regions.front().is_some_and(|(offset, len)| offset + len <= at) {
            self.map.regions.pop_front();
        }
        let region = self.map.regions.front().copied();
        let end =
            region.map_or(self.map.size, |(offset, len)| if at < offset { offset } else { offset + len });
        let len = out.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        let out = &mut out[..len];
        let read = match region {
            _ if out.is_empty() => 0,
            Some((offset, _)) if at >= offset => match self.data.read(out)? {
                0 => return Err(missing(self.left)),
                read => {
                    self.left -= read as u64;
                    read
                }
            },
            _ => {
                // Of an entry that nobody wants, only the head is read.
                if at >= HEAD as u64 {
                    self.data.check_holes(self.holes, self.left)?;
                }
                self.data.hole(out.len())?;
                self.holes = self.holes.saturating_sub(out.len() as u64);
                out.fill(0);
                out.len()
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

fn missing(bytes: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("{bytes} bytes are missing"))
}

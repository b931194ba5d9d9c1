//! Files compressed by gzip or zstd.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The compression of a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, of one or more members.
    Gzip,
    /// zstd, of one or more frames.
    Zstd,
}

impl Compression {
    /// The window that a zstd frame may need, as a power of two: 128 MiB, the limit of the program zstd.
    pub const MAX_WINDOW_LOG: u32 = 27;

    /// The compression of a file that begins with `head`, of which 4 bytes are enough; `None` for other files.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            // The second is a skippable frame, with which parallel compressors begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Decompresses `data`, all members or frames of it. They are compared with their checksums, that of the last one
    /// when the reader returns 0 bytes. Discard the output if a later read fails.
    ///
    /// A zstd frame that needs a larger window than 2 to the power of `max_window_log` bytes is an error. The number of
    /// decompressed bytes has no limit.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if memory is short. Reading fails if the data is damaged or cut short, or if other data
    /// follows it. Zeros may follow gzip data. After zstd data they are an error, as for `zstd -t`.
    ///
    /// ```
    /// use std::io::Read as _;
    /// use symdex_pipeline::archive::Compression;
    ///
    /// # let data = &zstd::encode_all(&b"debug file"[..], 3)?[..];
    /// let compression = Compression::of(data).expect("zstd");
    /// let mut text = String::new();
    /// compression.decoder(data, Compression::MAX_WINDOW_LOG)?.read_to_string(&mut text)?;
    /// assert_eq!(text, "debug file");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn decoder<'d>(self, data: impl BufRead + 'd, max_window_log: u32) -> io::Result<Box<dyn Read + 'd>> {
        match self {
            Self::Gzip => Ok(Box::new(GzipMembers { member: Some(GzDecoder::new(data)) })),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(data)?;
                decoder.window_log_max(max_window_log)?;
                Ok(Box::new(decoder))
            }
        }
    }
}

/// The members of a gzip file, one after the other.
struct GzipMembers<R> {
    /// `None` after the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let read = member.read(out)?;
            if read != 0 {
                return Ok(read);
            }
            if let Some(mut rest) = self.member.take().map(GzDecoder::into_inner)
                && has_member(&mut rest)?
            {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Whether `rest`, which follows a member, has another one. Zeros may follow the last member, as on tapes.
fn has_member(rest: &mut impl BufRead) -> io::Result<bool> {
    let mut is_padded = false;
    loop {
        let bytes = rest.fill_buf()?;
        match bytes.first() {
            None => return Ok(false),
            Some(0) => {
                is_padded = true;
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                rest.consume(zeros);
            }
            Some(0x1f) if !is_padded => return Ok(true),
            Some(_) => {
                let what = "other data follows the end of the gzip stream";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use symdex_testkit::images::archive::gzip;

    use super::*;

    /// Decompresses `data`, of which one byte at a time arrives.
    fn decoded(data: &[u8]) -> io::Result<Vec<u8>> {
        let compression = Compression::of(data).expect("compressed");
        let mut bytes = Vec::new();
        compression
            .decoder(BufReader::with_capacity(1, data), Compression::MAX_WINDOW_LOG)?
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("in memory");
        encoder.include_checksum(true).expect("known");
        io::copy(&mut &data[..], &mut encoder).expect("in memory");
        encoder.finish().expect("in memory")
    }

    #[test]
    fn members_frames_and_padding_are_read_to_the_end() {
        let skippable = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
        for data in [
            [gzip(b"one "), gzip(b""), gzip(b"two")].concat(),
            [gzip(b"one two"), vec![0; 700]].concat(),
            [zstd(b"one "), zstd(b""), zstd(b"two")].concat(),
            [&skippable[..], &zstd(b"one "), skippable, &zstd(b"two"), skippable].concat(),
        ] {
            assert_eq!(decoded(&data).expect("undamaged"), b"one two");
        }
    }

    #[test]
    fn any_damage_after_the_data_is_an_error() {
        for data in [gzip(b"data"), zstd(b"data")] {
            let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut data = [&data[..], &data].concat();
                change(&mut data);
                decoded(&data).expect_err("damaged")
            };
            // The checksums of the first and of the second half, and the end.
            damaged(&|both| both[data.len() - 1] ^= 1);
            damaged(&|both| *both.last_mut().expect("data") ^= 1);
            damaged(&|both| _ = both.pop());
            damaged(&|both| both.truncate(data.len() + 2));
            damaged(&|both| both.extend(b"more"));
            damaged(&|both| both.extend(b"\0\0\0more"));
        }
        // Zeros may follow gzip data only.
        decoded(&[zstd(b"data"), vec![0; 700]].concat()).expect_err("padded");
    }
}

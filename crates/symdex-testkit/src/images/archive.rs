//! Archives: zip archives with any header, right or wrong, and tar archives.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

/// An entry of a zip archive. Every field of its headers can be wrong.
#[derive(Clone, Debug)]
pub struct ZipEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The data as it is in the archive.
    pub data: Vec<u8>,
    /// The method by which it is compressed.
    pub method: u16,
    /// The CRC-32 of the unpacked data.
    pub crc: u32,
    /// The size of the unpacked data.
    pub size: u32,
    /// The compressed size, as the directory states it.
    pub compressed_size: u32,
    /// The type and the permissions of the file, as Unix has them.
    pub mode: u32,
    /// The flags. Bit 0 stands for an encrypted entry.
    pub flags: u16,
    /// The offset of the local header, if it is not that of this entry.
    pub offset: Option<u32>,
}

impl ZipEntry {
    /// A regular file that is stored.
    pub fn stored(name: &str, data: &[u8]) -> Self {
        let size = u32::try_from(data.len()).expect("a small file");
        Self {
            name: name.as_bytes().to_vec(),
            data: data.to_vec(),
            method: 0,
            crc: crc32fast::hash(data),
            size,
            compressed_size: size,
            mode: 0o100_644,
            flags: 0,
            offset: None,
        }
    }

    /// A regular file that is compressed by deflate.
    pub fn deflated(name: &str, data: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).expect("in memory");
        Self::stored(name, data).with_data(encoder.finish().expect("in memory"), 8)
    }

    /// The same file, with this data, which is compressed by `method`.
    pub fn with_data(self, data: Vec<u8>, method: u16) -> Self {
        let compressed_size = u32::try_from(data.len()).expect("a small file");
        Self { data, method, compressed_size, ..self }
    }
}

/// A zip archive of these entries.
pub fn zip(entries: &[ZipEntry]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = entry.offset.unwrap_or(u32::try_from(archive.len()).expect("a small archive"));
        let name_len = u16::try_from(entry.name.len()).expect("a name").to_le_bytes();
        let mut header = [20, 0].to_vec();
        header.extend([entry.flags, entry.method, 0, 0x21].map(u16::to_le_bytes).concat());
        header.extend([entry.crc, entry.compressed_size, entry.size].map(u32::to_le_bytes).concat());
        header.extend([name_len, [0, 0]].concat());
        if entry.offset.is_none() {
            archive.extend([b"PK\x03\x04", &header[..], &entry.name, &entry.data].concat());
        }
        // Made by Unix. No comment, the first disk, no internal attributes.
        directory.extend([&b"PK\x01\x02\x14\x03"[..], &header, &[0; 6]].concat());
        directory.extend([entry.mode << 16, offset].map(u32::to_le_bytes).concat());
        directory.extend(&entry.name);
    }
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
    let [size, start] =
        [directory.len(), archive.len()].map(|at| u32::try_from(at).expect("a small archive"));
    archive.extend(directory);
    archive.extend([&b"PK\x05\x06\0\0\0\0"[..], &[count, count].map(u16::to_le_bytes).concat()].concat());
    archive.extend([size, start].map(u32::to_le_bytes).concat());
    archive.extend([0, 0]);
    archive
}

/// A zip archive of files that are compressed.
pub fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    zip(&files.iter().map(|(name, data)| ZipEntry::deflated(name, data)).collect::<Vec<_>>())
}

/// An entry of a tar archive.
pub fn tar_entry(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut entry = header.to_vec();
    entry.extend(data);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

/// A tar archive of these files.
pub fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive: Vec<u8> = files.iter().flat_map(|(name, data)| tar_entry(name, b'0', data)).collect();
    archive.extend([0; 1024]);
    archive
}

/// `bytes`, compressed by gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

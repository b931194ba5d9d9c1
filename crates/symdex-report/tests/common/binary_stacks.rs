//! A stack of an image of testdata, as a report of each binary format.

use super::stacks::{BASE, ID, LOAD, addresses};

/// A field of Protocol Buffers: its number and its value.
enum Field<'v> {
    Number(u64, u64),
    Bytes(u64, &'v [u8]),
}

use Field::{Bytes, Number};

fn message(fields: &[Field<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let varint = |out: &mut Vec<u8>, mut number: u64| {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            if number == 0 {
                return out.push(low & 0x7f);
            }
            out.push(low | 0x80);
        }
    };
    for field in fields {
        match field {
            Number(number, value) => {
                varint(&mut out, number << 3);
                varint(&mut out, *value);
            }
            Bytes(number, bytes) => {
                varint(&mut out, number << 3 | 2);
                varint(&mut out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

fn id_bytes() -> Vec<u8> {
    ID.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal"))
        .collect()
}

pub(super) fn plcrash() -> Vec<u8> {
    let mut thread = message(&[Number(1, 0), Number(3, 1)]);
    for address in addresses() {
        // A field that no version has stays.
        thread.extend(message(&[Bytes(2, &message(&[Number(3, address), Bytes(15, b"kept")]))]));
    }
    let processor = message(&[Number(1, 1), Number(2, 0x0100_000c), Number(3, 0)]);
    let id = id_bytes();
    let image = message(&[
        Number(1, LOAD),
        Number(2, 0x4000),
        Bytes(3, b"/var/App.app/App"),
        Bytes(4, &id),
        Bytes(5, &processor),
    ]);
    let signal = message(&[Bytes(1, b"SIGABRT"), Bytes(2, b"#0"), Number(3, 0)]);
    let report =
        message(&[Bytes(3, &thread), Bytes(4, &image), Bytes(6, &signal), Bytes(10, b"custom data")]);
    [b"plcrash\x01", &report[..]].concat()
}

pub(super) fn tombstone() -> Vec<u8> {
    let mut thread = message(&[Number(1, 43), Bytes(2, b"worker")]);
    for address in addresses() {
        let frame = message(&[
            Number(1, BASE + address - LOAD),
            Number(2, address),
            Bytes(6, b"/data/app/libapp.so"),
            Bytes(8, ID.as_bytes()),
        ]);
        thread.extend(message(&[Bytes(4, &frame)]));
    }
    let entry = message(&[Number(1, 43), Bytes(2, &thread)]);
    message(&[
        Number(1, 1),
        Bytes(2, b"a/b:12"),
        Number(5, 42),
        Number(6, 43),
        Bytes(16, &entry),
        Bytes(26, b"kept"),
    ])
}

pub(super) fn pprof() -> Vec<u8> {
    let unit = message(&[Number(1, 1), Number(2, 2)]);
    let mapping = message(&[
        Number(1, 1),
        Number(2, LOAD + 0x1000),
        Number(3, LOAD + 0x4000),
        Number(4, 0x1000),
        Number(5, 3),
        Number(6, 4),
    ]);
    // The mapping begins after the header of the image.
    let mut profile = message(&[Bytes(1, &unit), Bytes(3, &mapping)]);
    for (number, address) in addresses().enumerate() {
        profile.extend(message(&[Bytes(
            4,
            &message(&[Number(1, number as u64 + 1), Number(2, 1), Number(3, address)]),
        )]));
    }
    for text in ["", "cpu", "nanoseconds", "/opt/App", ID] {
        profile.extend(message(&[Bytes(6, text.as_bytes())]));
    }
    profile.extend(message(&[Number(12, 1000)]));
    profile
}

/// A request of a profiler to a collector. The last location is of an interpreter.
pub(super) fn otlp() -> Vec<u8> {
    let mapping = message(&[
        Number(1, LOAD + 0x1000),
        Number(2, LOAD + 0x4000),
        Number(3, 0x1000),
        Number(4, 1),
        Bytes(5, &[1, 2]),
    ]);
    let zero = || vec![Bytes(1, &[]), Bytes(2, &[]), Bytes(3, &[])];
    let mut tables = message(&zero());
    tables.extend(message(&[Bytes(1, &mapping)]));
    for address in addresses() {
        tables.extend(message(&[Bytes(
            2,
            &message(&[Number(1, 1), Number(2, address), Number(4, 4), Bytes(15, b"kept")]),
        )]));
    }
    let line = message(&[Number(1, 1), Number(2, 7)]);
    tables.extend(message(&[Bytes(2, &message(&[Number(2, 7), Bytes(3, &line), Bytes(4, &[3])]))]));
    tables.extend(message(&[Bytes(3, &message(&[Number(1, 8)]))]));
    let names =
        ["", "/opt/App", "process.executable.build_id.gnu", ID, "profile.frame.type", "cpython", "native"];
    for text in names.into_iter().chain(["process.executable.build_id.htlhash", "interpreted"]) {
        tables.extend(message(&[Bytes(5, text.as_bytes())]));
    }
    for (key, value) in [(0, 0), (7, 5), (2, 3), (4, 5), (4, 6)] {
        let value = message(&[Bytes(1, names[value].as_bytes())]);
        tables.extend(message(&[Bytes(6, &message(&[Number(1, key), Bytes(2, &value)]))]));
    }
    let stack = message(&[Bytes(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9])]);
    tables.extend(message(&[Bytes(7, &[]), Bytes(7, &stack)]));
    message(&[Bytes(1, &message(&[Bytes(3, b"https://example.com/schema")])), Bytes(2, &tables)])
}

/// Makes the part of a report with this number.
pub(super) type Part = Box<dyn Fn(usize) -> Vec<u8>>;

/// A format, the start of a report, and its parts.
type Parts = (&'static str, &'static [u8], Part);

/// Parts of each binary format that cost most for their size: a frame, a stack, an image.
pub(super) fn parts() -> impl Iterator<Item = Parts> {
    let tombstone: &[u8] = b"\x08\x01\x12\x01a\x28\x01\x30\x01";
    let parts: [Parts; 10] = [
        ("plcrash", b"plcrash\x01", Box::new(|_| message(&[Bytes(3, &[])]))),
        ("plcrash", b"plcrash\x01", Box::new(|_| message(&[Bytes(4, &[])]))),
        ("plcrash", b"plcrash\x01", Box::new(|_| message(&[Bytes(3, &message(&[Bytes(2, &[24, 1])]))]))),
        ("pprof", b"\x0a\x04\x08\x01\x10\x02\x32\x00", Box::new(|number| location(number as u64))),
        (
            "pprof",
            b"\x0a\x04\x08\x01\x10\x02\x32\x00\x22\x02\x18\x01",
            Box::new(|_| message(&[Bytes(3, &[])])),
        ),
        (
            "pprof",
            b"\x0a\x04\x08\x01\x10\x02\x32\x00\x22\x02\x18\x01",
            Box::new(|_| message(&[Bytes(6, &[])])),
        ),
        (
            "otlp-profile",
            b"\x2a\x00\x12\x04\x08\x01\x10\x01",
            Box::new(|_| message(&[Bytes(2, &[10, 2, 8, 1])])),
        ),
        ("otlp-profile", b"\x2a\x00\x12\x04\x08\x01\x10\x01", Box::new(|_| message(&[Bytes(1, &[])]))),
        ("android-protobuf", tombstone, Box::new(|number| thread(number as u64))),
        (
            "android-protobuf",
            tombstone,
            Box::new(|_| message(&[Bytes(16, &message(&[Number(1, 1), Bytes(2, &[])]))])),
        ),
    ];
    parts.into_iter()
}

/// A profile of OpenTelemetry with these tables.
pub(super) fn in_tables(tables: &[u8]) -> Vec<u8> {
    message(&[Bytes(2, tables)])
}

fn location(number: u64) -> Vec<u8> {
    message(&[Bytes(4, &message(&[Number(3, number)]))])
}

/// A thread with one frame of an image of its own.
fn thread(number: u64) -> Vec<u8> {
    let frame = message(&[Number(1, 1), Bytes(6, number.to_string().as_bytes())]);
    message(&[Bytes(16, &message(&[Number(1, 1), Bytes(2, &message(&[Bytes(4, &frame)]))]))])
}

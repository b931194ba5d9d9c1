//! Prints the bytes of an index with their meaning. The code follows docs/FORMAT.md and does not use the reader.

#![allow(unreachable_pub, reason = "a part of one test")]

use std::fmt::Write as _;

/// Prints fields one after another, each with its meaning.
pub struct Dump<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    pub out: String,
}

impl<'a> Dump<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, out: String::new() }
    }

    pub fn heading(&mut self, text: &str) {
        writeln!(self.out, "-- {text}").expect("a string takes all");
    }

    /// Prints the next `size` bytes with `meaning` and returns them.
    pub fn field(&mut self, size: usize, meaning: &str) -> &'a [u8] {
        let field = &self.bytes[self.at..self.at + size];
        let rows: Vec<String> = if size > 16 && field.iter().all(|byte| *byte == 0) {
            vec![format!("{size} zero bytes")]
        } else {
            let row = |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            field.chunks(16).map(row).collect()
        };
        for (number, row) in rows.iter().enumerate() {
            let (at, meaning) = (self.at + 16 * number, if number == 0 { meaning } else { "" });
            let line = format!("{at:04x}  {row:<23}  {meaning}");
            writeln!(self.out, "{}", line.trim_end()).expect("a string takes all");
        }
        self.at += size;
        field
    }

    /// Prints and returns a little-endian number of `size` bytes.
    pub fn number(&mut self, size: usize, meaning: &str) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.bytes[self.at..self.at + size]);
        let value = u64::from_le_bytes(bytes);
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    /// Prints and returns a varint.
    pub fn varint(&mut self, meaning: &str) -> u64 {
        let size = 1 + self.bytes[self.at..].iter().position(|byte| *byte < 0x80).expect("a varint ends");
        let value = (0..size).map(|n| u64::from(self.bytes[self.at + n] & 0x7f) << (7 * n)).sum();
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    /// Prints `size` bytes of coded numbers. The first number starts at the first bit, and each further number follows
    /// the previous one. `{}` in a meaning stands for the number.
    pub fn coded(&mut self, size: u64, what: &str, codes: &Codes<'_>, numbers: &[(u8, &str)]) {
        let bytes = self.field(usize::try_from(size).expect("small"), what);
        let mut bits = Bits { bytes, at: 0 };
        for (context, meaning) in numbers {
            let from = bits.at;
            let number = codes.number(&mut bits, *context);
            let read: String = (from..bits.at).map(|at| if bits.bit(at) { '1' } else { '0' }).collect();
            let meaning = meaning.replace("{}", &format!("{number:#x}"));
            let line = format!("      | {from:2} {read:<11} {context:>2} {number:>4}  {meaning}");
            writeln!(self.out, "{}", line.trim_end()).expect("a string takes all");
        }
        assert!(bits.at.div_ceil(8) == bytes.len(), "all of {what} is explained");
    }
}

/// Reads bits. The highest bit of each byte comes first.
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl Bits<'_> {
    fn bit(&self, at: usize) -> bool {
        self.bytes[at / 8] >> (7 - at % 8) & 1 != 0
    }

    pub fn take(&mut self, count: u64) -> u64 {
        (0..count).fold(0, |number, _| {
            self.at += 1;
            number << 1 | u64::from(self.bit(self.at - 1))
        })
    }
}

/// The codes of all contexts, in the encoding that docs/FORMAT.md describes.
pub struct Codes<'a>(pub Vec<&'a [u8]>);

impl<'a> Codes<'a> {
    pub fn of(bytes: &'a [u8], contexts: u8) -> Self {
        let mut rest = bytes;
        let mut code = |_| {
            let size = if rest[0] < 2 { 1 + rest[0] } else { 10 + rest[0] };
            let (code, after) = rest.split_at(size.into());
            rest = after;
            code
        };
        let codes = (0..contexts).map(&mut code).collect();
        assert!(rest.is_empty(), "all of the codes are explained");
        Self(codes)
    }

    /// The symbols of a context and their code words as text.
    pub fn words(&self, context: usize) -> Vec<(u8, String)> {
        let code = self.0[context];
        if code[0] < 2 {
            return code[1..].iter().map(|symbol| (*symbol, String::new())).collect();
        }
        let lens = (1..=9).flat_map(|len| std::iter::repeat_n(len, code[len].into()));
        let (mut next, mut last) = (0, 0);
        let word = |(len, symbol): (usize, &u8)| {
            next = (next + usize::from(last != 0)) << (len - last);
            last = len;
            (*symbol, format!("{next:0len$b}"))
        };
        lens.zip(&code[10..]).map(word).collect()
    }

    pub fn number(&self, bits: &mut Bits<'_>, context: u8) -> u64 {
        let words = self.words(context.into());
        let from = bits.at;
        let mut read = String::new();
        let symbol = loop {
            if let Some((symbol, _)) = words.iter().find(|(_, word)| *word == read) {
                break u64::from(*symbol);
            }
            assert!(bits.at < from + 9, "a word of context {context}");
            read.push(if bits.take(1) == 1 { '1' } else { '0' });
        };
        match symbol.checked_sub(128) {
            None => symbol,
            Some(above) => (2 + above % 2) << (above / 2 + 6) | bits.take(above / 2 + 6),
        }
    }
}

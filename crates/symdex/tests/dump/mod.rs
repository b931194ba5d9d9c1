//! Printing the bytes of an index with what they mean, by nothing but what docs/FORMAT.md says of them.

#![allow(unreachable_pub, reason = "a part of one test")]

use std::fmt::Write as _;

/// Bytes with what they mean, field after field.
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

    /// The next `size` bytes, which mean `meaning`.
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

    /// A little-endian number of `size` bytes.
    pub fn number(&mut self, size: usize, meaning: &str) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.bytes[self.at..self.at + size]);
        let value = u64::from_le_bytes(bytes);
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    /// A varint.
    pub fn varint(&mut self, meaning: &str) -> u64 {
        let size = 1 + self.bytes[self.at..].iter().position(|byte| *byte < 0x80).expect("a varint ends");
        let value = (0..size).map(|n| u64::from(self.bytes[self.at + n] & 0x7f) << (7 * n)).sum();
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    pub fn varints(&mut self, meanings: &[&str]) {
        for meaning in meanings {
            self.varint(meaning);
        }
    }

    /// The bytes that these numbers take from here on, where nothing says how many they are.
    pub fn size_of(&self, codes: &Codes<'_>, numbers: &[(u8, &str)]) -> u64 {
        let mut bits = Bits { bytes: &self.bytes[self.at..], at: 0 };
        for (context, _) in numbers {
            codes.number(&mut bits, *context);
        }
        bits.at.div_ceil(8) as u64
    }

    /// A part of `size` bytes that is numbers in codes, one behind the other from its first bit on; `{}` is what each is.
    pub fn coded(&mut self, size: u64, what: &str, codes: &Codes<'_>, numbers: &[(u8, &str)]) {
        let bytes = self.field(usize::try_from(size).expect("small"), what);
        let mut bits = Bits { bytes, at: 0 };
        for (context, meaning) in numbers {
            let from = bits.at;
            let number = match *context {
                BODY_SIZE => bits.body_size(),
                context => codes.number(&mut bits, context),
            };
            let read: String = (from..bits.at).map(|at| if bits.bit(at) { '1' } else { '0' }).collect();
            let context = if *context == BODY_SIZE { "-".to_owned() } else { context.to_string() };
            let meaning = meaning.replace("{}", &format!("{number:#x}"));
            let line = format!("          | {from:4}  {read:<15}  {context:>3}  {number:>4}  {meaning}");
            writeln!(self.out, "{}", line.trim_end()).expect("a string takes all");
        }
        assert!(bits.at.div_ceil(8) == bytes.len(), "all of {what} is explained");
    }
}

/// Stands for a context where a body's size is.
pub const BODY_SIZE: u8 = u8::MAX;

/// Bits, the highest of each byte first.
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

    fn body_size(&mut self) -> u64 {
        match self.take(4) {
            0 => 0,
            15 => self.take(32),
            bits => 1 << (bits - 1) | self.take(bits - 1),
        }
    }
}

/// The codes of all contexts, by what the document says of them.
pub struct Codes<'a>(pub Vec<&'a [u8]>);

impl<'a> Codes<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let (sizes, mut rest) = bytes.split_at(CONTEXTS);
        let code = |size: &u8| {
            let (code, behind) = rest.split_at((*size).into());
            rest = behind;
            code
        };
        let codes = sizes.iter().map(code).collect();
        assert!(rest.is_empty(), "all of the codes are explained");
        Self(codes)
    }

    /// Symbols of a context with their words as text.
    pub fn words(&self, context: usize) -> Vec<(u8, String)> {
        let code = self.0[context];
        if code.len() < 2 {
            return code.iter().map(|symbol| (*symbol, String::new())).collect();
        }
        let lens = (1..=12).flat_map(|len| std::iter::repeat_n(len, code[len - 1].into()));
        let (mut next, mut last) = (0, 0);
        let word = |(len, symbol): (usize, &u8)| {
            next = (next + usize::from(last != 0)) << (len - last);
            last = len;
            (*symbol, format!("{next:0len$b}"))
        };
        lens.zip(&code[12..]).map(word).collect()
    }

    pub fn number(&self, bits: &mut Bits<'_>, context: u8) -> u64 {
        let words = self.words(context.into());
        let from = bits.at;
        let mut read = String::new();
        let symbol = loop {
            if let Some((symbol, _)) = words.iter().find(|(_, word)| *word == read) {
                break u64::from(*symbol);
            }
            assert!(bits.at < from + 12, "a word of context {context}");
            read.push(if bits.take(1) == 1 { '1' } else { '0' });
        };
        match symbol.checked_sub(128) {
            None => symbol,
            Some(above) => (2 + above % 2) << (above / 2 + 6) | bits.take(above / 2 + 6),
        }
    }
}

pub const CONTEXTS: usize = 166;

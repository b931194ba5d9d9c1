//! A chunk between being taken apart and being written: symbols whose code words are not known before all chunks are there.
//!
//! One byte says what follows: a context, and then its symbol and the bits that belong to it as a varint, where it has any; or a mark
//! and its varints.

use super::codes::{Counts, symbol};
use super::contexts::CONTEXTS;
use crate::format::{Cursor, put_varint};

/// A part of a chunk begins; the numbers are what is said of it in the chunk's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A run: its first byte from the chunk's start, and its first triple.
    Run([u64; 2]),
    /// A triple: the next number that no name has.
    Triple(u64),
    /// A name: one more than the id of the name before, as it is stored.
    Name(u64),
}

const RUN: u8 = 253;
const TRIPLE: u8 = 254;
const NAME: u8 = 255;
const _: () = assert!(CONTEXTS < RUN as usize);

/// Symbols and marks in the order in which a chunk has them.
#[derive(Default)]
pub(super) struct Tokens(pub(super) Vec<u8>);

impl Tokens {
    /// Appends a number of `context`.
    #[inline]
    pub(super) fn number(&mut self, context: u8, number: u64) {
        let (symbol, bits, follow) = symbol(number);
        self.0.extend([context, symbol]);
        if follow != 0 {
            put_varint(&mut self.0, bits);
        }
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        let (kind, numbers) = match &mark {
            Mark::Run(numbers) => (RUN, numbers.as_slice()),
            Mark::Triple(number) => (TRIPLE, std::slice::from_ref(number)),
            Mark::Name(number) => (NAME, std::slice::from_ref(number)),
        };
        self.0.push(kind);
        numbers.iter().for_each(|number| put_varint(&mut self.0, *number));
    }

    /// Adds the symbols to `counts`.
    pub(super) fn count(&self, counts: &mut Counts) {
        let mut reader = TokenReader::new(&self.0);
        while let Some(token) = reader.next() {
            if let Token::Symbol { context, symbol, .. } = token {
                counts.add(context, symbol);
            }
        }
    }
}

pub(super) enum Token {
    Mark(Mark),
    /// A symbol, and the bits that follow its code word.
    Symbol {
        context: u8,
        symbol: u8,
        bits: u64,
        follow: u32,
    },
}

/// Reads what [`Tokens`] wrote.
pub(super) struct TokenReader<'a>(Cursor<'a>);

impl<'a> TokenReader<'a> {
    pub(super) fn new(tokens: &'a [u8]) -> Self {
        Self(Cursor::new(tokens))
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Token> {
        let [kind] = self.0.array()?;
        Some(match kind {
            RUN => Token::Mark(Mark::Run([self.0.varint()?, self.0.varint()?])),
            TRIPLE => Token::Mark(Mark::Triple(self.0.varint()?)),
            NAME => Token::Mark(Mark::Name(self.0.varint()?)),
            context => {
                let [symbol] = self.0.array()?;
                let follow = super::codes::follow(symbol);
                let bits = if follow == 0 { 0 } else { self.0.varint()? };
                Token::Symbol { context, symbol, bits, follow }
            }
        })
    }
}

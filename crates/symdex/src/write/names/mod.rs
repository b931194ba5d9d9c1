//! The names of an image as a grammar.

mod grammar;
mod re_pair;
mod tokenizer;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use self::grammar::Grammar;
pub(crate) use self::re_pair::Stop;
use crate::error::Error;
use crate::names::{GROUP_BITS, GROUP_LEN, LEN_BITS, MAX_WIDTH};
use crate::write::bits::{BitWriter, put_varint};

/// The section of `names`.
#[cfg(test)]
pub(crate) fn encode_names<S: AsRef<[u8]>>(names: &[S]) -> Result<Vec<u8>, Error> {
    encode_names_until(names, &|_| false)
}

/// The section of `names`. Fails if `stop` returns true, which is called every few milliseconds.
pub(crate) fn encode_names_until<S: AsRef<[u8]>>(names: &[S], stop: Stop<'_>) -> Result<Vec<u8>, Error> {
    let stopped = AtomicBool::new(false);
    let stop = |taken| {
        stopped.fetch_or(stop(taken), Ordering::Relaxed);
        stopped.load(Ordering::Relaxed)
    };
    let grammar = Grammar::of(names, &stop);
    if stop(0) {
        return Err(io::Error::from(io::ErrorKind::TimedOut).into());
    }
    let width = grammar.width();
    if width > MAX_WIDTH || u32::try_from(grammar.symbols.len()).is_err() {
        return Err(Error::Unwritable { what: "more distinct names than the format allows" });
    }
    let mut out = Vec::new();
    put_varint(&mut out, grammar.rules.len() as u64);
    put_varint(&mut out, grammar.symbols.len() as u64);
    let longest = grammar.terminals.last().map_or(0, |text| text.len());
    out.extend([width.to_le_bytes()[0], longest.to_le_bytes()[0]]);
    for len in 1..=longest {
        let terminals = &grammar.terminals;
        let below = |len| terminals.partition_point(|text| text.len() <= len);
        put_varint(&mut out, (below(len) - below(len - 1)) as u64);
    }
    let mut groups = BitWriter::default();
    let mut first = 0u64;
    for group in grammar.lens.chunks(GROUP_LEN as usize) {
        groups.put(first, GROUP_BITS);
        let lens = group.iter().map(|len| u64::from(*len));
        lens.chain(std::iter::repeat(0)).take(GROUP_LEN as usize).for_each(|len| groups.put(len, LEN_BITS));
        first += group.iter().map(|len| u64::from(*len)).sum::<u64>();
    }
    out.extend(groups.finish());
    out.extend(pack(width, grammar.rules.as_flattened()));
    out.extend(pack(width, &grammar.symbols));
    grammar.terminals.iter().for_each(|text| out.extend_from_slice(text));
    Ok(out)
}

/// `symbols` in `width` bits each.
fn pack(width: u32, symbols: &[u32]) -> Vec<u8> {
    let mut out = BitWriter::default();
    out.extend(symbols.iter().map(|symbol| (u64::from(*symbol), width)));
    out.finish()
}

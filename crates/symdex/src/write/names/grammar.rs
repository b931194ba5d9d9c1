//! Creates the grammar of an image's names. Terminals are texts, rules stand for two symbols each, and each name is a
//! few symbols.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::re_pair::{END, Rules, Stop};
use super::tokenizer;
use crate::names::MAX_TERMINAL;
use crate::write::interner::Interner;

/// The most symbols of a name.
pub(super) const MAX_SYMBOLS: usize = 15;
/// A token or phrase that occurs this often becomes a single symbol. A rarer one is replaced by the symbols of its
/// parts.
const FREQUENT: u32 = 8;
/// A rule saves nothing if no other rule uses it and names use it at most this often.
const RARE: u32 = 2;
/// A rule that occurs this often can become a terminal, so that names are read in fewer steps.
const WRITTEN_OUT: u64 = 16;

/// How many bytes of names are split between two calls of `stop`.
const BYTES_AT_A_TIME: usize = 1 << 16;

/// How many names are split into phrases before the first of these phrases gets its number.
const NAMES_AHEAD: usize = 16;

/// About how many bytes it takes to put a symbol in its place.
const SYMBOL_SIZE: usize = 96;

/// A grammar of names. Each name expands to its original bytes.
#[derive(Default)]
pub(super) struct Grammar<'n> {
    /// The texts of the symbols from 0 on. Shorter texts come first; among texts of one length, the one that a name
    /// uses first. No text is empty.
    pub(super) terminals: Vec<Cow<'n, [u8]>>,
    /// The rules, which are the symbols after the terminals. They are in the order in which names first use them, so
    /// that the rules of a name lie in few pages. The two symbols of a rule are smaller than the rule.
    pub(super) rules: Vec<[u32; 2]>,
    /// The symbols of all names, one name after the other.
    pub(super) symbols: Vec<u32>,
    /// How many symbols each name has, at most [`MAX_SYMBOLS`].
    pub(super) lens: Vec<u8>,
}

impl<'n> Grammar<'n> {
    /// The grammar of `names`. It depends only on the names and their order, unless `stop` returns true.
    pub(super) fn of<S: AsRef<[u8]>>(names: &'n [S], stop: Stop<'_>) -> Self {
        let (terminals, mut rules, mut sequence) = symbols_of(names, stop);
        rules.replace(&mut sequence);
        let taken = rules.size() + 2 * size_of_val(&sequence[..]);
        if stop(taken + SYMBOL_SIZE * (terminals.len() + rules.pairs.len())) {
            return Self::default();
        }
        let mut best = Self::without_rare_rules(&terminals, &mut rules, &sequence, names.len(), RARE);
        // With slightly fewer rules, each symbol may take one bit less.
        for at_most in RARE + 1..=RARE + 2 {
            let len = best.terminals.len() + best.rules.len();
            if len > (1 << (best.width() - 1)) * 17 / 16 {
                break;
            }
            let other = Self::without_rare_rules(&terminals, &mut rules, &sequence, names.len(), at_most);
            if other.bits() < best.bits() {
                best = other;
            }
        }
        best
    }

    /// The bits of a symbol.
    pub(super) fn width(&self) -> u32 {
        (self.terminals.len() + self.rules.len()).saturating_sub(1).max(1).ilog2() + 1
    }

    fn bits(&self) -> u64 {
        (self.symbols.len() + 2 * self.rules.len()) as u64 * u64::from(self.width())
    }

    /// The grammar without rare rules: no other rule uses them, and names use them at most `at_most` times.
    fn without_rare_rules(
        terminals: &[&'n [u8]],
        rules: &mut Rules<'_>,
        sequence: &[u32],
        names: usize,
        at_most: u32,
    ) -> Self {
        let rare = rare_rules(rules, sequence, at_most);
        let (mut symbols, mut lens) = (Vec::with_capacity(sequence.len()), Vec::with_capacity(names));
        let (mut name, mut stack) = (Vec::new(), Vec::<u32>::new());
        for string in sequence.split(|symbol| *symbol == END).take(names) {
            name.clear();
            stack.extend(string.iter().rev());
            while let Some(symbol) = stack.pop() {
                let rule = symbol.checked_sub(rules.first).map(|rule| rule as usize);
                let rare = rule.and_then(|rule| rare.get(rule)) == Some(&true);
                // A name has at most [`MAX_SYMBOLS`] symbols, so a long name keeps its rare rules.
                match rules.parts(symbol).filter(|_| rare && name.len() + stack.len() + 2 <= MAX_SYMBOLS) {
                    Some([left, right]) => stack.extend([right, left]),
                    None => name.push(symbol),
                }
            }
            rules.fold(&mut name, MAX_SYMBOLS);
            symbols.extend_from_slice(&name);
            lens.push(name.len().to_le_bytes()[0]);
        }
        in_order(terminals, rules, symbols, lens)
    }
}

/// Returns the words of `names`, the rules for frequent tokens and phrases, and the names as symbols. An [`END`]
/// follows each name, and another one the last name.
fn symbols_of<'n, 's, S: AsRef<[u8]>>(
    names: &'n [S],
    stop: Stop<'s>,
) -> (Vec<&'n [u8]>, Rules<'s>, Vec<u32>) {
    let (mut phrases, mut tokens, mut words) = (Interner::new(), Interner::new(), Interner::new());
    let (mut in_names, mut in_phrases, mut in_tokens, mut terminals) = (vec![], vec![], vec![], vec![]);
    let mut ahead = Vec::new();
    let mut unchecked = 0;
    for some in names.chunks(NAMES_AHEAD) {
        if unchecked >= BYTES_AT_A_TIME {
            unchecked = 0;
            let sequences: usize =
                [&in_names, &in_phrases, &in_tokens].map(|of| size_of_val(&of[..])).iter().sum();
            let texts = phrases.size() + tokens.size() + words.size() + size_of_val(&terminals[..]);
            if stop(sequences + texts) {
                break;
            }
        }
        for name in some {
            let name = name.as_ref();
            unchecked += name.len();
            tokenizer::phrases(name, |phrase| {
                let text = name.get(phrase.clone()).unwrap_or_default();
                ahead.push(Some((name, phrase, text, phrases.look_ahead(text))));
            });
            ahead.push(None);
        }
        for phrase in ahead.drain(..) {
            let Some((name, phrase, text, ahead)) = phrase else {
                in_names.push(END);
                continue;
            };
            let (number, new) = phrases.number_of(text, ahead);
            in_names.push(number);
            if !new {
                continue;
            }
            tokenizer::tokens(name, phrase, |token, kind| {
                let (number, new) = tokens.number(token);
                in_phrases.push(number);
                if !new {
                    return;
                }
                tokenizer::words(token, kind, |word| {
                    let (number, new) = words.number(word);
                    in_tokens.push(number);
                    if new {
                        terminals.push(word);
                    }
                });
                in_tokens.push(END);
            });
            in_phrases.push(END);
        }
    }
    for sequence in [&mut in_names, &mut in_phrases, &mut in_tokens] {
        sequence.push(END);
    }
    let (phrases_len, tokens_len) = (phrases.len(), tokens.len());
    drop((phrases, tokens, words));
    let mut rules = Rules::new(u32::try_from(terminals.len()).unwrap_or(END - 1), stop);
    let tokens = SymbolStrings::new(in_tokens, uses(&in_phrases, tokens_len), &mut rules);
    let phrases = SymbolStrings::new(tokens.of(&in_phrases), uses(&in_names, phrases_len), &mut rules);
    (terminals, rules, phrases.of(&in_names))
}

/// How often each of the numbers below `len` occurs.
fn uses(sequence: &[u32], len: usize) -> Vec<u32> {
    let mut uses = vec![0u32; len];
    for number in sequence {
        if let Some(uses) = uses.get_mut(*number as usize) {
            *uses = uses.saturating_add(1);
        }
    }
    uses
}

/// Strings of symbols, by number.
struct SymbolStrings {
    symbols: Vec<u32>,
    ends: Vec<usize>,
}

impl SymbolStrings {
    /// The strings of `sequence`. Recurring pairs become rules. A string that is used often becomes a single symbol;
    /// `uses` says how often each string is used.
    fn new(mut sequence: Vec<u32>, uses: Vec<u32>, rules: &mut Rules<'_>) -> Self {
        rules.replace(&mut sequence);
        let mut ends = Vec::with_capacity(uses.len() + 1);
        let mut symbols = Vec::with_capacity(sequence.len());
        for (string, uses) in sequence.split(|symbol| *symbol == END).zip(uses) {
            ends.push(symbols.len());
            if uses >= FREQUENT && string.len() > 1 {
                let mut string = string.to_vec();
                rules.fold(&mut string, 1);
                symbols.extend(string);
            } else {
                symbols.extend_from_slice(string);
            }
        }
        ends.push(symbols.len());
        Self { symbols, ends }
    }

    /// Replaces each number in `sequence` by the symbols of the string with that number. Each [`END`] stays.
    fn of(&self, sequence: &[u32]) -> Vec<u32> {
        let string = |number: u32| {
            let at = number as usize;
            self.symbols.get(*self.ends.get(at)?..*self.ends.get(at + 1)?)
        };
        let mut out = Vec::with_capacity(sequence.len() + sequence.len() / 4);
        for number in sequence {
            match string(*number).unwrap_or(&[END]) {
                // Most strings have one symbol, and copying a slice is fast only for longer ones.
                [symbol] => out.push(*symbol),
                symbols => out.extend_from_slice(symbols),
            }
        }
        out
    }
}

/// For each rule: whether no other rule uses it, and names use it at most `at_most` times.
fn rare_rules(rules: &Rules<'_>, sequence: &[u32], at_most: u32) -> Vec<bool> {
    let len = rules.first as usize + rules.pairs.len();
    let (mut in_names, mut in_rules) = (vec![0u32; len], vec![0u32; len]);
    let add = |counts: &mut Vec<u32>, symbol: u32, n: u32| {
        if let Some(count) = counts.get_mut(symbol as usize) {
            *count = count.wrapping_add(n);
        }
    };
    sequence.iter().for_each(|symbol| add(&mut in_names, *symbol, 1));
    rules.pairs.iter().flatten().for_each(|symbol| add(&mut in_rules, *symbol, 1));
    let mut rare = vec![false; rules.pairs.len()];
    // From the last rule to the first, because only later rules use a rule.
    for (rule, (rare, pair)) in rare.iter_mut().zip(&rules.pairs).enumerate().rev() {
        let at = rules.first as usize + rule;
        let uses = in_names.get(at).copied().unwrap_or_default();
        if uses <= at_most && in_rules.get(at) == Some(&0) {
            *rare = true;
            for symbol in pair {
                add(&mut in_names, *symbol, uses);
                add(&mut in_rules, *symbol, 1u32.wrapping_neg());
            }
        }
    }
    rare
}

/// The grammar with its symbols in the order that [`Grammar`] states, without unused symbols.
fn in_order<'n>(words: &[&'n [u8]], rules: &Rules<'_>, mut symbols: Vec<u32>, lens: Vec<u8>) -> Grammar<'n> {
    let mut texts: Vec<Option<Cow<'n, [u8]>>> = words.iter().map(|word| Some(Cow::Borrowed(*word))).collect();
    texts.resize(words.len() + rules.pairs.len(), None);
    let occurs = occurrences(&symbols, rules, &texts);
    write_out(&mut texts, rules, &occurs);
    let mut order: Vec<(usize, u32, u32)> = Vec::new();
    for (symbol, (text, first_use)) in (0..).zip(texts.iter().zip(first_uses(&symbols, rules, &texts))) {
        // Rules come after all terminals.
        let len = text.as_ref().map_or(usize::MAX, |text| text.len());
        order.extend(first_use.map(|first_use| (len, first_use, symbol)));
    }
    order.sort_unstable();
    let mut renumbered = vec![END; texts.len()];
    for (new, (.., old)) in (0..).zip(&order) {
        if let Some(number) = renumbered.get_mut(*old as usize) {
            *number = new;
        }
    }
    let new = |old: u32| renumbered.get(old as usize).copied().unwrap_or(END);
    symbols.iter_mut().for_each(|symbol| *symbol = new(*symbol));
    let (mut terminals, mut pairs) = (Vec::new(), Vec::new());
    for (.., old) in order {
        match texts.get_mut(old as usize).and_then(Option::take) {
            Some(text) => terminals.push(text),
            None => pairs.extend(rules.parts(old).map(|pair| pair.map(new))),
        }
    }
    Grammar { terminals, rules: pairs, symbols, lens }
}

/// The place of each symbol in the order in which the names, read one after the other, first use them; `None` if they
/// do not use it. The parts of a rule without a text come before the rule.
fn first_uses(symbols: &[u32], rules: &Rules<'_>, texts: &[Option<Cow<'_, [u8]>>]) -> Vec<Option<u32>> {
    let mut places = vec![None; texts.len()];
    let (mut next, mut stack) = (0, Vec::new());
    for symbol in symbols {
        stack.push((*symbol, false));
        while let Some((symbol, has_parts)) = stack.pop() {
            let at = symbol as usize;
            let Some(place @ None) = places.get_mut(at) else { continue };
            match rules.parts(symbol).filter(|_| !has_parts && texts.get(at) == Some(&None)) {
                Some([left, right]) => stack.extend([(symbol, true), (right, false), (left, false)]),
                None => {
                    *place = Some(next);
                    next += 1;
                }
            }
        }
    }
    places
}

/// How often each symbol occurs in the names, occurrences within rules that have no text included.
fn occurrences(symbols: &[u32], rules: &Rules<'_>, texts: &[Option<Cow<'_, [u8]>>]) -> Vec<u64> {
    let mut occurs = vec![0u64; texts.len()];
    let add = |occurs: &mut Vec<u64>, symbol: u32, n: u64| {
        if let Some(count) = occurs.get_mut(symbol as usize) {
            *count += n;
        }
    };
    symbols.iter().for_each(|symbol| add(&mut occurs, *symbol, 1));
    for (rule, pair) in rules.pairs.iter().enumerate().rev() {
        let at = rules.first as usize + rule;
        if let (Some(n), Some(None)) = (occurs.get(at).copied(), texts.get(at)) {
            pair.iter().for_each(|part| add(&mut occurs, *part, n));
        }
    }
    occurs
}

/// Gives a text to the rules that save the most steps of reading names for each byte of text. These rules become
/// terminals.
fn write_out(texts: &mut [Option<Cow<'_, [u8]>>], rules: &Rules<'_>, occurs: &[u64]) {
    // Bytes and terminals that each symbol stands for.
    let mut sizes: Vec<(u64, u64)> = texts.iter().flatten().map(|text| (text.len() as u64, 1)).collect();
    let mut gains = Vec::new();
    for (symbol, pair) in (rules.first..).zip(&rules.pairs) {
        let [left, right] = pair.map(|part| sizes.get(part as usize).copied().unwrap_or_default());
        let (len, terminals) = (left.0 + right.0, left.1 + right.1);
        sizes.push((len, terminals));
        let occurs = occurs.get(symbol as usize).copied().unwrap_or_default();
        if len <= MAX_TERMINAL as u64 && occurs >= WRITTEN_OUT {
            gains.push((Reverse(occurs * (terminals - 1) / len), symbol));
        }
    }
    gains.sort_unstable();
    // How many bytes the texts may take: about 3 % of the size of all names.
    let mut left = occurs.iter().filter(|occurs| **occurs > 0).count() as u64 / 2;
    for (_, symbol) in gains {
        let mut text = Vec::new();
        let mut stack = vec![symbol];
        while let Some(symbol) = stack.pop() {
            match (texts.get(symbol as usize), rules.parts(symbol)) {
                (Some(Some(part)), _) => text.extend_from_slice(part),
                (_, Some([left, right])) => stack.extend([right, left]),
                _ => {}
            }
        }
        let Some(rest) = left.checked_sub(text.len() as u64) else { break };
        left = rest;
        if let Some(slot) = texts.get_mut(symbol as usize) {
            *slot = Some(Cow::Owned(text));
        }
    }
}

//! The pieces of a unit's functions, and which inline instance each address of them belongs to.

use std::cmp::Reverse;
use std::ops::Range;

use symdex::write::Id32;

use super::functions::Functions;
use super::ranges::Piece;
use crate::flatten::{Interval, flatten};
use crate::image::Image;
use crate::symbols::FunctionSymbol;

/// A stretch of code that belongs to one inline instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) node: u32,
    pub(super) piece: Id32,
}

/// The pieces of all functions, and the instance at every address that a function covers, in address order.
pub(super) fn instances(image: &Image<'_>, functions: &Functions<'_>) -> (Vec<Piece>, Vec<Instance>) {
    let (mut pieces, roots) = pieces(image, functions);
    pieces.sort_by_key(|piece| piece.start);
    let (inner, of_function) = inner_stretches(functions, &roots);
    let interval = |piece: &Piece| Interval { start: piece.start, end: piece.end, priority: piece.rank };
    let intervals: Vec<_> = pieces.iter().map(interval).collect();
    let mut instances = Vec::with_capacity(inner.len());
    for stretch in flatten(&intervals) {
        let Some(piece) = Id32::new(stretch.owner as u64) else { continue };
        let inner = &inner[of_function[pieces[stretch.owner].function as usize].clone()];
        let first = inner.partition_point(|instance| instance.end <= stretch.start);
        let clipped = inner[first..].iter().take_while(|instance| instance.start < stretch.end);
        instances.extend(clipped.map(|instance| Instance {
            start: instance.start.max(stretch.start),
            end: instance.end.min(stretch.end),
            node: instance.node,
            piece,
        }));
    }
    (pieces, instances)
}

/// The pieces of all functions, and for each node the function it belongs to.
fn pieces(image: &Image<'_>, functions: &Functions<'_>) -> (Vec<Piece>, Vec<u32>) {
    let mut pieces = Vec::new();
    let mut function_of: Vec<u32> = Vec::with_capacity(functions.nodes.len());
    let (mut next, mut last_symbol) = (0, 0);
    for node in &functions.nodes {
        if let Some(parent) = node.parent {
            function_of.push(function_of[parent.index()]);
            continue;
        }
        function_of.push(next);
        let name = node.name.map(|name| functions.names[name.index()].string.as_ref());
        for &(start, end) in functions.ranges(node) {
            let symbol = image.symbol_at(start, &mut last_symbol).and_then(FunctionSymbol::only_name);
            let named = symbol.is_some() && symbol == name;
            let rank = (start, Reverse(end - start), named, Reverse(functions.places[next as usize]));
            pieces.push(Piece { start, end, function: next, rank, entry: None });
        }
        next += 1;
    }
    (pieces, function_of)
}

/// A stretch of one function's code and the innermost node there.
struct Inner {
    start: u64,
    end: u64,
    node: u32,
}

/// A range of a node.
#[derive(Clone, Copy)]
struct Claim {
    start: u64,
    end: u64,
    node: u32,
    depth: u32,
}

impl Claim {
    /// What decides between claims to one address: of the nodes that cover it the one whose code there starts last, of those the
    /// shortest, then the deepest, then the first. The greater priority wins.
    fn priority(&self) -> (u128, u64) {
        // Of those that start together the shortest ends first.
        let span = u128::from(self.start) << 64 | u128::from(!self.end);
        (span, u64::from(self.depth) << 32 | u64::from(!self.node))
    }
}

/// The stretches of all functions, and which of them are each function's, in address order.
fn inner_stretches(functions: &Functions<'_>, function_of: &[u32]) -> (Vec<Inner>, Vec<Range<usize>>) {
    let mut nodes: Vec<u32> = (0..).take(functions.nodes.len()).collect();
    // A subprogram nested in another stands between the other's nodes.
    nodes.sort_by_key(|node| function_of[*node as usize]);
    let mut inner = Vec::with_capacity(functions.ranges_len());
    let mut of_function = Vec::with_capacity(functions.places.len());
    let (mut claims, mut keys, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for nodes in nodes.chunk_by(|a, b| function_of[*a as usize] == function_of[*b as usize]) {
        let first = inner.len();
        claims.clear();
        for &number in nodes {
            let node = &functions.nodes[number as usize];
            let claim = |&(start, end)| Claim { start, end, node: number, depth: node.depth };
            claims.extend(functions.ranges(node).iter().map(claim));
        }
        sort_claims(&mut claims, &mut keys);
        flatten_claims(&claims, &mut open, &mut inner);
        of_function.push(first..inner.len());
    }
    (inner, of_function)
}

/// Sorts the claims of a function, which come in the order of their nodes, by ascending priority; `keys` is room.
fn sort_claims(claims: &mut Vec<Claim>, keys: &mut Vec<u64>) {
    let is_sorted = |claims: &[Claim]| claims.is_sorted_by_key(Claim::priority);
    if is_sorted(claims) {
        return;
    }
    // Where claims overlap as nodes nest, their starts and the order of nodes decide: one integer, which sorts in half the time.
    let first = claims.iter().map(|claim| claim.start).min().unwrap_or(0);
    let key = |(number, claim): (u32, &Claim)| Some((u32::try_from(claim.start - first).ok()?, number));
    keys.clear();
    let with_keys = (0..u32::MAX).zip(&*claims).map_while(key);
    keys.extend(with_keys.map(|(start, number)| u64::from(start) << 32 | u64::from(number)));
    if keys.len() == claims.len() {
        keys.sort_unstable();
        // The lower half of a key.
        let number = |key: &u64| Id32::new(key & u64::from(u32::MAX)).map_or(0, Id32::index);
        *claims = keys.iter().map(|key| claims[number(key)]).collect();
    }
    if !is_sorted(claims) {
        claims.sort_unstable_by_key(Claim::priority);
    }
}

/// Adds to `inner` who owns which addresses of a function, of claims by ascending priority: each is preferred to all before it, so that
/// those that have begun are a stack, the ends and nodes in `open`, which is empty before and afterwards.
fn flatten_claims(claims: &[Claim], open: &mut Vec<(u64, u32)>, inner: &mut Vec<Inner>) {
    let mut at = 0;
    for claim in claims {
        while let Some(&(last_end, node)) = open.last() {
            let end = last_end.min(claim.start);
            if at < end {
                inner.push(Inner { start: at, end, node });
                at = end;
            }
            if last_end > claim.start {
                break;
            }
            open.pop();
        }
        at = claim.start;
        open.push((claim.end, claim.node));
    }
    while let Some((end, node)) = open.pop() {
        if at < end {
            inner.push(Inner { start: at, end, node });
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_flattened_as_any_intervals_by_their_priority() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        for case in 0..2000 {
            // In some, claims do not fit 32 bits.
            let scale = if case % 4 == 0 { 1 << 30 } else { 1 };
            let count = u32::try_from(random(30)).expect("small");
            let mut claims: Vec<Claim> = (0..count)
                .map(|node| {
                    let (start, size) = (random(40), random(20) + 1);
                    let depth = u32::try_from(random(4)).expect("small");
                    Claim { start: start * scale, end: (start + size) * scale, node, depth }
                })
                .collect();
            let interval = |claim: &Claim| Interval {
                start: claim.start,
                end: claim.end,
                priority: (claim.start, Reverse(claim.end), claim.depth, Reverse(claim.node)),
            };
            let mut intervals: Vec<_> = claims.iter().map(interval).collect();
            intervals.sort_by_key(|interval| interval.priority);
            let expected = flatten(&intervals).into_iter();
            let expected = expected.map(|s| (s.start, s.end, intervals[s.owner].priority.3.0));
            let mut inner = Vec::new();
            sort_claims(&mut claims, &mut Vec::new());
            flatten_claims(&claims, &mut Vec::new(), &mut inner);
            let inner: Vec<_> = inner.iter().map(|inner| (inner.start, inner.end, inner.node)).collect();
            assert_eq!(inner, expected.collect::<Vec<_>>());
        }
    }
}

//! The function_ranges of a unit's functions, and which inline instance each address of them belongs to.

use std::cmp::Reverse;
use std::ops::Range;

use symdex::write::Id32;

use super::functions::Functions;
use crate::flatten::{Interval, flatten};
use crate::image::Image;
use crate::symbols::FunctionSymbol;
use crate::unit_ranges::FunctionRange;

/// A stretch of code that belongs to one inline instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) node: u32,
    pub(super) function_range: Id32,
}

/// The function_ranges of all functions, and the instance at every address that a function covers, in address order.
pub(super) fn instances(image: &Image<'_>, functions: &Functions<'_>) -> (Vec<FunctionRange>, Vec<Instance>) {
    let (mut function_ranges, nodes) = function_ranges(image, functions);
    function_ranges.sort_by_key(|function_range| function_range.start);
    let (inner, of_function) = inner_stretches(functions, &nodes);
    let interval = |function_range: &FunctionRange| Interval {
        start: function_range.start,
        end: function_range.end,
        priority: function_range.rank,
    };
    let intervals: Vec<_> = function_ranges.iter().map(interval).collect();
    let mut instances = Vec::with_capacity(inner.len());
    for stretch in flatten(&intervals) {
        let Some(function_range) = Id32::new(stretch.owner as u64) else { continue };
        let inner = &inner[of_function[function_ranges[stretch.owner].function as usize].clone()];
        let first = inner.partition_point(|instance| instance.end <= stretch.start);
        let count = inner[first..].partition_point(|instance| instance.start < stretch.end);
        instances.extend(inner[first..][..count].iter().map(|instance| Instance {
            start: instance.start.max(stretch.start),
            end: instance.end.min(stretch.end),
            node: instance.node,
            function_range,
        }));
    }
    (function_ranges, instances)
}

/// A node, and before it the function it belongs to.
type OfFunction = (u32, u32);

/// The function_ranges of all functions, and the nodes, function by function.
fn function_ranges(image: &Image<'_>, functions: &Functions<'_>) -> (Vec<FunctionRange>, Vec<OfFunction>) {
    let mut function_ranges = Vec::with_capacity(functions.places.len());
    let mut nodes: Vec<OfFunction> = Vec::with_capacity(functions.nodes.len());
    let (mut next, mut last_symbol) = (0, 0);
    for (number, node) in (0..).zip(&functions.nodes) {
        if let Some(parent) = node.parent {
            nodes.push((nodes[parent.index()].0, number));
            continue;
        }
        nodes.push((next, number));
        let name = node.name.map(|name| functions.names[name.index()].string.as_ref());
        for &(start, end) in functions.ranges(node) {
            let symbol = image.symbol_at(start, &mut last_symbol).and_then(FunctionSymbol::only_name);
            let named = symbol.is_some() && symbol == name;
            let rank = (start, Reverse(end - start), named, Reverse(functions.places[next as usize]));
            function_ranges.push(FunctionRange { start, end, function: next, rank, entry: None });
        }
        next += 1;
    }
    // A subprogram nested in another stands between the other's nodes.
    nodes.sort_unstable();
    (function_ranges, nodes)
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
fn inner_stretches(functions: &Functions<'_>, nodes: &[OfFunction]) -> (Vec<Inner>, Vec<Range<usize>>) {
    let mut inner = Vec::with_capacity(functions.ranges_len());
    let mut of_function = Vec::with_capacity(functions.places.len());
    let (mut claims, mut room) = (Vec::new(), Room::default());
    for nodes in nodes.chunk_by(|a, b| a.0 == b.0) {
        let first = inner.len();
        claims.clear();
        for &(_, number) in nodes {
            let node = &functions.nodes[number as usize];
            for &(start, end) in functions.ranges(node) {
                claims.push(Claim { start, end, node: number, depth: node.depth });
            }
        }
        flatten_claims(&mut claims, &mut room, &mut inner);
        of_function.push(first..inner.len());
    }
    (inner, of_function)
}

/// Room for what the flattening of a function needs.
#[derive(Default)]
struct Room {
    /// The claims' numbers in the order of their priorities, in the lower halves.
    order: Vec<u64>,
    /// The ends and nodes of the claims that have begun.
    open: Vec<(u64, u32)>,
}

/// Adds to `inner` who owns which addresses of a function, of claims in the order of their nodes.
fn flatten_claims(claims: &mut [Claim], room: &mut Room, inner: &mut Vec<Inner>) {
    // Where claims overlap as nodes nest, their starts and the order of nodes decide: one integer, which sorts in half the time.
    let lowest = claims.iter().map(|claim| claim.start).min().unwrap_or(0);
    room.order.clear();
    room.order.extend((0..).zip(&*claims).map(|(number, claim)| (claim.start - lowest) << 32 | number));
    room.order.sort_unstable();
    let first = inner.len();
    if !flatten_in_order(claims, room, inner) {
        inner.truncate(first);
        claims.sort_unstable_by_key(Claim::priority);
        room.order.clear();
        room.order.extend((0..).take(claims.len()));
        flatten_in_order(claims, room, inner);
    }
}

/// The same, in the order that `room` has: where priorities ascend, each claim is preferred to all before it, so that those that have
/// begun are a stack. False, and something wrong added, where they do not ascend.
fn flatten_in_order(claims: &[Claim], room: &mut Room, inner: &mut Vec<Inner>) -> bool {
    let Room { order, open } = room;
    open.clear();
    let mut at = 0;
    let mut last: Option<&Claim> = None;
    for number in &*order {
        // The lower half.
        let claim = &claims[Id32::new(number & u64::from(u32::MAX)).map_or(0, Id32::index)];
        if last.is_some_and(|last| last.start >= claim.start && last.priority() > claim.priority()) {
            return false;
        }
        last = Some(claim);
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
    true
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
            flatten_claims(&mut claims, &mut Room::default(), &mut inner);
            let inner: Vec<_> = inner.iter().map(|inner| (inner.start, inner.end, inner.node)).collect();
            assert_eq!(inner, expected.collect::<Vec<_>>());
        }
    }
}

//! The function ranges of a unit, and the inline instance that each address in them belongs to.

use std::cmp::Reverse;
use std::ops::Range;

use symdex::write::NonMaxU32;

use super::functions::Functions;
use crate::flatten::{Flattener, Interval, Stretch, flatten};
use crate::image::{Image, short};
use crate::unit_ranges::FunctionRange;

/// A stretch of code that belongs to one inline instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) node: u32,
    pub(super) function_range: NonMaxU32,
}

/// The function ranges of all functions, and the inline instances in address order.
pub(super) fn instances(image: &Image<'_>, functions: &Functions<'_>) -> (Vec<FunctionRange>, Vec<Instance>) {
    let (mut function_ranges, nodes) = function_ranges(image, functions);
    function_ranges.sort_by_key(|range| range.start);
    let (inner, of_function) = inner_stretches(functions, &nodes);
    let interval =
        |range: &FunctionRange| Interval { start: range.start, end: range.end, priority: range.rank };
    let mut instances = Vec::with_capacity(inner.len());
    for stretch in flatten(function_ranges.iter().map(interval)) {
        let Some(function_range) = NonMaxU32::new(stretch.owner as u64) else { continue };
        let inner = &inner[of_function[function_ranges[stretch.owner].function as usize].clone()];
        let first = inner.partition_point(|instance| instance.end <= stretch.start);
        let count = inner[first..].partition_point(|instance| instance.start < stretch.end);
        instances.extend(inner[first..][..count].iter().map(|instance| Instance {
            start: short(instance.start.max(stretch.start)),
            end: short(instance.end.min(stretch.end)),
            node: instance.node,
            function_range,
        }));
    }
    (function_ranges, instances)
}

/// Code whose line rows are those of the sequence at `sequence` in `.debug_line`, by the entry of its function.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedSequence {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) sequence: u64,
}

/// The code of the functions that state a line sequence, in address order. Most files state none.
pub(super) fn stated_sequences(
    functions: &Functions<'_>,
    function_ranges: &[FunctionRange],
    instances: &[Instance],
) -> Vec<StatedSequence> {
    let mut stated: Vec<StatedSequence> = Vec::new();
    // Without such functions, the instances are not searched.
    let instances = if functions.line_sequences.is_empty() { &[] } else { instances };
    for &Instance { start, end, function_range, .. } in instances {
        let (start, end) = (u64::from(start), u64::from(end));
        let function = function_ranges[function_range.index()].function;
        let Ok(at) = functions.line_sequences.binary_search_by_key(&function, |stated| stated.0) else {
            continue;
        };
        let sequence = functions.line_sequences[at].1;
        match stated.last_mut() {
            Some(last) if (last.end, last.sequence) == (start, sequence) => last.end = end,
            _ => stated.push(StatedSequence { start, end, sequence }),
        }
    }
    stated
}

/// The number of a function, and the number of one of its nodes.
type OfFunction = (u32, u32);

/// The function ranges of all functions, and the nodes sorted by function.
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
            let symbol = image.symbols.at_from(start, &mut last_symbol).and_then(|symbol| symbol.only_name());
            let named = symbol.is_some() && symbol == name;
            let rank = (start, Reverse(end - start), named, Reverse(functions.places[next as usize]));
            function_ranges.push(FunctionRange { start, end, function: next, rank, entry: None });
        }
        next += 1;
    }
    // The nodes of a nested subprogram lie between the nodes of the subprogram around it.
    nodes.sort_unstable();
    (function_ranges, nodes)
}

/// A stretch of one function's code and the innermost node there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inner {
    start: u64,
    end: u64,
    node: u32,
}

/// A range of a node of one function.
struct Claim {
    start: u64,
    end: u64,
    node: u32,
    depth: u32,
}

impl Claim {
    /// The greatest priority wins: the claim that starts last, then the one that ends first, then the deepest node.
    fn interval(&self) -> Interval<(u64, Reverse<u64>, u32)> {
        let Self { start, end, depth, .. } = *self;
        Interval { start, end, priority: (start, Reverse(end), depth) }
    }
}

/// All stretches in address order, and the stretches of each function.
fn inner_stretches(functions: &Functions<'_>, nodes: &[OfFunction]) -> (Vec<Inner>, Vec<Range<usize>>) {
    let mut inner = Vec::with_capacity(functions.ranges_len());
    let mut of_function = Vec::with_capacity(functions.places.len());
    let (mut claims, mut order, mut stretches) = (Vec::new(), Vec::new(), Vec::new());
    let mut flattener = Flattener::default();
    // Appends the stretches of the ranges of some nodes.
    let mut append = |ranges: &mut dyn Iterator<Item = (u32, &[(u64, u64)])>, inner: &mut Vec<Inner>| {
        claims.clear();
        for (node, ranges) in ranges {
            let depth = functions.nodes[node as usize].depth;
            claims.extend(ranges.iter().map(|&(start, end)| Claim { start, end, node, depth }));
        }
        sort_by_start(&claims, &mut order);
        let claim = |key: u64| &claims[claim_number(key)];
        flattener.flatten(order.iter().map(|key| claim(*key).interval()), &mut stretches);
        inner.extend(stretches.iter().map(|&Stretch { start, end, owner }| {
            let node = claim(order[owner]).node;
            Inner { start, end, node }
        }));
    };
    for nodes in nodes.chunk_by(|a, b| a.0 == b.0) {
        let first = inner.len();
        let ranges = |&(_, node): &OfFunction| (node, functions.ranges(&functions.nodes[node as usize]));
        append(&mut nodes.iter().map(ranges), &mut inner);
        let outside = nodes.iter().map(|&(_, node)| (node, functions.outside(node)));
        let mut outside = outside.filter(|(_, ranges)| !ranges.is_empty()).peekable();
        if outside.peek().is_some() {
            let inside = inner.split_off(first);
            let mut of_outside = Vec::new();
            append(&mut outside, &mut of_outside);
            put_between(&inside, &of_outside, |around, node| is_around(functions, around, node), &mut inner);
        }
        of_function.push(first..inner.len());
    }
    (inner, of_function)
}

/// Appends the stretches of `inside`, with those parts of `outside` whose node is nested in the node there. Both are
/// sorted and disjoint.
fn put_between(
    inside: &[Inner],
    outside: &[Inner],
    is_around: impl Fn(u32, u32) -> bool,
    inner: &mut Vec<Inner>,
) {
    let mut outside = outside.iter().copied().peekable();
    for &Inner { mut start, end, node } in inside {
        while let Some(next) = outside.peek().copied().filter(|next| next.start < end) {
            if start < next.end && is_around(node, next.node) {
                let from = next.start.max(start);
                let before = Inner { start, end: from, node };
                inner.extend(Some(before).filter(|before| before.start < before.end));
                start = next.end.min(end);
                inner.push(Inner { start: from, end: start, node: next.node });
            }
            if next.end > end {
                break;
            }
            outside.next();
        }
        inner.extend(Some(Inner { start, end, node }).filter(|rest| rest.start < rest.end));
    }
}

/// Whether `node` is nested in `around`.
fn is_around(functions: &Functions<'_>, around: u32, node: u32) -> bool {
    let depth = functions.nodes[around as usize].depth;
    let parent = |node: &u32| functions.nodes[*node as usize].parent.map(NonMaxU32::get);
    let mut parents = std::iter::successors(Some(node), parent);
    parents.find(|node| functions.nodes[*node as usize].depth <= depth) == Some(around)
}

/// Sets `order` to keys of the claims, sorted by start and number. In that order priorities ascend where nodes are
/// nested, because nodes come after their parents.
fn sort_by_start(claims: &[Claim], order: &mut Vec<u64>) {
    // Image offsets have 32 bits. Sorting one integer for each claim takes half the time of sorting claims.
    order.clear();
    order.extend((0..).zip(claims).map(|(number, claim)| claim.start << 32 | number));
    order.sort_unstable();
}

/// The number of the claim with a key of [`sort_by_start`].
fn claim_number(key: u64) -> usize {
    let [a, b, c, d, ..] = key.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_outside_are_put_where_a_node_around_theirs_is() {
        let stretch = |(start, end, node)| Inner { start, end, node };
        let inside = [(0, 10, 0), (10, 20, 1), (20, 30, 0), (40, 50, 0)].map(stretch);
        let put = |outside: &[(u64, u64, u32)]| {
            let outside: Vec<_> = outside.iter().copied().map(stretch).collect();
            let mut inner = Vec::new();
            // Node 2 is nested in node 0 alone.
            put_between(&inside, &outside, |around, node| (around, node) == (0, 2), &mut inner);
            inner.iter().map(|inner| (inner.start, inner.end, inner.node)).collect::<Vec<_>>()
        };
        assert_eq!(put(&[]), [(0, 10, 0), (10, 20, 1), (20, 30, 0), (40, 50, 0)]);
        let expected =
            [(0, 5, 0), (5, 10, 2), (10, 20, 1), (20, 25, 2), (25, 28, 0), (28, 30, 2), (40, 50, 0)];
        assert_eq!(put(&[(5, 25, 2), (28, 30, 2), (32, 40, 2)]), expected);
        let expected = [(0, 10, 2), (10, 20, 1), (20, 30, 0), (40, 44, 2), (44, 46, 0), (46, 50, 2)];
        assert_eq!(put(&[(0, 12, 2), (14, 16, 2), (35, 44, 2), (46, 60, 2)]), expected);
        assert_eq!(put(&[(0, 50, 3)]), put(&[]));
    }

    #[test]
    fn an_address_belongs_to_the_claim_that_starts_last_then_ends_first_then_is_deepest_then_first() {
        let mut generator = crate::random::Random(1);
        let mut random = |below: u64| generator.below(below);
        let (mut order, mut stretches, mut flattener) = (Vec::new(), Vec::new(), Flattener::default());
        for case in 0..2000 {
            // Offsets go up to 2^32.
            let scale = if case % 4 == 0 { 1 << 26 } else { 1 };
            let count = u32::try_from(random(30)).expect("small");
            let claims: Vec<Claim> = (0..count)
                .map(|node| {
                    let (start, size) = (random(40), random(20) + 1);
                    let depth = u32::try_from(random(4)).expect("small");
                    Claim { start: start * scale, end: (start + size) * scale, node, depth }
                })
                .collect();
            sort_by_start(&claims, &mut order);
            flattener.flatten(order.iter().map(|key| claims[claim_number(*key)].interval()), &mut stretches);
            for address in (0..64).map(|address| address * scale) {
                let covering = claims.iter().filter(|claim| claim.start <= address && address < claim.end);
                let rank =
                    |claim: &&Claim| (claim.start, Reverse(claim.end), claim.depth, Reverse(claim.node));
                let expected = covering.max_by_key(rank).map(|claim| claim.node);
                let found =
                    stretches.iter().find(|stretch| stretch.start <= address && address < stretch.end);
                let found = found.map(|stretch| claims[claim_number(order[stretch.owner])].node);
                assert_eq!(found, expected, "{address:#x}");
            }
        }
    }
}

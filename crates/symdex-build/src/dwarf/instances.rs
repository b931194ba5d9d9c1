//! The function_ranges of a unit's functions, and which inline instance each address of them belongs to.

use std::cmp::Reverse;
use std::ops::Range;

use symdex::write::Id32;

use super::functions::Functions;
use crate::flatten::{Flattener, Interval, flatten};
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

/// Decides between nodes of one function that cover the same address. The greatest wins: the node whose range there starts last,
/// then the one whose range there ends first, then the deepest.
type NodePriority = (u64, Reverse<u64>, u32);

/// The stretches of all functions in address order, and for each function which of them it has.
fn inner_stretches(functions: &Functions<'_>, nodes: &[OfFunction]) -> (Vec<Inner>, Vec<Range<usize>>) {
    let mut inner = Vec::with_capacity(functions.ranges_len());
    let mut of_function = Vec::with_capacity(functions.places.len());
    let (mut ranges, mut intervals, mut stretches) = (Vec::new(), Vec::new(), Vec::new());
    let mut flattener = Flattener::<NodePriority>::default();
    for nodes in nodes.chunk_by(|a, b| a.0 == b.0) {
        ranges.clear();
        for &(_, number) in nodes {
            let of_node = functions.ranges(&functions.nodes[number as usize]);
            ranges.extend(of_node.iter().map(|(start, end)| (*start, number, *end)));
        }
        // Nodes come after those they are nested in, so that priorities ascend in this order.
        ranges.sort_unstable();
        intervals.clear();
        intervals.extend(ranges.iter().map(|&(start, node, end)| {
            let depth = functions.nodes[node as usize].depth;
            Interval { start, end, priority: (start, Reverse(end), depth) }
        }));
        flattener.flatten(&intervals, &mut stretches);
        let first = inner.len();
        inner.extend(stretches.iter().map(|stretch| {
            let (_, node, _) = ranges[stretch.owner];
            Inner { start: stretch.start, end: stretch.end, node }
        }));
        of_function.push(first..inner.len());
    }
    (inner, of_function)
}

//! How a walk passes over entries, by the first bytes of each.

use super::shape::{EntrySize, Shape, Step, Then};
use super::varying::Varying;

/// How a walk passes over the entries that it does not read.
#[derive(Default)]
pub(crate) struct Passes {
    /// By the first byte of the entry. In most cases it is the abbreviation code. A byte of 0 ends a list of children.
    by_byte: Vec<Pass>,
    /// By codes of two bytes, from 0x80 on. gimli reads entries whose code is below 0x80 but takes two bytes.
    by_long_code: Vec<Pass>,
    /// The size of the longest entry that is skipped by its size alone.
    pub(crate) longest: usize,
}

/// How an entry is passed. A walk spends most of its time on passes, so they are small and need few branches.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Pass {
    /// Whether the size alone does not suffice.
    pub(crate) is_odd: bool,
    /// How many bytes the entry takes: its code, the attributes of fixed size, and the first byte of each other
    /// attribute. 0 if the walk stops.
    pub(crate) size: u8,
    /// How many levels the next entry is above the entry's children: 0 if it is a child, 1 for a sibling, 2 after the
    /// end of a list of children.
    pub(crate) up: u8,
    /// The result of [`Shape::hides`].
    pub(crate) hides: bool,
    /// The position of the first byte of each attribute of variable size, or 0.
    varies: [u8; 2],
    /// Masks for these first bytes. The masked byte is the size of the attribute's rest. The mask of a LEB128 number is
    /// 0.
    counts: [u8; 2],
}

/// The walk stops, or gimli has to read the entry.
const STOP: Pass = Pass { is_odd: true, size: 0, up: 1, hides: false, varies: [0; 2], counts: [0; 2] };

impl Passes {
    pub(super) fn new(shapes: &[Shape], steps: &[Step], stops: impl Fn(&Shape) -> bool) -> Self {
        let mut passes = Self::default();
        passes.by_byte.push(Pass { is_odd: false, size: 1, up: 2, ..STOP });
        // No real table has codes of more than two bytes.
        for (code, shape) in (1..0x4000).zip(shapes) {
            let pass = if stops(shape) { None } else { Pass::new(steps, shape, code) };
            let pass = pass.unwrap_or(STOP);
            passes.longest = passes.longest.max(usize::from(pass.size));
            match code {
                0..0x80 => passes.by_byte.push(pass),
                _ => passes.by_long_code.push(pass),
            }
        }
        passes
    }

    /// How to skip an entry whose first byte is `first`. Returns `None` if that byte is not enough to tell.
    #[inline]
    pub(crate) fn first(&self, first: u8) -> Option<&Pass> {
        // A branch here takes less time than an index that always has a pass: the next position then does not wait for
        // the comparison.
        self.by_byte.get(usize::from(first)).filter(|pass| !pass.is_odd)
    }

    /// How to skip the entry at `at`, and how many bytes it takes, if its first byte is not enough to tell. Returns
    /// `None` if the walk stops or gimli has to read it.
    #[inline]
    pub(crate) fn odd(&self, bytes: &[u8], at: usize) -> Option<(&Pass, usize)> {
        let first = *bytes.get(at)?;
        let mut pass = self.by_byte.get(usize::from(first)).unwrap_or(&STOP);
        if first >= 0x80 {
            let code = usize::from(first & 0x7f) | usize::from(*bytes.get(at + 1)?) << 7;
            pass = self.by_long_code.get(code.checked_sub(0x80)?)?;
            if !pass.is_odd {
                return Some((pass, usize::from(pass.size)));
            }
        }
        let mut size = usize::from(pass.size);
        if size == 0 {
            return None;
        }
        let mut more = 0;
        for (varies, counts) in
            pass.varies.into_iter().zip(pass.counts).take_while(|(varies, _)| *varies != 0)
        {
            let byte = bytes.get(at + usize::from(varies) + more).filter(|byte| **byte < 0x80)?;
            more += usize::from(*byte & counts);
        }
        size += more;
        (at + size <= bytes.len()).then_some((pass, size))
    }
}

impl Pass {
    /// How entries of the shape with this code are passed. Returns `None` if they are uncommon.
    fn new(steps: &[Step], shape: &Shape, code: usize) -> Option<Self> {
        let mut size = 1 + u32::from(code >= 0x80);
        let mut pass = Self { up: u8::from(!shape.has_children), hides: shape.hides(), ..STOP };
        let (attributes, rest) = match shape.entry_size {
            EntrySize::Fixed(bytes) => (&[][..], bytes),
            EntrySize::Steps(first, end) => {
                let (end, attributes) = steps[first as usize..end as usize].split_last()?;
                (attributes, end.skip)
            }
            EntrySize::Unknown => return None,
        };
        if attributes.len() > pass.varies.len() {
            return None;
        }
        for (number, Step { skip, then }) in attributes.iter().enumerate() {
            size = size.saturating_add(*skip);
            pass.varies[number] = u8::try_from(size).ok()?;
            pass.counts[number] = match then {
                Then::Skip(Varying::Leb) => 0,
                // In most cases it is the location of a variable, which takes a few bytes.
                Then::Skip(Varying::Block | Varying::Block1) => u8::MAX,
                _ => return None,
            };
            size = size.saturating_add(1);
        }
        size = size.saturating_add(rest);
        pass.is_odd = !attributes.is_empty();
        pass.size = u8::try_from(size).ok()?;
        Some(pass)
    }
}

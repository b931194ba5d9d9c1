//! How a walk passes entries that nothing is wanted of, by the first bytes of each.

use super::shape::{Layout, Shape, Step, Then};
use super::varying::Varying;

/// How a walk passes entries that nothing is wanted of.
#[derive(Default)]
pub(crate) struct Passes {
    /// By their first byte, which most often is the code of the abbreviation; 0 is the end of children.
    by_byte: Vec<Pass>,
    /// By the codes of two bytes, from 0x80 on. What needs only one byte has no business to have two.
    by_long_code: Vec<Pass>,
    /// The size of the longest entry that is passed by its size alone.
    pub(crate) longest: usize,
}

/// How an entry is passed. Most of a walk is spent with these: they are small, and there is no branch for what most differ in.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Pass {
    /// Whether there is more to know than its size.
    pub(crate) is_odd: bool,
    /// How many bytes the entry takes, its code with it, and of attributes that vary in size the first byte each; 0 where the walk
    /// stops.
    pub(crate) size: u8,
    /// From the depth below it how far up the next entry is: 0 for children, 2 behind the last one.
    pub(crate) up: u8,
    /// Whether it is as [`Shape::hides`] says.
    pub(crate) hides: bool,
    /// Where in those bytes the first ones of the attributes are that vary in size; 0 where there is none.
    varies: [u8; 2],
    /// The bits of each that are the size of what follows: all, or none of a number.
    counts: [u8; 2],
}

/// The walk stops, or something is uncommon.
const STOP: Pass = Pass { is_odd: true, size: 0, up: 1, hides: false, varies: [0; 2], counts: [0; 2] };

impl Passes {
    pub(super) fn new(shapes: &[Shape], steps: &[Step], stops: impl Fn(&Shape) -> bool) -> Self {
        let mut passes = Self::default();
        passes.by_byte.push(Pass { is_odd: false, size: 1, up: 2, ..STOP });
        // Nobody has codes of more than two bytes.
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

    /// How an entry is passed that begins with `first`.
    #[inline]
    pub(crate) fn first(&self, first: u8) -> &Pass {
        self.by_byte.get(usize::from(first)).unwrap_or(&STOP)
    }

    /// How the entry at `at` is passed, and how many bytes it takes, if its first byte does not say. `None` where the walk stops,
    /// or something is uncommon.
    #[inline]
    pub(crate) fn odd(&self, bytes: &[u8], at: usize) -> Option<(&Pass, usize)> {
        let first = *bytes.get(at)?;
        let mut pass = self.first(first);
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
    /// How entries of the shape that has this code are passed, if nothing about them is uncommon.
    fn new(steps: &[Step], shape: &Shape, code: usize) -> Option<Self> {
        let mut size = 1 + u32::from(code >= 0x80);
        let mut pass = Self { up: u8::from(!shape.has_children), hides: shape.hides(), ..STOP };
        let (attributes, behind) = match shape.layout {
            Layout::Fixed(bytes) => (&[][..], bytes),
            Layout::Steps(first, end) => {
                let (end, attributes) = steps[first as usize..end as usize].split_last()?;
                (attributes, end.skip)
            }
            Layout::Unknown => return None,
        };
        if attributes.len() > pass.varies.len() {
            return None;
        }
        for (number, Step { skip, then }) in attributes.iter().enumerate() {
            size = size.saturating_add(*skip);
            pass.varies[number] = u8::try_from(size).ok()?;
            pass.counts[number] = match then {
                Then::Skip(Varying::Leb) => 0,
                // Most often it is where a variable lies, in a few bytes.
                Then::Skip(Varying::Block | Varying::Block1) => u8::MAX,
                _ => return None,
            };
            size = size.saturating_add(1);
        }
        size = size.saturating_add(behind);
        pass.is_odd = !attributes.is_empty();
        pass.size = u8::try_from(size).ok()?;
        Some(pass)
    }
}

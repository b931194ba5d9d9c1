//! How a walk passes entries that nothing is wanted of, by the first bytes of each.

use super::{Layout, Shape, Shapes, Step, Then, Varying};

/// How a walk passes entries that nothing is wanted of.
#[derive(Default)]
pub(crate) struct Passes {
    /// By the codes of abbreviations, of which 0 is the end of children.
    by_code: Vec<Pass>,
    /// The size of the longest entry that is passed by its size alone.
    pub(crate) longest: usize,
}

/// How an entry is passed. Most of a walk is spent with these: they are small, and there is no branch for what sets one apart.
#[derive(Clone, Copy, Default)]
#[repr(align(8))]
pub(crate) struct Pass {
    /// How many bytes the entry takes, its code with it; 0 where there is more to know.
    pub(crate) size: u8,
    /// From the depth below it how far up the next entry is: 0 for children, 2 behind the last one.
    pub(crate) up: u8,
    /// Whether it is as [`Shape::hides`] says.
    pub(crate) hides: bool,
    stops: bool,
    /// Where one block is all in the entry that has no fixed size, the bytes before and behind it; else 0.
    before_block: u8,
    behind_block: u8,
}

impl Passes {
    pub(super) fn new(shapes: &Shapes, stops: impl Fn(&Shape) -> bool) -> Self {
        let end = Pass { size: 1, up: 2, ..Pass::default() };
        let pass = |(code, shape): (usize, &Shape)| {
            let (up, hides, stops) = (u8::from(!shape.has_children), shape.hides(), stops(shape));
            let pass = Pass { up, hides, stops, ..Pass::default() };
            let with_code = |size: u32| u8::try_from(size.saturating_add(1 + u32::from(code >= 0x80)));
            match shape.layout {
                Layout::Fixed(size) if !stops => Pass { size: with_code(size).unwrap_or(0), ..pass },
                Layout::Steps(first, end) => match shapes.steps[first as usize..end as usize] {
                    [Step { skip: before, then: Then::Skip(Varying::Block | Varying::Block1) }, behind] => {
                        match (with_code(before), u8::try_from(behind.skip), behind.then) {
                            (Ok(before_block), Ok(behind_block), Then::End) => {
                                Pass { before_block, behind_block, ..pass }
                            }
                            _ => pass,
                        }
                    }
                    _ => pass,
                },
                _ => pass,
            }
        };
        let by_code: Vec<_> = std::iter::once(end).chain((1..).zip(&shapes.all).map(pass)).collect();
        let longest = by_code.iter().map(|pass| usize::from(pass.size)).max().unwrap_or_default();
        Self { by_code, longest }
    }

    /// The same by the first byte, which most often is the whole code.
    pub(crate) fn by_byte(&self) -> &[Pass] {
        &self.by_code[..self.by_code.len().min(0x80)]
    }
}

impl Shapes {
    /// How the entry at `at` is passed, and where the next one is, if the entry's first byte does not say. `None` where the walk
    /// stops, or something is uncommon.
    #[inline]
    pub(crate) fn pass(&self, passes: &Passes, bytes: &[u8], at: usize) -> Option<(Pass, usize)> {
        let (mut code, mut attributes) = (usize::from(*bytes.get(at)?), at + 1);
        if code >= 0x80 {
            let high = usize::from(*bytes.get(at + 1)?);
            // Nobody writes a code with more bytes than it takes, or has that many.
            if high == 0 || high >= 0x80 {
                return None;
            }
            (code, attributes) = (code & 0x7f | high << 7, at + 2);
        }
        let pass = passes.by_code.get(code).filter(|pass| !pass.stops)?;
        if pass.size != 0 {
            return Some((*pass, at + usize::from(pass.size)));
        }
        // Most often it is where a variable lies, in a few bytes.
        let block = at + usize::from(pass.before_block);
        if let Some(size @ 0..0x80) = bytes.get(block).copied().filter(|_| pass.before_block != 0) {
            let behind = block + 1 + usize::from(size) + usize::from(pass.behind_block);
            return Some((*pass, behind)).filter(|_| behind <= bytes.len());
        }
        Some((*pass, self.behind(self.get(code as u64)?, bytes, attributes)?))
    }
}

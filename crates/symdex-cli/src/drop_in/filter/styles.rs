//! The colors of the output of `--filter-markup`: those of the text, and those that stand out in it.

use std::io::{self, Write};

use super::markup::StyleChange;

const BLUE: u8 = 4;
const CYAN: u8 = 6;
const GREEN: u8 = 2;

/// Writes text, and control sequences for a terminal if it is colored.
pub(super) struct Styles<W> {
    out: W,
    is_colored: bool,
    /// What the control sequences of the text have set.
    color: Option<u8>,
    is_bold: bool,
}

impl<W: Write> Styles<W> {
    pub(super) fn new(out: W, is_colored: bool) -> Self {
        Self { out, is_colored, color: None, is_bold: false }
    }

    /// Sets the style as the text does.
    pub(super) fn change(&mut self, change: StyleChange) -> io::Result<()> {
        match change {
            StyleChange::Reset => self.reset(),
            StyleChange::Bold => {
                self.is_bold = true;
                self.sequence("1")
            }
            StyleChange::Color(color) => {
                self.color = Some(color);
                self.sequence(&format!("0;3{color}"))
            }
        }
    }

    /// Resets the style of the text.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        if self.color.take().is_none() & !std::mem::take(&mut self.is_bold) {
            return Ok(());
        }
        self.sequence("0")
    }

    /// Begins a part that stands out.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.color(if self.color == Some(BLUE) { CYAN } else { BLUE })
    }

    /// Ends a part that stands out.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if let Some(color) = self.color {
            return self.color(color);
        }
        self.sequence("0")?;
        if self.is_bold { self.sequence("1") } else { Ok(()) }
    }

    /// Writes a value within a part that stands out.
    pub(super) fn value(&mut self, value: impl AsRef<[u8]>) -> io::Result<()> {
        self.color(GREEN)?;
        self.text(value)?;
        self.begin()
    }

    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) -> io::Result<()> {
        self.out.write_all(text.as_ref())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn color(&mut self, color: u8) -> io::Result<()> {
        let bold = if self.is_bold { "1;" } else { "" };
        self.sequence(&format!("0;{bold}3{color}"))
    }

    fn sequence(&mut self, numbers: &str) -> io::Result<()> {
        if self.is_colored { write!(self.out, "\x1b[{numbers}m") } else { Ok(()) }
    }
}

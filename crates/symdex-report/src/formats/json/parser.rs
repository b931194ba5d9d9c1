//! Finds the values of a document and checks its brackets, quotes and separators.

use super::{CONTAINER, scalar_end, string_end};
use crate::error::Error;
use crate::formats::steps::count;
use crate::report::to_u32;

/// Finds the nodes of a document.
pub(super) struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<u32>,
    /// The nodes of open objects and arrays.
    open: Vec<u32>,
    /// The end of the last value that is whole, or of the last bracket that opened one.
    whole: usize,
}

/// The deepest nesting of objects and arrays that is read. A call tree has two levels for each call.
pub(super) const MAX_DEPTH: usize = 100_000;

impl<'t> Parser<'t> {
    /// The nodes of the document at `start`, and its end in the text.
    pub(super) fn parse(text: &'t [u8], start: usize) -> Result<(Vec<u32>, usize), Error> {
        let mut parser = Self::new(text, start);
        parser.run()?;
        Ok((parser.nodes, parser.at))
    }

    fn new(text: &'t [u8], start: usize) -> Self {
        Self { text, at: start, nodes: Vec::new(), open: Vec::new(), whole: start }
    }

    /// How much of the document at `start` is whole, if it is cut: an end in the text, and the brackets that close what
    /// is open there. An object that is cut and has only numbers and words so far, such as a frame, is left out. `None`
    /// if nothing is whole.
    pub(super) fn repair(text: &'t [u8], start: usize) -> Option<(usize, Vec<u8>)> {
        let mut parser = Self::new(text, start);
        parser.run().err()?;
        let last = *parser.open.last()?;
        let values = parser.nodes.get(last as usize + CONTAINER..).unwrap_or_default();
        let has_list = values.iter().any(|node| matches!(text.get(*node as usize), Some(b'{' | b'[')));
        if parser.is_object(last) && !has_list {
            parser.open.pop();
            parser.whole = parser.nodes[last as usize] as usize;
        }
        let whole = text[start..parser.whole].trim_ascii_end();
        let whole = whole.strip_suffix(b",").unwrap_or(whole);
        let closing: Vec<u8> = parser.open.iter().rev().map(|node| parser.closing(*node)).collect();
        (!closing.is_empty()).then_some((start + whole.len(), closing))
    }

    fn run(&mut self) -> Result<(), Error> {
        loop {
            count(1);
            // A value follows: after an opening bracket, a comma, a colon, or at the start.
            self.skip_space();
            let node = to_u32(self.nodes.len());
            let start = to_u32(self.at);
            match self.peek() {
                Some(b'{' | b'[') => {
                    if self.open.len() == MAX_DEPTH {
                        return Err(self.malformed("objects and arrays nested too deep"));
                    }
                    // The positions of nodes have 32 bits. Reports near 4 GiB with few other bytes can have more.
                    if self.nodes.len() > (u32::MAX as usize) - CONTAINER {
                        return Err(self.malformed("too many values"));
                    }
                    self.at += 1;
                    self.grow();
                    self.nodes.extend([start, start, node]);
                    self.open.push(node);
                    self.whole = self.at;
                    self.skip_space();
                    if self.peek() != Some(self.closing(node)) {
                        if self.is_object(node) {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'0'..=b'9' | b'-' | b'a'..=b'z' | b'A'..=b'Z') => self.scalar(),
                _ => return Err(self.malformed("expected a JSON value")),
            }
            // A number at the end of the text can be cut.
            if self.at < self.text.len() {
                self.whole = self.at;
            }
            // A value ended, or an empty object or array must be closed.
            if !self.close()? {
                return Ok(());
            }
        }
    }

    /// Closes the objects and arrays that end here. Returns whether another value follows.
    fn close(&mut self) -> Result<bool, Error> {
        loop {
            let Some(open) = self.open.last().copied() else { return Ok(false) };
            self.skip_space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if self.is_object(open) {
                        self.skip_space();
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(byte) if byte == self.closing(open) => {
                    self.at += 1;
                    let (end, next) = (to_u32(self.at), to_u32(self.nodes.len()));
                    self.nodes[open as usize + 1] = end;
                    self.nodes[open as usize + 2] = next;
                    self.open.pop();
                    self.whole = self.at;
                }
                _ => return Err(self.malformed("expected a comma or the end of an object or array")),
            }
        }
    }

    fn is_object(&self, node: u32) -> bool {
        self.text.get(self.nodes[node as usize] as usize) == Some(&b'{')
    }

    fn closing(&self, node: u32) -> u8 {
        if self.is_object(node) { b'}' } else { b']' }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn key(&mut self) -> Result<(), Error> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed("expected a key in quotes"));
        }
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.malformed("expected a colon"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Error> {
        let end = string_end(self.text, self.at).ok_or_else(|| self.malformed("a string without an end"))?;
        self.leaf(end);
        Ok(())
    }

    /// Skips a number or a word.
    fn scalar(&mut self) {
        self.leaf(scalar_end(self.text, self.at));
    }

    /// Adds the value from here to `end`, and moves there.
    fn leaf(&mut self, end: usize) {
        self.grow();
        self.nodes.push(to_u32(self.at));
        self.at = end;
    }

    /// Makes room for another value. A list that doubles could have twice the memory that it needs.
    fn grow(&mut self) {
        let len = self.nodes.len();
        if self.nodes.capacity() - len < CONTAINER {
            // Most objects of frames fit the first list.
            self.nodes.reserve_exact(8 * CONTAINER + len / 4);
        }
    }

    fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { what, at: self.at }
    }
}

//! Counts of the work that an archive takes, checked against its limits.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

use crate::fault::FaultKind;
use crate::limits::Limits;

/// What an archive and the archives in it have taken so far.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) limits: Limits,
    entries: Cell<u64>,
    unpacked: Cell<u64>,
    /// The limit that was exceeded. Readers of other crates turn errors into text, so it is kept here.
    exceeded: RefCell<Option<FaultKind>>,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Rc<Self> {
        let (entries, unpacked) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { limits, entries, unpacked, exceeded: RefCell::default() })
    }

    /// Counts an entry.
    pub(crate) fn entry(&self) -> Result<(), FaultKind> {
        self.entries.set(self.entries.get() + 1);
        let limit = self.limits.entries;
        if self.entries.get() > limit { Err(FaultKind::Entries { limit }) } else { Ok(()) }
    }

    /// Whether the whole archive has exceeded a limit, so that no other entry is read.
    pub(crate) fn is_over(&self) -> bool {
        self.entries.get() > self.limits.entries || self.unpacked.get() > self.limits.unpacked
    }

    fn unpacked(&self, bytes: usize) -> Result<(), FaultKind> {
        self.unpacked.set(self.unpacked.get().saturating_add(bytes as u64));
        let limit = self.limits.unpacked;
        if self.unpacked.get() > limit { Err(FaultKind::Unpacked { limit }) } else { Ok(()) }
    }

    /// The fault behind an error of a reader: the limit that was exceeded, or what the error says.
    pub(crate) fn fault(&self, error: &io::Error) -> FaultKind {
        self.exceeded.borrow_mut().take().unwrap_or_else(|| match error.kind() {
            io::ErrorKind::UnexpectedEof => FaultKind::Damaged(format!("it is cut short: {error}")),
            _ => FaultKind::Damaged(error.to_string()),
        })
    }

    fn fail(&self, fault: FaultKind) -> io::Error {
        let error = io::Error::other(fault.to_string());
        *self.exceeded.borrow_mut() = Some(fault);
        error
    }
}

/// Counts the compressed bytes that a decoder has taken.
pub(crate) struct Compressed<R> {
    pub(crate) reader: R,
    pub(crate) taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

/// Unpacked bytes, which end with an error when a limit is exceeded.
pub(crate) struct Metered<R> {
    reader: R,
    meter: Rc<Meter>,
    /// The compressed bytes taken so far, or the compressed size; `None` if the data is not compressed.
    compressed: Option<Rc<Cell<u64>>>,
    produced: u64,
    /// How many bytes the entry has, as the archive states it.
    stated: Option<u64>,
    /// How many bytes may be read before it is set again; see [`crate::tar`].
    allowance: Rc<Cell<u64>>,
}

impl<R: Read> Metered<R> {
    pub(crate) fn new(reader: R, meter: &Rc<Meter>, compressed: Option<Rc<Cell<u64>>>) -> Self {
        let allowance = Rc::new(Cell::new(u64::MAX));
        Self { reader, meter: Rc::clone(meter), compressed, produced: 0, stated: None, allowance }
    }

    pub(crate) fn stated(self, size: u64) -> Self {
        Self { stated: Some(size), ..self }
    }

    pub(crate) fn allowance(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.allowance)
    }

    fn check(&mut self, read: usize) -> Result<(), FaultKind> {
        self.produced += read as u64;
        self.meter.unpacked(read)?;
        if let Some(stated) = self.stated.filter(|stated| self.produced > *stated) {
            return Err(FaultKind::LyingSize { stated });
        }
        let limits = &self.meter.limits;
        let most = self.compressed.as_ref().map_or(u64::MAX, |taken| limits.expanded(taken.get()));
        if self.produced > most {
            return Err(FaultKind::Ratio { limit: limits.ratio });
        }
        let left = self.allowance.get().checked_sub(read as u64);
        let left = left.ok_or_else(|| FaultKind::Damaged("headers of more than a megabyte".to_owned()))?;
        if self.allowance.get() != u64::MAX {
            self.allowance.set(left);
        }
        Ok(())
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.check(read).map_err(|fault| self.meter.fail(fault))?;
        Ok(read)
    }
}

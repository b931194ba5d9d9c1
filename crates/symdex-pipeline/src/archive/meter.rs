//! Counts of the work that an archive takes, checked against its limits.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

use crate::archive::fault::FaultKind;
use crate::archive::limits::Limits;

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

    /// The cause of an error of a reader: the limit that was exceeded, or what the error says.
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

/// Called with the number of bytes of each read. An error ends the reads.
pub(crate) type OnRead<'r> = &'r dyn Fn(u64) -> io::Result<()>;

/// Counts the bytes that a decoder has taken from the archive.
pub(crate) struct Compressed<'r, R> {
    reader: R,
    taken: Rc<Cell<u64>>,
    on_read: OnRead<'r>,
}

impl<'r, R> Compressed<'r, R> {
    /// Returns the count of all bytes, too.
    pub(crate) fn new(reader: R, on_read: OnRead<'r>) -> (Self, Rc<Cell<u64>>) {
        let taken = Rc::default();
        (Self { reader, taken: Rc::clone(&taken), on_read }, taken)
    }
}

impl<R: Read> Read for Compressed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        (self.on_read)(read as u64)?;
        Ok(read)
    }
}

/// Unpacked bytes, which end with an error when a limit is exceeded.
pub(crate) struct Metered<R> {
    /// The first bytes, as far as they were looked at before they are read.
    peeked: io::Cursor<Vec<u8>>,
    reader: R,
    meter: Rc<Meter>,
    /// The compressed bytes taken so far, or the compressed size.
    compressed: Rc<Cell<u64>>,
    produced: u64,
    /// How many bytes of holes were filled in. They are not part of the stream, and do not end it.
    holes: u64,
    /// How many bytes the entry has, as the archive states it.
    stated: Option<u64>,
}

impl<R: Read> Metered<R> {
    pub(crate) fn new(reader: R, meter: &Rc<Meter>, compressed: Rc<Cell<u64>>) -> Self {
        let (peeked, meter) = (io::Cursor::default(), Rc::clone(meter));
        Self { peeked, reader, meter, compressed, produced: 0, holes: 0, stated: None }
    }

    pub(crate) fn stated(self, size: u64) -> Self {
        Self { stated: Some(size), ..self }
    }

    /// Looks at the first `len` bytes. What could be read before an error is in [`Self::peeked`], too.
    pub(crate) fn peek(&mut self, len: usize) -> io::Result<()> {
        let mut head = Vec::with_capacity(len);
        let read = self.take(len as u64).read_to_end(&mut head);
        self.peeked = io::Cursor::new(head);
        read.map(drop)
    }

    pub(crate) fn peeked(&self) -> &[u8] {
        self.peeked.get_ref()
    }

    /// Counts bytes that an entry has and the archive does not. If they exceed the ratio, they are not counted, and the
    /// stream can be read on.
    pub(crate) fn hole(&mut self, len: usize) -> io::Result<()> {
        self.check_holes(len as u64, 0)?;
        self.holes += len as u64;
        self.meter.unpacked(len).map_err(|fault| self.meter.fail(fault))
    }

    /// Checks whether the next `stored` bytes of the stream, with holes of `holes` bytes, keep the ratio if they are
    /// not compressed.
    pub(crate) fn check_holes(&self, holes: u64, stored: u64) -> io::Result<()> {
        let limits = &self.meter.limits;
        let unpacked = [self.holes, holes, stored].into_iter().fold(self.produced, u64::saturating_add);
        if unpacked > limits.expanded(self.compressed.get().saturating_add(stored)) {
            return Err(self.meter.fail(FaultKind::Holes { limit: limits.ratio }));
        }
        Ok(())
    }

    fn check(&mut self, read: usize) -> Result<(), FaultKind> {
        self.produced += read as u64;
        self.meter.unpacked(read)?;
        if let Some(stated) = self.stated.filter(|stated| self.produced > *stated) {
            return Err(FaultKind::LyingSize { stated });
        }
        let limits = &self.meter.limits;
        if self.produced > limits.expanded(self.compressed.get()) {
            return Err(FaultKind::Ratio { limit: limits.ratio });
        }
        Ok(())
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.peeked.read(buffer)? {
            0 => {}
            read => return Ok(read),
        }
        let read = self.reader.read(buffer)?;
        self.check(read).map_err(|fault| self.meter.fail(fault))?;
        Ok(read)
    }
}

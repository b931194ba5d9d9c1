//! The open indexes, by number.

use symdex::{Index, Metadata};
use symdex_report::KnownImage;

use crate::failure::Failure;
use crate::sent_strings::SentNumbers;

/// An open index.
pub(crate) struct OpenIndex {
    pub(crate) index: Index<Vec<u8>>,
    /// Its name in messages and in reports.
    pub(crate) name: String,
    /// Which of its strings JavaScript has.
    pub(crate) sent: SentNumbers,
}

impl OpenIndex {
    /// The image of the index.
    pub(crate) fn known(&self) -> KnownImage {
        let Metadata { image_name, id, arch, .. } = self.index.metadata();
        KnownImage { name: image_name.clone(), id: id.clone(), arch: arch.name.clone() }
    }
}

/// All open indexes. Numbers of closed ones are used again.
#[derive(Default)]
pub(crate) struct Indexes {
    open: Vec<Option<OpenIndex>>,
}

impl Indexes {
    /// Opens the index in `bytes`, and returns its number.
    ///
    /// # Errors
    ///
    /// [`Failure`] as [`Index::open`] has it.
    pub(crate) fn open(&mut self, bytes: Vec<u8>) -> Result<u32, Failure> {
        let index = Index::open(bytes).map_err(|error| Failure::from(&error))?;
        let name = format!("{}.symdex", index.id());
        let free = self.open.iter().position(Option::is_none).unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        if let Some(place) = self.open.get_mut(free) {
            *place = Some(OpenIndex { index, name, sent: SentNumbers::default() });
        }
        // A process has memory for far fewer indexes than a number of 32 bits has values.
        Ok(u32::try_from(free).unwrap_or(u32::MAX))
    }

    pub(crate) fn get(&self, number: u32) -> Option<&OpenIndex> {
        self.open.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// Sets the name that messages and reports have for an index.
    pub(crate) fn rename(&mut self, number: u32, name: String) {
        if let Some(open) = self.get_mut(number) {
            open.name = name;
        }
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut OpenIndex> {
        self.open.get_mut(usize::try_from(number).ok()?)?.as_mut()
    }

    pub(crate) fn close(&mut self, number: u32) {
        if let Some(place) = usize::try_from(number).ok().and_then(|number| self.open.get_mut(number)) {
            *place = None;
        }
    }
}

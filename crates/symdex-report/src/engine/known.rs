//! Answers of indexes, kept from one report to the next: most reports have the same functions, and a name costs more to
//! demangle than all else of its frame.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use symdex::{ImageOffset, LinePolicy};

use crate::engine::function::{Function, RawTexts, Texts};

/// How many bytes of names and paths are kept at most.
const TEXT_BYTES: usize = 4 << 20;
/// How many bytes of answers, without their texts, are kept at most.
const ANSWER_BYTES: usize = 4 << 20;
/// What an entry takes besides its bytes: its part of a table, and the counts of an [`Arc`].
const ENTRY: usize = 64;
/// One entry takes at most one part in this many of the bytes.
const SHARE: usize = 64;
/// A full table is cleared once it has rejected this many times its entries.
const MAX_REFUSED: usize = 2;

/// Answers that all threads share, with the texts of their functions.
#[derive(Default)]
pub(crate) struct KnownAnswers {
    hashes: RandomState,
    tables: RwLock<Tables>,
}

#[derive(Default)]
struct Tables {
    /// Texts by the hash of their bytes.
    texts: HashMap<u64, Texts>,
    text_space: Space,
    answers: HashMap<AnswersOf, HashMap<ImageOffset, KnownAnswer>>,
    answer_space: Space,
    /// How often the texts were emptied. Answers go with them, so that texts that are not counted are not kept.
    emptied: u64,
}

/// The functions at an offset, innermost first. `None` if there is no function.
pub(crate) type KnownAnswer = Option<Arc<[Function]>>;

/// What the answers of a table belong to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AnswersOf {
    /// [`Index::serial`](symdex::Index::serial).
    serial: u64,
    /// How many bytes after the start of the image the starts of functions count from.
    distance: u64,
    is_exact: bool,
}

impl AnswersOf {
    pub(crate) fn new(serial: u64, distance: u64, lines: LinePolicy) -> Self {
        Self { serial, distance, is_exact: lines == LinePolicy::Exact }
    }
}

/// Answers that were found just now, to be kept.
pub(crate) struct NewAnswers {
    answers: Vec<(ImageOffset, KnownAnswer)>,
    /// [`Tables::emptied`] before they were found.
    emptied: u64,
}

/// How many bytes a table has.
#[derive(Default)]
struct Space {
    size: usize,
    entries: usize,
    /// How many entries the full table has refused.
    refused: usize,
}

/// Whether a table has room for an entry.
enum Room {
    Yes,
    No,
    /// It has if it is emptied first.
    IfEmptied,
}

impl Space {
    fn room(&mut self, size: usize, capacity: usize) -> Room {
        if size > capacity / SHARE {
            return Room::No;
        }
        if self.size + size <= capacity {
            return Room::Yes;
        }
        self.refused += 1;
        if self.refused > MAX_REFUSED * self.entries { Room::IfEmptied } else { Room::No }
    }

    fn take(&mut self, size: usize) {
        self.size += size;
        self.entries += 1;
    }
}

impl KnownAnswers {
    /// Those of this process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<KnownAnswers> = LazyLock::new(KnownAnswers::default);
        &SHARED
    }

    /// The texts of `raw`, and whether they are kept.
    pub(crate) fn texts(&self, raw: RawTexts<'_>) -> (Texts, bool) {
        let hash = self.hashes.hash_one(raw);
        if let Some(known) = self.read().texts.get(&hash).filter(|known| known.are_of(raw)) {
            return (known.clone(), true);
        }
        let texts = Texts::new(raw);
        let is_kept = texts.are_of(raw) && self.write().keep_texts(hash, &texts);
        (texts, is_kept)
    }

    /// Calls `each` with the position of each of `offsets` that has a known answer, and with the answer. The result
    /// takes the answers of the others, once they are found.
    pub(crate) fn find(
        &self,
        of: AnswersOf,
        offsets: &[ImageOffset],
        mut each: impl FnMut(usize, &KnownAnswer),
    ) -> NewAnswers {
        let tables = self.read();
        if let Some(known) = tables.answers.get(&of) {
            let answers = offsets.iter().enumerate();
            let answers = answers.filter_map(|(position, offset)| Some((position, known.get(offset)?)));
            answers.for_each(|(position, answer)| each(position, answer));
        }
        NewAnswers { answers: Vec::new(), emptied: tables.emptied }
    }

    /// Keeps `new`, as far as there is room.
    pub(crate) fn keep(&self, of: AnswersOf, new: NewAnswers) {
        if new.answers.is_empty() {
            return;
        }
        let mut tables = self.write();
        if tables.emptied == new.emptied {
            new.answers.into_iter().for_each(|(offset, answer)| tables.keep_answer(of, offset, answer));
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NewAnswers {
    /// Adds the answer at `offset`. All texts of its functions are kept.
    pub(crate) fn push(&mut self, offset: ImageOffset, answer: KnownAnswer) {
        self.answers.push((offset, answer));
    }
}

impl Tables {
    /// Keeps `texts`. Returns whether there is room.
    fn keep_texts(&mut self, hash: u64, texts: &Texts) -> bool {
        let size = texts.len() + ENTRY + size_of::<Texts>();
        match self.text_space.room(size, TEXT_BYTES) {
            Room::No => return false,
            Room::Yes => {}
            Room::IfEmptied => *self = Self { emptied: self.emptied + 1, ..Self::default() },
        }
        // Another thread may have added them meanwhile. Other texts of the same hash stay.
        let known = self.texts.entry(hash).or_insert_with(|| {
            self.text_space.take(size);
            texts.clone()
        });
        known == texts
    }

    fn keep_answer(&mut self, of: AnswersOf, offset: ImageOffset, answer: KnownAnswer) {
        let size = ENTRY + answer.as_deref().map_or(0, size_of_val);
        match self.answer_space.room(size, ANSWER_BYTES) {
            Room::No => return,
            Room::Yes => {}
            Room::IfEmptied => (self.answers, self.answer_space) = Default::default(),
        }
        if self.answers.entry(of).or_default().insert(offset, answer).is_none() {
            self.answer_space.take(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use symdex::Table;

    use super::*;

    fn raw(name: &str) -> RawTexts<'_> {
        RawTexts { name: Some(name.as_bytes()), readable: None, file: Some(b"/a.cc") }
    }

    #[test]
    fn names_are_those_of_the_demangler_however_often_the_table_is_emptied() {
        let known = KnownAnswers::default();
        let size = |known: &KnownAnswers| known.read().text_space.size;
        let mut is_any_refused = false;
        for number in (0..4000).chain(0..20_000) {
            let text = format!("function{number:0500}");
            let mangled = format!("_ZN3app{}{text}Ev", text.len());
            let (texts, is_kept) = known.texts(raw(&mangled));
            assert_eq!(texts.readable(), Some(&*format!("app::{text}()")));
            is_any_refused |= !is_kept;
            assert!(size(&known) <= TEXT_BYTES);
        }
        assert!(is_any_refused && known.read().emptied > 0);
    }

    #[test]
    fn long_texts_and_texts_that_are_not_utf8_are_not_kept() {
        let known = KnownAnswers::default();
        assert!(!known.texts(raw(&"a".repeat(TEXT_BYTES / SHARE))).1);
        let (texts, is_kept) = known.texts(RawTexts { name: Some(b"\xff"), readable: None, file: None });
        assert_eq!((texts.readable(), is_kept), (Some("\u{fffd}"), false));
        assert!(known.read().texts.is_empty());
        assert!(known.texts(raw("main")).1);
    }

    #[test]
    fn answers_of_other_indexes_bases_and_policies_are_others() {
        let known = KnownAnswers::default();
        let of = AnswersOf::new(7, 0, LinePolicy::Statement);
        let find = |of, offset| {
            let mut found = None;
            let new = known.find(of, &[ImageOffset(offset)], |_, answer| found = Some(answer.clone()));
            (found, new)
        };
        let function = Function::new(Table::Dwarf, Some(b"main"), None);
        let (found, mut new) = find(of, 1);
        assert_eq!(found, None);
        new.push(ImageOffset(1), Some(vec![function.clone()].into()));
        new.push(ImageOffset(2), None);
        known.keep(of, new);
        assert_eq!(find(of, 1).0, Some(Some(vec![function].into())));
        assert_eq!(find(of, 2).0, Some(None));
        assert_eq!(find(of, 3).0, None);
        for other in [
            AnswersOf::new(8, 0, LinePolicy::Statement),
            AnswersOf::new(7, 1, LinePolicy::Statement),
            AnswersOf::new(7, 0, LinePolicy::Exact),
        ] {
            assert_eq!(find(other, 1).0, None);
        }
        // Answers that were found before the texts were emptied have texts that are not counted.
        let (_, mut late) = find(of, 3);
        late.push(ImageOffset(3), None);
        known.write().emptied += 1;
        known.keep(of, late);
        assert_eq!(find(of, 3).0, None);
    }

    #[test]
    fn a_full_table_keeps_its_answers_until_others_are_asked_for_again_and_again() {
        let known = KnownAnswers::default();
        let of = AnswersOf::new(7, 0, LinePolicy::Exact);
        let ask = |offset| {
            let mut is_known = false;
            let mut new = known.find(of, &[ImageOffset(offset)], |_, _| is_known = true);
            if !is_known {
                new.push(ImageOffset(offset), None);
                known.keep(of, new);
            }
            is_known
        };
        let most = (ANSWER_BYTES / ENTRY) as u64;
        assert!(!(0..(1 + MAX_REFUSED as u64) * most).any(ask));
        assert!((0..most).all(ask), "the first answers stay");
        assert!(!ask(u64::MAX));
        assert!(ask(u64::MAX) && !ask(0), "the table was emptied");
    }
}

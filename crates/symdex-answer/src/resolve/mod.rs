//! Many addresses of any number of images, answered as columns.

#[cfg(feature = "arrow")]
pub mod arrow;
mod columns;
#[cfg(feature = "arrow")]
pub mod request;
mod seen;
#[cfg(feature = "arrow")]
mod texts;

use symdex::{Cause, Grade, ImageId, ImageOffset, Index, LinePolicy};
use symdex_report::{Answer, Answers, Question, ReportImage, Source, Unanswered};
use symdex_store::{OpenImage, StoredImage};

use self::columns::Rows;
pub use self::columns::{FrameColumns, Outcome, Resolved, Strings};
use self::seen::SeenIds;
use super::Symbolicator;

/// How many addresses a batch has at most.
pub const BATCH: usize = 1 << 15;

/// An image with fewer addresses in a batch is asked for together with others.
const FEW: usize = 64;

/// An address: the position of its image in a list of ids, and the offset from the start of the image.
pub type ImageAddress = (u32, ImageOffset);

/// An address of a batch, with its position there. Sorted, those of an image are together and ascend.
type Place = (u32, ImageOffset, usize);

impl Symbolicator {
    /// Resolves all addresses of `images` in their order. Returns batches of answers, each in memory when it is asked
    /// for. `source` answers as for a report: a [`Session`](crate::Session), perhaps one that fetches debug files.
    ///
    /// The memory does not depend on the number of addresses. They may be in any order and repeat. Ascending addresses
    /// of one image after the other are the fastest.
    ///
    /// ```
    /// use symdex::{ImageOffset, LinePolicy};
    /// use symdex_answer::{Symbolicator, SymbolicatorOptions};
    ///
    /// let options = SymbolicatorOptions::new().index("../../testdata/golden/v1/inline-dwarf4-1.symdex");
    /// let symbolicator = Symbolicator::open(&options, &mut |skipped| eprintln!("skipped: {skipped}"))?;
    /// let id = symbolicator.known()[0].id.clone();
    /// let mut session = symbolicator.session(&|_event| ());
    /// let offsets = [ImageOffset(0x3cf), ImageOffset(0x3d3), ImageOffset(0x7fff_ffff)];
    /// for batch in symbolicator.resolve(&mut session, &[(id, &offsets)], LinePolicy::Statement) {
    ///     let names: Vec<_> = batch.names.readable().collect();
    ///     for address in 0..batch.len() {
    ///         let frames = batch.rows(address).map(|row| (batch.frames.name[row], batch.frames.line[row]));
    ///         for (name, line) in frames {
    ///             println!("{} {line}", usize::try_from(name).map_or("??", |name| &names[name]));
    ///         }
    ///     }
    ///     assert_eq!(batch.outcome_of(0).map(|outcome| outcome.status), Some("symbolicated"));
    ///     assert_eq!(batch.outcome_of(2).map(|outcome| outcome.status), Some("missing_symbol"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve<'a>(
        &'a self,
        source: &'a mut dyn Source,
        images: &'a [(ImageId, &'a [ImageOffset])],
        lines: LinePolicy,
    ) -> impl Iterator<Item = Resolved> + 'a {
        let ids: Vec<_> = images.iter().map(|(id, _)| id.clone()).collect();
        let addresses = (0..)
            .zip(images)
            .flat_map(|(image, (_, offsets))| offsets.iter().map(move |offset| (image, *offset)));
        let (mut addresses, mut next) = (addresses, Vec::new());
        std::iter::from_fn(move || {
            next.extend(addresses.by_ref().take(BATCH - next.len()));
            let batch = (!next.is_empty()).then(|| self.resolve_batch(source, &ids, &next, lines))?;
            next.drain(..batch.len());
            Some(batch)
        })
    }

    /// Resolves the first of `addresses`, whose images have these `ids`: at most [`BATCH`], and fewer if their answers
    /// are very long. The length of the answer says how many, at least one. An address whose image is not among `ids`
    /// is `missing`.
    pub fn resolve_batch(
        &self,
        source: &mut dyn Source,
        ids: &[ImageId],
        addresses: &[ImageAddress],
        lines: LinePolicy,
    ) -> Resolved {
        let mut some = addresses.get(..BATCH).unwrap_or(addresses);
        loop {
            let mut batch = Batch::of(some, lines);
            batch.answer(self, source, ids);
            match some.get(..some.len() / 2).filter(|half| !half.is_empty() && batch.resolved.is_full()) {
                Some(half) => some = half,
                None => return batch.resolved.in_order(&batch.rows),
            }
        }
    }

    /// The index of `id`, if it alone answers all addresses that it can read: no source before it has the image, and it
    /// has lines.
    fn only_index(&self, id: &ImageId) -> Option<OpenImage> {
        let mut found =
            self.sources().filter_map(|source| self.find_in(source, std::slice::from_ref(id)).pop()?);
        let image = found.next()?.ok()?;
        let is_whole = matches!(image.image(), StoredImage::Index(_)) && image.grade() == Grade::Lines;
        (is_whole && self.damaged.known(|| image.location()).is_none()).then_some(image)
    }
}

/// A batch that is being answered.
struct Batch {
    places: Vec<Place>,
    lines: LinePolicy,
    resolved: Resolved,
    /// The rows of each address.
    rows: Vec<Rows>,
}

impl Batch {
    fn of(addresses: &[ImageAddress], lines: LinePolicy) -> Self {
        let mut places: Vec<Place> =
            addresses.iter().enumerate().map(|(place, (image, offset))| (*image, *offset, place)).collect();
        places.sort_unstable();
        Self {
            places,
            lines,
            resolved: Resolved::new(addresses.len()),
            rows: vec![Rows::default(); addresses.len()],
        }
    }

    fn answer(&mut self, symbolicator: &Symbolicator, source: &mut dyn Source, ids: &[ImageId]) {
        let places = std::mem::take(&mut self.places);
        let mut others = Vec::new();
        for places in places.chunk_by(|one, other| one.0 == other.0) {
            let id = places.first().and_then(|(image, ..)| ids.get(*image as usize));
            let index = id.filter(|_| places.len() >= FEW).and_then(|id| symbolicator.only_index(id));
            let is_answered = match index.as_ref().map(OpenImage::image) {
                Some(StoredImage::Index(index)) => self.ask_index(index, places),
                _ => false,
            };
            if !is_answered {
                others.push(Asked::new(id, places));
            }
        }
        while !others.is_empty() && !self.resolved.is_full() {
            others = self.ask(source, others);
        }
    }

    /// Asks `index` for the addresses at `places`. Returns `false`, and adds nothing, if it cannot be read at one of
    /// them.
    fn ask_index<B: AsRef<[u8]>>(&mut self, index: &Index<B>, places: &[Place]) -> bool {
        let start = self.resolved.frames.len();
        let (mut seen, mut is_readable) = (SeenIds::default(), true);
        let mut rest = places.iter();
        let offsets = places.iter().map(|(_, offset, _)| *offset);
        index.lookup_ascending(offsets, self.lines, |_, answer| {
            let place = rest.next().and_then(|(.., place)| self.rows.get_mut(*place));
            match (answer, place) {
                (Ok(frames), Some(rows)) if is_readable && !self.resolved.is_full() => {
                    *rows = self.resolved.add_frames(frames, &mut seen);
                }
                (Err(_), _) => is_readable = false,
                _ => {}
            }
        });
        if !is_readable {
            self.resolved.truncate(start);
        }
        is_readable
    }

    /// Asks `source` for the addresses of all images of `asked` together. Returns those that it left out, because their
    /// answers have too much text together.
    fn ask<'b>(&mut self, source: &mut dyn Source, asked: Vec<Asked<'b>>) -> Vec<Asked<'b>> {
        let questions = asked.iter().map(|asked| (&asked.image, &asked.offsets[..]));
        let mut answered = source.answer(&Question::of_images(questions, self.lines)).into_iter();
        let (mut left, mut is_any) = (Vec::new(), false);
        for mut asked in asked {
            let offsets = std::mem::take(&mut asked.offsets);
            let answers = match answered.next().unwrap_or(Err(Unanswered::Missing)) {
                Ok(Answers { mut answers, .. }) => {
                    answers.resize(offsets.len(), Answer::NoFunction);
                    answers
                }
                Err(why) => {
                    let reason = Some(why.reason().into_owned());
                    let rows = Rows::none(self.resolved.outcome_number(why.status(), reason));
                    offsets.iter().for_each(|offset| self.put(&asked, *offset, rows));
                    is_any = true;
                    continue;
                }
            };
            for (offset, answer) in offsets.into_iter().zip(answers) {
                if answer == Answer::TooLarge {
                    asked.offsets.push(offset);
                } else {
                    let rows = self.resolved.add_answer(&answer);
                    self.put(&asked, offset, rows);
                    is_any = true;
                }
            }
            if !asked.offsets.is_empty() {
                left.push(asked);
            }
        }
        if is_any {
            return left;
        }
        let reason = Some("the functions at the address have more than 2 MiB of text".to_owned());
        let rows = Rows::none(self.resolved.outcome_number(Cause::Limit.name(), reason));
        for asked in left {
            asked.offsets.iter().for_each(|offset| self.put(&asked, *offset, rows));
        }
        Vec::new()
    }

    /// Sets the rows of all addresses of this image and offset.
    fn put(&mut self, asked: &Asked<'_>, offset: ImageOffset, rows: Rows) {
        let start = asked.places.partition_point(|(_, other, _)| *other < offset);
        let same = asked.places.iter().skip(start).take_while(|(_, other, _)| *other == offset);
        for (.., place) in same {
            if let Some(of_place) = self.rows.get_mut(*place) {
                *of_place = rows;
            }
        }
    }
}

/// An image of which a source is asked.
struct Asked<'b> {
    image: ReportImage,
    places: &'b [Place],
    /// Distinct and ascending.
    offsets: Vec<ImageOffset>,
}

impl<'b> Asked<'b> {
    fn new(id: Option<&ImageId>, places: &'b [Place]) -> Self {
        let mut image = ReportImage::default();
        image.id = id.cloned();
        let mut offsets: Vec<_> = places.iter().map(|(_, offset, _)| *offset).collect();
        offsets.dedup();
        Self { image, places, offsets }
    }
}

//! Compares decoded chunks with the ranges that were encoded, and reads bytes that no writer produces.

#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

mod hostile;
mod round_trip;

use super::{ChunkReader, Codes, MAX_BLOCK_FRAMES, PackedScratch, SourceLocation};
use crate::answer::FoundFrame;
use crate::error::Error;
use crate::format::{Checksums, MAX_FRAMES, Metadata, PageChecks, PageReader, SectionKind, Table};
use crate::ranges::{ChunkRanges, InlineFrame, NonMaxU32};
use crate::write::page_sums::PageSums;
use symdex_testkit::images::Image;

/// The sections of an index that hold the chunks and their codes. Tests change them.
#[derive(Clone)]
struct Sections {
    metadata: Metadata,
    chunks: Vec<u8>,
    codes: Vec<u8>,
}

/// The answers of one range: its start, its end, the start of its function, and the chains under `exact` and
/// `statement`, innermost frame first.
type Answers = (u64, u64, Option<u64>, [Vec<InlineFrame>; 2]);

/// The chain that begins with `frame`, innermost frame first. The `parent` of each frame is cleared.
fn chain(frames: &[InlineFrame], frame: u32) -> Vec<InlineFrame> {
    let parent = |frame: &InlineFrame| frame.parent.map(|parent| frames[parent.index()]);
    std::iter::successors(Some(frames[frame as usize]), parent)
        .map(|frame| InlineFrame { parent: None, ..frame })
        .collect()
}

/// Converts the frames of a lookup to the start of their function and their chain.
fn answer_of(frames: &[FoundFrame]) -> (Option<u64>, Vec<InlineFrame>) {
    let frame = |frame: &FoundFrame| {
        let SourceLocation { name, file, line } = frame.source;
        let [name, file, line] = [name, file, line].map(NonMaxU32::from_stored);
        InlineFrame { parent: None, name, file, line }
    };
    let start = frames.first().and_then(|frame| frame.function_start).map(|start| start.0);
    (start, frames.iter().map(frame).collect())
}

fn answers(chunk: &ChunkRanges) -> Vec<Answers> {
    let chains = |range: &crate::ranges::CodeRange| {
        [range.exact, range.statement].map(|frame| chain(&chunk.frames, frame))
    };
    chunk.ranges.iter().map(|range| (range.start, range.end, range.function_start, chains(range))).collect()
}

impl Sections {
    fn of(image: &Image) -> Self {
        let file = image.index();
        let index = crate::Index::open(&file[..]).expect("as written");
        let section = |name| {
            let found = index.sections().into_iter().find(|section| section.name == name);
            let crate::SectionInfo { offset: start, size, .. } = found.expect("there");
            file[start as usize..(start + size) as usize].to_vec()
        };
        Self { metadata: index.metadata().clone(), chunks: section("chunks"), codes: section("codes") }
    }

    /// Calls `read` with a reader of the sections and returns its result. The checksums are computed from the sections.
    fn read<T>(&self, read: impl FnOnce(Result<ChunkReader<'_>, Error>) -> T) -> T {
        let id = &self.metadata.id;
        let sums = |kind, section: &[u8]| PageSums::of(id, kind, section);
        let (chunk_sums, code_sums) =
            (sums(SectionKind::ChunkPage, &self.chunks), sums(SectionKind::CodePage, &self.codes));
        let checks = [&self.chunks, &self.codes].map(|section| PageChecks::new(section.len() as u64));
        let pages = |kind, section, checksums, checked| PageReader {
            kind,
            section,
            sums: Checksums::new(id, kind),
            checksums,
            checked,
        };
        let chunks = pages(SectionKind::ChunkPage, &self.chunks[..], &chunk_sums[..], &checks[0]);
        let places = pages(SectionKind::CodePage, &self.codes[..], &code_sums[..], &checks[1]);
        match Codes::decode(&places, &self.metadata) {
            Ok(codes) => {
                let metadata = &self.metadata;
                read(Ok(ChunkReader { metadata, codes: &codes, places, pages: chunks, serial: 0 }))
            }
            Err(error) => read(Err(error)),
        }
    }

    /// Returns whether all chunks decode. Asserts that the ranges of each decoded chunk are valid, that lookups agree
    /// with these ranges, and that no lookup exceeds the limits on frames.
    fn is_whole(&self) -> bool {
        self.read(|reader| {
            let Ok(reader) = reader else { return false };
            let mut scratch = PackedScratch::default();
            let mut whole = reader.verify().is_ok();
            for &table in Table::ALL {
                for index in self.metadata.chunks(table) {
                    whole &= self.is_harmless(&reader, table, index, &mut scratch);
                }
            }
            whole
        })
    }

    fn is_harmless(
        &self,
        reader: &ChunkReader<'_>,
        table: Table,
        index: u64,
        scratch: &mut PackedScratch,
    ) -> bool {
        let chunk = match reader.chunk(table, index) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let span = u64::from(self.metadata.chunk_span);
        let (start, end) = (index * span, (index + 1) * span);
        let mut find = |offset: u64, statement: bool| {
            let mut frames = Vec::new();
            let found = chunk.find(offset, statement, usize::MAX, scratch, &mut frames);
            assert!(scratch.block.frames.len() <= MAX_BLOCK_FRAMES);
            if let Ok(found) = &found {
                assert!(
                    found.range.contains(&offset) && start <= found.range.start && found.range.end <= end
                );
                assert_eq!(found.is_answer, !frames.is_empty());
            }
            if !frames.is_empty() && found.is_ok() {
                assert!((1..=MAX_FRAMES as usize).contains(&frames.len()), "{} frames", frames.len());
            }
            found.ok().map(|_| answer_of(&frames))
        };
        for offset in (start..end).step_by((span / 7).max(1) as usize).chain([end - 1]) {
            find(offset, true);
            find(offset, false);
        }
        let Ok(ranges) = chunk.ranges(&mut PackedScratch::default()) else { return false };
        assert!(ranges.depths(start, end).is_ok());
        let answers = answers(&ranges);
        for (start, end, function_start, chains) in answers.iter().step_by(1 + answers.len() / 8) {
            for (statement, chain) in [false, true].into_iter().zip(chains) {
                assert_eq!(find(*start, statement), Some((*function_start, chain.clone())));
                assert_eq!(find(*end - 1, statement), Some((*function_start, chain.clone())));
            }
        }
        true
    }

    /// The section of the codes if `codes` is set, otherwise the section of the chunks.
    fn section(&mut self, codes: bool) -> &mut Vec<u8> {
        if codes { &mut self.codes } else { &mut self.chunks }
    }
}

/// An image with one chunk, `names` names and one file. The chunk spans 1 MiB.
fn image_of(chunk: ChunkRanges, names: usize) -> Image {
    let mut image = Image::random(0);
    image.chunk_span = 1 << 20;
    image.names = (0..names).map(|n| format!("name{n}").into_bytes()).collect();
    image.files = vec![b"/src/file".to_vec(); 4];
    image.tables = [foreign(&chunk), Default::default()];
    image
}

/// Converts `table` to the types of this crate. In unit tests, `symdex_testkit::images` uses another copy of this
/// crate.
fn own(table: &symdex_testkit::images::ChunkRanges) -> ChunkRanges {
    let id =
        |id: Option<symdex_testkit::images::NonMaxU32>| id.and_then(|id| NonMaxU32::new(id.get().into()));
    let range = |range: &symdex_testkit::images::CodeRange| {
        let symdex_testkit::images::CodeRange { start, end, function_start, exact, statement } = *range;
        crate::ranges::CodeRange { start, end, function_start, exact, statement }
    };
    let frame = |frame: &symdex_testkit::images::InlineFrame| {
        let [parent, name, file, line] = [frame.parent, frame.name, frame.file, frame.line].map(id);
        InlineFrame { parent, name, file, line }
    };
    ChunkRanges {
        ranges: table.ranges.iter().map(range).collect(),
        frames: table.frames.iter().map(frame).collect(),
    }
}

/// Converts `table` to the types of `symdex_testkit::images`.
fn foreign(table: &ChunkRanges) -> symdex_testkit::images::ChunkRanges {
    let id =
        |id: Option<NonMaxU32>| id.and_then(|id| symdex_testkit::images::NonMaxU32::new(id.get().into()));
    let range = |range: &crate::ranges::CodeRange| {
        let crate::ranges::CodeRange { start, end, function_start, exact, statement } = *range;
        symdex_testkit::images::CodeRange { start, end, function_start, exact, statement }
    };
    let frame = |frame: &InlineFrame| {
        let [parent, name, file, line] = [frame.parent, frame.name, frame.file, frame.line].map(id);
        symdex_testkit::images::InlineFrame { parent, name, file, line }
    };
    let frames = table.frames.iter().map(frame).collect();
    symdex_testkit::images::ChunkRanges { ranges: table.ranges.iter().map(range).collect(), frames }
}

fn inline_frame(parent: Option<u32>, name: u32, file: Option<u32>, line: Option<u32>) -> InlineFrame {
    let id = |number: Option<u32>| number.and_then(|number| NonMaxU32::new(number.into()));
    InlineFrame { parent: id(parent), name: id(Some(name)), file: id(file), line: id(line) }
}

//! The crate blazesym, which profilers read GSYM with, answers exported GSYM as the index does.

use std::path::Path;

use blazesym::symbolize::source::{GsymFile, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use symdex::{Index, LinePolicy, Scratch};
use symdex_symbol_files::write_gsym;
use symdex_testkit::corpus;

use crate::common::{Frame, POLICIES, addresses, answer, each_index, each_index_of_testdata, raw};

pub(crate) fn blazesym_has_the_answers_of_the_index() {
    let mut compared = 0;
    each_index_of_testdata(|path, index| compared += compare(path, index, 1));
    assert!(compared > 10_000, "{compared} frames");
}

/// At every 500th address, because all of them take minutes.
pub(crate) fn blazesym_has_the_answers_of_large_indexes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    for name in ["cbundle.dSYM", "ripgrep.dSYM"] {
        let unpacked = corpus(name, folder.path());
        each_index(&unpacked, |path, index| compared += compare(path, index, 500));
    }
    assert!(compared > 10_000, "{compared} frames");
}

/// Compares the answers at every `step`th address where one may change. Returns the number of frames.
fn compare(path: &str, index: &Index<Vec<u8>>, step: usize) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let base = index.metadata().base;
    let mut compared = 0;
    for policy in POLICIES {
        let file = folder.path().join(format!("{policy:?}.gsym"));
        let mut bytes = Vec::new();
        write_gsym(index, policy, &raw, &mut bytes).expect("exports");
        std::fs::write(&file, bytes).expect("written");
        let reader = BlazesymReader::new(&file);
        let mut scratch = Scratch::default();
        for address in addresses(index).into_iter().step_by(step) {
            let expected = expected(index, address, policy, &mut scratch);
            let found = reader.answer(base.wrapping_add(address));
            assert_eq!(found, expected, "{path} {address:#x} {policy:?}");
            compared += found.len();
        }
    }
    compared
}

/// The answer of the index, the innermost function first. Code without a line has no inlined calls in GSYM.
fn expected(index: &Index<Vec<u8>>, address: u64, policy: LinePolicy, scratch: &mut Scratch) -> Vec<Frame> {
    let mut expected = answer(index, address, policy, scratch);
    expected.reverse();
    if expected.first().is_some_and(|(_, at)| at.is_none()) {
        expected.drain(..expected.len() - 1);
        expected[0].1 = None;
    }
    expected
}

struct BlazesymReader {
    symbolizer: Symbolizer,
    source: Source<'static>,
}

impl BlazesymReader {
    fn new(file: &Path) -> Self {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .build();
        Self { symbolizer, source: GsymFile::new(file).into() }
    }

    /// The frames at an address, the innermost function first.
    fn answer(&self, address: u64) -> Vec<Frame> {
        let answer = self.symbolizer.symbolize_single(&self.source, Input::VirtOffset(address));
        let Symbolized::Sym(symbol) = answer.expect("is read") else { return Vec::new() };
        let inlined = symbol.inlined.iter().rev();
        let frames = inlined.map(|call| (call.name.as_ref(), call.code_info.as_ref()));
        let frames = frames.chain([(symbol.name.as_ref(), symbol.code_info.as_deref())]);
        frames.map(|(name, at)| (name.to_owned(), at.map(place))).collect()
    }
}

fn place(at: &CodeInfo<'_>) -> (String, u32) {
    let folder = at.dir.as_deref().unwrap_or(Path::new(""));
    (folder.join(&at.file).to_string_lossy().into_owned(), at.line.unwrap_or(0))
}

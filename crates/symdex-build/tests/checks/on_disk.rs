//! Debug files on disk, which name others beside them.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::audit::{Class, Frame, LlvmAnswers, Options, Peer, audit_with};
use symdex_build::{Companions, Image, slices};

use symdex_testimages::debug_file::BASE;

use super::found;

/// What the file answers, where nothing may be missing; addr2line and the rules answer the same.
pub(crate) fn all(path: &Path) -> Vec<String> {
    let (answers, missing) = found(path, &Companions::default());
    assert_eq!(missing, [""; 0]);
    assert_eq!(classes(path, &index(path)), []);
    answers
}

pub(crate) fn index(path: &Path) -> Index<Vec<u8>> {
    let (file, companions) = (fs::read(path).expect("there"), Companions::default());
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, &companions).expect("loads");
    let built = symdex_build::build(&image, &Default::default(), &|_, _| {}).expect("builds");
    Index::open(built.bytes).expect("just written")
}

/// What explains where llvm-symbolizer differs from the index of the file at `path`, if it answers as `theirs`. Nothing else may differ.
pub(crate) fn classes(path: &Path, theirs: &Index<Vec<u8>>) -> Vec<Class> {
    let (file, companions) = (fs::read(path).expect("there"), Companions::default());
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, &companions).expect("loads");
    let owned = |text: Option<&[u8]>| text.map(|text| Cow::Owned(text.to_vec()));
    let answer = |svma: u64| {
        let mut scratch = Scratch::default();
        let found = theirs.lookup(ImageOffset(svma - BASE), LinePolicy::Exact, &mut scratch).expect("whole");
        let frame = |f: symdex::Frame<'_>| Frame { name: owned(f.name), file: owned(f.file), line: f.line };
        found.map_or(vec![Frame::default()], |frames| frames.iter().map(frame).collect())
    };
    let ask = |svmas: Vec<u64>| {
        let answers: Vec<_> = svmas.into_iter().map(|svma| Ok(answer(svma))).collect();
        Ok(Box::new(answers.into_iter()) as LlvmAnswers<'_>)
    };
    let options = Options { llvm_symbolizer: Some(&ask), ..Options::default() };
    let report = audit_with(&image, &index(path), &options).expect("is read");
    let mut failures = report.failures();
    // In a small file no class is rare.
    failures.retain(|failure| !failure.starts_with("the class"));
    assert_eq!(failures, [""; 0], "{report}");
    assert!(report.peers[&Peer::Addr2line].agreements > 0);
    let ours = report.peers.get(&Peer::LlvmSymbolizer);
    ours.map_or(Vec::new(), |report| report.classes.keys().copied().collect())
}

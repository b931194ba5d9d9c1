//! Whole crash reports over stores.

use std::fmt::Write as _;

use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_report::{ImageOutcome, Options, Report, Unanswered, symbolicate};
use symdex_store::{Store, StoreUrl};
use symdex_testkit::indexes::id;

/// The images that tests put into stores.
pub(crate) const IMAGES: u8 = 20;
/// Five frames of each image of at least ten functions. They are in three values.
pub(crate) const OFFSETS: [u64; 5] = [0x9, 0x5009, 0x5019, 0x9009, 0x6009];
/// The functions at these offsets.
pub(crate) const NAMES: [&str; 5] = ["f0", "f5", "f5", "f9", "f6"];

/// Puts the index `bytes` into `store`.
pub(crate) fn put(store: &dyn Store, bytes: &[u8]) {
    let index = symdex::Index::open(bytes).expect("an index");
    store.put(&index).unwrap_or_else(|error| panic!("{error}"));
}

/// A symbolicator over the stores at `urls`.
pub(crate) fn symbolicator<'u>(
    urls: impl IntoIterator<Item = &'u str>,
    options: SymbolicatorOptions,
) -> Symbolicator {
    let url = |url: &str| -> StoreUrl { url.parse().unwrap_or_else(|error| panic!("{error}")) };
    let options = urls.into_iter().fold(options, |options, text| options.store(url(text)));
    Symbolicator::open(&options, &mut |error| panic!("{error}")).unwrap_or_else(|error| panic!("{error}"))
}

/// A report with these offsets of each of `images`.
pub(crate) fn report(images: impl IntoIterator<Item = u8>, offsets: &[u64]) -> String {
    let mut text = String::new();
    for byte in images {
        let load = 0x1_0000_0000 + u64::from(byte) * 0x1000_0000;
        for offset in offsets {
            writeln!(text, "App {:#x} {load:#x} {}", load + offset, id(byte)).expect("memory");
        }
    }
    text
}

/// The names of the innermost functions of a report, and why sources of its images failed. A frame that is not answered
/// has the reason as its name.
pub(crate) fn names(symbolicator: &Symbolicator, text: &str) -> (Vec<String>, Vec<String>) {
    let report = Report::parse(text.as_bytes()).expect("a report");
    let mut session = symbolicator.session(&|_| ());
    let symbolicated = symbolicate(&report, &mut session, &Options::new());
    let name = |(thread, frame)| {
        let resolution = symbolicated.resolution(thread, frame);
        let name = resolution.and_then(|resolution| resolution.frames[0].readable().map(str::to_owned));
        name.unwrap_or_else(|| format!("{:?}", symbolicated.unresolved(thread, frame)))
    };
    let is_failure = |outcome: &&ImageOutcome| **outcome != ImageOutcome::Unanswered(Unanswered::Missing);
    let failures = symbolicated.images().iter().filter(is_failure);
    let failures = failures.filter_map(|outcome| Some(outcome.reason()?.into_owned()));
    (symbolicated.frames().map(name).collect(), failures.collect())
}

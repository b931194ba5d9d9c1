//! Lookups while the index is replaced.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_store::{Error, OnConflict, OpenImage, PutOptions, ReaderOptions, Store, StoreReader};

use super::{id, named_index};

const IMAGE: u8 = 0xab;
const FUNCTIONS: u16 = 40;

/// Lets a writer replace the index of an image again and again, and three readers look up several addresses of it, each
/// with a store of `open`. Checks that all answers of one report are those of one index.
pub(crate) fn a_report_is_answered_from_one_version(open: impl Fn() -> Box<dyn Store> + Sync) {
    let versions = ["old", "new"].map(|name| named_index(IMAGE, FUNCTIONS, name));
    let replace = |store: &dyn Store, bytes: &[u8]| {
        let options = PutOptions::new().on_conflict(OnConflict::Replace);
        store.put_with(&Index::open(bytes).expect("an index"), &options).unwrap_or_else(|e| panic!("{e}"));
    };
    replace(&*open(), &versions[0]);
    let (is_over, replaced, spanned) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let read = || {
        let reader = StoreReader::new(vec![open()], &ReaderOptions::new().fresh(Duration::ZERO));
        let mut seen = BTreeSet::new();
        while !is_over.load(Ordering::Relaxed) {
            let before = replaced.load(Ordering::Relaxed);
            let image = reader.find(&id(IMAGE)).expect("readable").expect("there");
            let names = image.ask(report).expect("readable").expect("there");
            spanned.fetch_add(u64::from(replaced.load(Ordering::Relaxed) != before), Ordering::Relaxed);
            assert_eq!(names.len(), 1, "one report has answers of several versions: {names:?}");
            seen.extend(names);
        }
        assert_eq!(seen.len(), 2, "the reader has seen one version only");
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
        let store = open();
        for round in 1.. {
            replace(&*store, &versions[round % 2]);
            replaced.fetch_add(1, Ordering::Relaxed);
            let is_enough = round >= 20 && spanned.load(Ordering::Relaxed) >= 20;
            if is_enough || readers.iter().any(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// The names of the versions from which `image` answers some addresses, one after the other and then all at once.
fn report(image: &OpenImage) -> Result<BTreeSet<String>, Error> {
    let offsets: Vec<_> = (0..u64::from(FUNCTIONS)).map(|number| ImageOffset(number * 0x1000 + 8)).collect();
    let version = |name: &[u8]| String::from_utf8_lossy(&name[..3]).into_owned();
    let (mut scratch, mut names) = (Scratch::default(), BTreeSet::new());
    for offset in offsets.iter().step_by(13) {
        let frames = image.lookup(*offset, LinePolicy::Statement, &mut scratch)?.expect("a function");
        names.extend(frames.iter().filter_map(|frame| frame.name).map(version));
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut failed = Ok(());
    image.lookup_many(&offsets, LinePolicy::Statement, &mut scratch, |_, found| match found {
        Ok(frames) => {
            names.extend(frames.iter().flat_map(|f| f.iter()).filter_map(|frame| frame.name).map(version));
        }
        Err(error) => failed = Err(error),
    })?;
    failed.map(|()| names)
}

//! What every home of a store must do, and indexes to put into it.

#![allow(dead_code, reason = "no test file uses all of it")]

pub(crate) mod collected;
pub(crate) mod versions;
pub(crate) mod writers;

use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

use symdex::{Grade, ImageId, ImageOffset, Index, LinePolicy, Scratch};
use symdex_store::{OnConflict, Provenance, PublishOutcome, PutOptions, Store, StoreEntry, StoredImage};

pub(crate) use symdex_testkit::indexes::*;

/// Puts the index `bytes` into `store`.
pub(crate) fn put(store: &dyn Store, bytes: &[u8]) -> PublishOutcome {
    let index = Index::open(bytes).expect("an index");
    store.put(&index).unwrap_or_else(|error| panic!("{error}"))
}

/// The name at `offset`, from the whole index or the value of a store. `None` for a gap.
pub(crate) fn name_at(image: &StoredImage, offset: ImageOffset) -> Option<String> {
    match image {
        StoredImage::Index(index) => name_in(index, offset),
        StoredImage::Values(values) => {
            let number = values.metadata().value_number(offset);
            if !values.metadata().value_numbers().iter().any(|numbers| numbers.contains(&number)) {
                return None;
            }
            let fetched = values.fetch(&[number]).unwrap_or_else(|error| panic!("{error}"));
            name_in(fetched[0].found().expect("the value is there"), offset)
        }
    }
}

/// The name at `offset` in `index`. `None` for a gap.
pub(crate) fn name_in<B: AsRef<[u8]>>(index: &Index<B>, offset: ImageOffset) -> Option<String> {
    let mut scratch = Scratch::default();
    let frames = index.lookup(offset, LinePolicy::Statement, &mut scratch).expect("not damaged")?;
    let name = frames.iter().next()?.name?.to_vec();
    Some(String::from_utf8(name).expect("ASCII"))
}

/// All entries of `store`, sorted by id.
pub(crate) fn entries(store: &dyn Store) -> Vec<StoreEntry> {
    let mut entries = Vec::new();
    let mut visit = |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    };
    store.list(&mut visit).unwrap_or_else(|error| panic!("{error}"));
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries
}

/// Checks that `store`, which is empty at first, does what [`Store`] says.
pub(crate) fn behaves_as_a_store(store: &dyn Store) {
    assert!(!store.is_read_only());
    let (small, large) = (index(0xab, 3), index(0xab, 70));
    assert!(store.open(&id(0xab)).expect("readable").is_none());
    assert!(store.stat(&id(0xab)).expect("readable").is_none() && entries(store).is_empty());
    assert!(
        !store.remove(&id(0xab)).expect("nothing to do") && !store.touch(&id(0xab)).expect("nothing to do")
    );

    assert_eq!(put(store, &small), PublishOutcome::Written);
    assert_eq!(put(store, &small), PublishOutcome::Unchanged);
    assert_eq!(put(store, &large), PublishOutcome::ConflictReplaced);
    assert_eq!(put(store, &small), PublishOutcome::ConflictKept);
    assert_eq!(put(store, &large), PublishOutcome::Unchanged);
    assert_eq!(put(store, &index(0xcd, 1)), PublishOutcome::Written);

    let image = store.open(&id(0xab)).expect("readable").expect("there");
    assert_eq!((image.metadata().id.clone(), image.metadata().counts.functions), (id(0xab), 70));
    for number in [0_u64, 1, 69] {
        assert_eq!(name_at(&image, ImageOffset(number * 0x1000 + 8)), Some(format!("f{number}")));
        assert_eq!(name_at(&image, ImageOffset(number * 0x1000 + 0x800)), None);
    }
    assert_eq!(name_at(&image, ImageOffset(u64::MAX)), None);

    let listed = entries(store);
    assert_eq!(listed.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>(), [id(0xab), id(0xcd)]);
    let stat = store.stat(&id(0xab)).expect("readable").expect("there");
    assert_eq!((&stat.location, stat.layout), (&store.location(&id(0xab)), listed[0].layout));
    assert!(
        stat.stored_size > 0 && stat.index_size.is_none_or(|size| size == large.len() as u64),
        "{stat:?}"
    );
    let digest = Index::open(&large[..]).expect("an index").digest();
    assert_eq!(stat.digest, Some(digest), "the digest of the index that stays");
    let mut visited = 0;
    let mut stop = |_| {
        visited += 1;
        ControlFlow::Break(())
    };
    store.list(&mut stop).expect("listed");
    assert_eq!(visited, 1);

    assert!(store.touch(&id(0xab)).expect("touched"));
    let kept = store.gc(Duration::from_secs(60)).expect("collected");
    assert_eq!((kept.kept, kept.removed, kept.failed), (2, 0, 0), "{kept:?}");
    assert!(store.remove(&id(0xab)).expect("removed"));
    assert!(store.open(&id(0xab)).expect("readable").is_none());
    assert_eq!(entries(store).len(), 1);
    // An index can be put again after it was removed.
    assert_eq!(put(store, &small), PublishOutcome::Written);
    assert!(store.remove(&id(0xab)).expect("removed") && store.remove(&id(0xcd)).expect("removed"));
    assert!(entries(store).is_empty());
    finds_ids_by_their_first_16_bytes(store);
    assert!(entries(store).is_empty());
    keeps_who_has_put_an_index(store);
    assert!(entries(store).is_empty());
    keeps_the_index_of_the_greatest_grade(store);
    assert!(entries(store).is_empty());
}

/// An index with lines and few functions is better than one of a stripped binary, in any order.
fn keeps_the_index_of_the_greatest_grade(store: &dyn Store) {
    use PublishOutcome::{Kept, Replaced, Unchanged, Written};
    let [bounds, names] = [Grade::Bounds, Grade::Names].map(|grade| index_of_grade(0xab, 70, grade));
    let lines = index(0xab, 3);
    let stated = || store.stat(&id(0xab)).expect("readable").expect("there").grade;
    assert_eq!((put(store, &bounds), stated()), (Written, Some(Grade::Bounds)));
    assert_eq!((put(store, &names), stated()), (Replaced, Some(Grade::Names)));
    assert_eq!((put(store, &lines), stated()), (Replaced, Some(Grade::Lines)));
    for other in [&bounds, &names] {
        assert_eq!((put(store, other), stated()), (Kept, Some(Grade::Lines)));
    }
    assert_eq!(put(store, &lines), Unchanged);
    let image = store.open(&id(0xab)).expect("readable").expect("there");
    assert_eq!((image.metadata().grade(), image.metadata().counts.functions), (Grade::Lines, 3));
    assert!(store.remove(&id(0xab)).expect("removed"));
}

/// The provenance of an upload with this token.
pub(crate) fn put_by(token: &str) -> Provenance {
    let mut provenance = Provenance::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_416_000));
    provenance.token = Some(token.to_owned());
    provenance.client = Some("2001:db8::7".parse().expect("an address"));
    provenance.sha256 = Some("9b".repeat(32));
    provenance
}

fn keeps_who_has_put_an_index(store: &dyn Store) {
    use OnConflict::{Keep, More, Replace};
    use PublishOutcome::{ConflictKept, ConflictReplaced, Unchanged, Written};
    let stated = || store.stat(&id(0xab)).expect("readable").expect("there").provenance;
    let put_with = |functions: u16, on_conflict, by: Option<Provenance>| {
        let bytes = index(0xab, functions);
        let options = PutOptions::new().on_conflict(on_conflict).provenance(by);
        store.put_with(&Index::open(&bytes[..]).expect("an index"), &options).expect("put")
    };
    let (ci, other) = (|| Some(put_by("ci")), || Some(put_by("other")));
    assert_eq!((put_with(3, More, ci()), stated()), (Written, ci()));
    // The index is that of a build that knows nothing of uploads.
    if let Ok(Some(bytes)) = store.get(&id(0xab)) {
        assert_eq!(bytes[..], index(0xab, 3)[..]);
    }
    assert_eq!((put_with(3, Replace, other()), stated()), (Unchanged, ci()));
    assert_eq!((put_with(70, Keep, other()), stated()), (ConflictKept, ci()));
    assert_eq!((put_with(70, Keep, None), stated()), (ConflictKept, ci()));
    assert_eq!((put_with(70, Keep, ci()), stated()), (ConflictReplaced, ci()));
    assert_eq!((put_with(3, Keep, ci()), stated()), (ConflictKept, ci()));
    assert_eq!((put_with(3, Replace, other()), stated()), (ConflictReplaced, other()));
    let image = store.open(&id(0xab)).expect("readable").expect("there");
    assert_eq!(image.metadata().counts.functions, 3);
    assert_eq!((put_with(4, More, None), stated()), (ConflictReplaced, None));
    assert_eq!((put_with(5, Keep, ci()), stated()), (ConflictKept, None));
    assert_eq!((put_with(5, More, ci()), stated()), (ConflictReplaced, ci()));
    assert!(store.remove(&id(0xab)).expect("removed"));
    assert_eq!((put_with(3, Keep, None), stated()), (Written, None));
    assert!(store.remove(&id(0xab)).expect("removed"));
}

fn finds_ids_by_their_first_16_bytes(store: &dyn Store) {
    let ids_from = |starts: &[ImageId]| -> Vec<Vec<ImageId>> {
        let ids = store.ids_from(starts).into_iter();
        ids.map(|ids| ids.unwrap_or_else(|error| panic!("{error}"))).collect()
    };
    let other = ImageId::new(&[&[0xab; 15][..], &[0xac, 0, 0, 0, 0]].concat()).expect("an id");
    let (first, second) = (long_id(0xab, 7), long_id(0xab, 9));
    assert_eq!(ids_from(&[id(0xab), id(0xcd)]), [[], []]);
    for new in [&second, &other] {
        assert_eq!(put(store, &index_of(new.clone(), 3)), PublishOutcome::Written);
    }
    assert_eq!(ids_from(&[id(0xcd), id(0xab)]), [vec![], vec![second.clone()]]);
    assert!(
        store.open(&second).expect("readable").is_some() && store.open(&id(0xab)).expect("read").is_none()
    );
    assert_eq!(put(store, &index_of(first.clone(), 3)), PublishOutcome::Written);
    assert_eq!(put(store, &index(0xab, 3)), PublishOutcome::Written);
    assert_eq!(entries(store).len(), 4);
    assert_eq!(ids_from(&[id(0xab)]), [[id(0xab), first.clone(), second.clone()]]);
    assert!(store.remove(&second).expect("removed") && store.remove(&id(0xab)).expect("removed"));
    assert_eq!(ids_from(&[id(0xab)]), [[first.clone()]]);
    assert!(store.remove(&first).expect("removed") && store.remove(&other).expect("removed"));
    assert_eq!(ids_from(&[id(0xab)]), [[]]);
}

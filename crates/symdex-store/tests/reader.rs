//! Stores with one reader: its memory, its pauses, and its calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{id, index, index_of_grade, name_at};
use symdex::{Cause, Grade, ImageOffset, Index};
use symdex_store::{IndexBytes, IndexFolder, OpenImage, ReaderOptions, Store as _, StoreReader, StoredImage};
use symdex_testkit::fake_store::{Fake, calls};
use symdex_testkit::web::Gate;

/// The offset of a function that the value with this number answers.
fn offset_in(image: &OpenImage, number: u64) -> ImageOffset {
    let mut offsets = (0..300).map(|function| ImageOffset(function * 0x1000));
    offsets.find(|offset| image.metadata().value_number(*offset) == number).expect("it has functions")
}

#[test]
fn threads_that_need_one_image_open_it_once() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert!(reader.stores()[0].open(&id(0xab)).expect("readable").is_some()));
        }
    });
    assert_eq!(calls(&fake).0, 1);
    let counts = &reader.counts()[0];
    assert_eq!((counts.found, counts.from_memory), (1, 15));
}

#[test]
fn an_absent_image_is_asked_for_again_after_its_time() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    for _ in 0..5 {
        assert!(reader.stores()[0].open(&id(0xcd)).expect("readable").is_none());
    }
    assert_eq!(calls(&fake).0, 1);
    let reader = fake.reader(&ReaderOptions::new().absent(Duration::ZERO));
    for _ in 0..5 {
        assert!(reader.stores()[0].open(&id(0xcd)).expect("readable").is_none());
    }
    assert_eq!((calls(&fake).0, reader.counts()[0].absent), (6, 5));
}

#[test]
fn values_are_fetched_once_and_together_and_lost_ones_are_told() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new());
    let image = reader.stores()[0].open(&id(0xab)).expect("readable").expect("there");
    let last = image.metadata().value_number(ImageOffset(299 * 0x1000));
    assert!(last >= 2, "the index has several values");
    fake.values.lock().expect("not poisoned").remove(&1);
    let offsets = [0, 1, last].map(|number| offset_in(&image, number));
    for round in 0..2 {
        image.prefetch(&offsets).expect("readable");
        assert_eq!(calls(&fake).1, round + 1, "the lost value is asked for again");
    }
    assert_eq!(offsets.map(|offset| image.part_at(offset).is_ok()), [true, false, true]);
    let counts = &reader.counts()[0];
    assert_eq!((counts.lost_values, counts.from_memory), (3, 4));
    assert_eq!(name_at(image.image(), ImageOffset(299 * 0x1000)).as_deref(), Some("f299"));
}

#[test]
fn a_store_that_is_down_is_left_alone_and_images_in_memory_still_answer() {
    let fake = Fake::new(3);
    let options = ReaderOptions::of_one_run().fresh(Duration::ZERO);
    let reader = fake.reader(&options);
    assert!(reader.stores()[0].open(&id(0xab)).expect("readable").is_some());
    fake.is_down.store(true, Ordering::Relaxed);
    for _ in 0..10 {
        assert!(reader.stores()[0].open(&id(0xab)).expect("in memory").is_some());
        assert!(reader.stores()[0].open(&id(0xcd)).is_err_and(|error| error.cause() == Cause::Unavailable));
    }
    assert_eq!(calls(&fake).0, 1 + 1, "one call fails, the others are not made");
    let counts = &reader.counts()[0];
    assert_eq!((counts.failed, counts.skipped), (1, 19));
}

#[test]
fn a_store_that_was_down_is_asked_again_after_the_pause() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new().pause(Duration::from_millis(1)));
    fake.is_down.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        reader.stores()[0].open(&id(0xab)).expect_err("down");
    }
    fake.is_down.store(false, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(5));
    assert!(reader.stores()[0].open(&id(0xab)).expect("up again").is_some());
}

#[test]
fn a_store_that_takes_no_writes_is_still_read() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::of_one_run().fresh(Duration::ZERO));
    let store = &reader.stores()[0];
    fake.is_full.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(store.remove(&id(0xab)).is_err_and(|error| error.cause() == Cause::Unavailable));
        assert!(store.open(&id(0xab)).expect("readable").is_some());
    }
    assert_eq!(reader.counts()[0].skipped, 2, "it is asked to write once");
    fake.is_down.store(true, Ordering::Relaxed);
    let unknown = |number| store.open(&id(number)).expect_err("down").to_string();
    assert!(unknown(0xcd).contains("down") && unknown(0xef).contains("down"), "the reason is that of a read");
}

#[test]
fn an_image_that_is_there_now_is_no_longer_remembered_as_absent() {
    let root = tempfile::tempdir().expect("a folder");
    let reader = StoreReader::new(vec![Box::new(IndexFolder::new(root.path()))], &ReaderOptions::new());
    let (store, bytes) = (&reader.stores()[0], index(0xab, 1));
    let is_found = || reader.find(&id(0xab)).expect("readable").is_some();
    let ids = || store.ids_from(&[id(0xab)]).remove(0).expect("readable").len();
    let file = root.path().join(IndexFolder::file_name(&id(0xab)));
    let other_process = || std::fs::write(&file, &bytes).expect("written");
    assert_eq!((is_found(), ids()), (false, 0));
    other_process();
    assert_eq!((is_found(), ids()), (false, 0), "it is remembered");
    let stated = store.stat_many(&[id(0xcd), id(0xab)]).into_iter().map(|entry| entry.expect("readable"));
    assert_eq!(stated.map(|entry| entry.is_some()).collect::<Vec<_>>(), [false, true]);
    assert_eq!((is_found(), ids()), (true, 1));

    std::fs::remove_file(&file).expect("removed");
    let reader = StoreReader::new(vec![Box::new(IndexFolder::new(root.path()))], &ReaderOptions::new());
    assert!(reader.find_now(&id(0xab)).expect("readable").is_none());
    other_process();
    assert!(reader.find(&id(0xab)).expect("readable").is_none());
    assert!(reader.find_now(&id(0xab)).expect("readable").is_some());
    assert!(reader.find(&id(0xab)).expect("readable").is_some());
}

#[test]
fn the_next_store_answers_if_the_first_fails_or_lacks_the_image() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = IndexFolder::new(root.path()).fan_out();
    let bytes = index(0xcd, 1);
    folder.put(&Index::open(&bytes[..]).expect("an index")).expect("written");
    let fake = Fake::new(3);
    let reader = StoreReader::new(vec![fake.store(), Box::new(folder)], &ReaderOptions::new());
    let number = |image: &OpenImage| {
        reader.stores().iter().position(|store| image.store().is_some_and(|of| Arc::ptr_eq(store, of)))
    };
    let store_of = |byte| reader.find(&id(byte)).map(|found| found.as_ref().and_then(number));
    assert_eq!(store_of(0xab).expect("readable"), Some(0));
    assert_eq!(store_of(0xcd).expect("readable"), Some(1));
    assert_eq!(store_of(0xef).expect("readable"), None);
    fake.is_down.store(true, Ordering::Relaxed);
    assert_eq!(store_of(0xcd).expect("the second store answers"), Some(1));
    store_of(0x12).expect_err("nobody knows");
}

#[test]
fn several_images_are_opened_with_one_call_and_their_values_fetched_with_one() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new());
    for _ in 0..2 {
        let opened = reader.stores()[0].open_many(&[0xab, 0xcd, 0xab].map(id));
        let images: Vec<_> = opened.into_iter().map(|image| image.expect("readable")).collect();
        let [Some(image), None, Some(_)] = &images[..] else { panic!("{images:?}") };
        let offsets = [0, 1, 2].map(|number| offset_in(image, number));
        reader.stores()[0].prefetch([
            Some((image, offsets[..2].to_vec())),
            Some((image, Vec::new())),
            Some((image, offsets[1..].to_vec())),
        ]);
        assert!(offsets.iter().all(|offset| image.part_at(*offset).is_ok()));
        assert_eq!(calls(&fake), (1, 1));
    }
    assert_eq!(reader.counts()[0].calls, 2);
}

#[test]
fn values_of_several_images_are_fetched_together_up_to_64_mib() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new());
    let image = reader.find(&id(0xab)).expect("readable").expect("there");
    let offsets = [0, 1, 2].map(|number| offset_in(&image, number));
    for (size, fetched) in [(10, 3), (30, 2), (40, 1), (100, 1)] {
        fake.value_size.store(size << 20, Ordering::Relaxed);
        let images = offsets.map(|offset| Some((&image, vec![offset])));
        assert_eq!(reader.stores()[0].prefetch(images), fetched, "{size} MiB");
    }
}

#[test]
fn threads_that_open_the_same_images_in_another_order_do_not_block_each_other() {
    let fake = Fake::new(3);
    let reader = fake.reader(&ReaderOptions::new());
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let mut ids = [0xab, 0xcd, 0xef].map(id);
            ids.rotate_left(thread % 3);
            let reader = &reader;
            scope.spawn(move || {
                let found = reader.stores()[0].open_many(&ids);
                assert_eq!(found.iter().filter(|image| matches!(image, Ok(Some(_)))).count(), 1);
            });
        }
    });
    assert_eq!(calls(&fake).0, 1, "the threads wait for the first one");
}

#[test]
fn values_in_memory_do_not_answer_for_the_index_that_has_replaced_theirs() {
    let fake = Fake::new(300);
    let reader = fake.reader(&ReaderOptions::new().fresh(Duration::ZERO));
    let value = || {
        let image = reader.stores()[0].open(&id(0xab)).expect("readable").expect("there");
        image.part_at(offset_in(&image, 1)).expect("readable").expect("a value")
    };
    let old = value();
    assert!(Arc::ptr_eq(&old, &value()));
    fake.replace(301);
    let new = value();
    assert!(!Arc::ptr_eq(&old, &new) && Arc::ptr_eq(&new, &value()));
    assert_eq!(calls(&fake).1, 2);
}

#[test]
fn values_give_the_10000_answers_of_the_index() {
    let values = Fake::new(300).store().open(&id(0xab)).expect("readable").expect("there");
    let whole = Index::open(IndexBytes::from(index(0xab, 300))).expect("an index");
    let whole = StoredImage::Index(Arc::new(whole));
    // In functions, in gaps, and past the end.
    for offset in (0..10_000).map(|number| ImageOffset(number * 127)) {
        assert_eq!(name_at(&values, offset), name_at(&whole, offset), "{offset:?}");
    }
}

#[test]
fn an_index_without_lines_does_not_hide_one_of_a_later_store() {
    let root = tempfile::tempdir().expect("a folder");
    let folders = ["a", "b", "c"].map(|name| IndexFolder::new(root.path().join(name)));
    let [bounds, names] = [Grade::Bounds, Grade::Names].map(|grade| index_of_grade(0xab, 9, grade));
    let put = |folder: usize, bytes: &[u8]| {
        folders[folder].publish(&Index::open(bytes).expect("an index")).expect("published");
    };
    let find = || {
        let stores = folders.iter().map(|folder| Box::new(IndexFolder::new(folder.path())) as _);
        let reader = StoreReader::new(stores.collect(), &ReaderOptions::new());
        // The second time, all is in memory.
        let found = [(); 2].map(|()| {
            let image = reader.find(&id(0xab)).expect("readable").expect("there");
            (image.metadata().grade(), image.store().expect("of a store").url().to_string())
        });
        assert_eq!(found[0], found[1]);
        let [(grade, url), _] = found;
        (grade, url.chars().last())
    };
    put(1, &bounds);
    assert_eq!(find(), (Grade::Bounds, Some('b')));
    put(0, &bounds);
    assert_eq!(find(), (Grade::Bounds, Some('a')), "the first of equal ones");
    put(1, &names);
    assert_eq!(find(), (Grade::Names, Some('b')));
    put(2, &index(0xab, 3));
    assert_eq!(find(), (Grade::Lines, Some('c')));
}

#[test]
fn a_store_that_hangs_does_not_keep_images_in_memory_waiting() {
    let fake = Fake::new(3);
    let options = ReaderOptions::new().fresh(Duration::ZERO).patience(Duration::from_millis(1));
    let reader = fake.reader(&options);
    let open = |byte| reader.stores()[0].open(&id(byte));
    assert!(open(0xab).expect("readable").is_some());
    let gate = Gate::default();
    *fake.gate.lock().expect("not poisoned") = Some(gate.clone());
    for _ in 0..20 {
        assert!(open(0xab).expect("in memory").is_some());
    }
    // Other images wait, and their thread is the caller's.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| open(0xcd));
        assert!(open(0xab).expect("in memory").is_some());
        let (asked, _) = calls(&fake);
        assert!(asked <= 1 + 4 + 1, "few threads wait for the store: {asked}");
        fake.replace(5);
        gate.open();
        assert!(other.join().expect("no panic").expect("readable").is_none());
    });
    let functions = || open(0xab).expect("readable").expect("there").metadata().counts.functions;
    while functions() != 5 {
        std::thread::yield_now();
    }
}

#[test]
fn a_store_that_panics_while_it_is_asked_again_is_asked_later() {
    let fake = Fake::new(3);
    let options = ReaderOptions::new().fresh(Duration::ZERO).patience(Duration::from_secs(60));
    let reader = fake.reader(&options);
    let functions = || {
        let opened = reader.stores()[0].open(&id(0xab)).expect("in memory").expect("there");
        opened.metadata().counts.functions
    };
    assert_eq!(functions(), 3);
    fake.panics.store(true, Ordering::Relaxed);
    // More than may ask at one time.
    (0..8).for_each(|_| assert_eq!(functions(), 3));
    fake.panics.store(false, Ordering::Relaxed);
    fake.replace(5);
    assert_eq!(functions(), 5);
}

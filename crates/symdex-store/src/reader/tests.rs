use std::sync::atomic::Ordering;

use symdex::ImageOffset;

use super::*;
use crate::IndexFolder;
use crate::test_stores::fake::{Fake, calls};
use crate::test_stores::{id, index, name_at};

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
    for round in 0..2 {
        let found = image.store().values(image.image(), &[0, 1, last]).expect("readable");
        let is_there: Vec<_> = found.iter().map(Option::is_some).collect();
        assert_eq!(is_there, [true, false, true], "{round}");
        assert_eq!(calls(&fake).1, round + 1, "the lost value is asked for again");
    }
    let counts = &reader.counts()[0];
    assert_eq!((counts.lost_values, counts.from_memory), (2, 2));
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
        assert!(reader.stores()[0].open(&id(0xcd)).is_err_and(|error| error.is_unavailable()));
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
fn the_next_store_answers_if_the_first_fails_or_lacks_the_image() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = IndexFolder::new(root.path()).fan_out();
    let bytes = index(0xcd, 1);
    folder.put(&Index::open(&bytes[..]).expect("an index")).expect("written");
    let fake = Fake::new(3);
    let reader = StoreReader::new(vec![fake.store(), Box::new(folder)], &ReaderOptions::new());
    let store_of = |byte| reader.find(&id(byte)).map(|found| found.map(|image| image.store().number));
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
        let found = reader.stores()[0].values_many(&[
            (image.image(), &[0, 1]),
            (image.image(), &[]),
            (image.image(), &[1, 2]),
        ]);
        let numbers: Vec<_> = found.into_iter().map(|found| found.expect("readable").len()).collect();
        assert_eq!((numbers, calls(&fake)), (vec![2, 0, 2], (1, 1)));
    }
    assert_eq!(reader.counts()[0].calls, 2);
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
        image.store().values(image.image(), &[1]).expect("readable").pop().flatten().expect("not lost")
    };
    let old = value();
    assert!(Arc::ptr_eq(&old, &value()));
    fake.replace(301);
    let new = value();
    assert!(!Arc::ptr_eq(&old, &new) && Arc::ptr_eq(&new, &value()));
    assert_eq!(calls(&fake).1, 2);
}

//! What a store does, on one server and on a cluster, and how many round trips that takes.

use std::path::Path;

use symdex::{ImageId, ImageOffset, Index, LinePolicy, OwnedFrame, Scratch};
use symdex_store::{
    Error, FetchedValue, IndexFolder, PublishOutcome, RedisStore, Store, StoreOptions, StoredImage,
    StoredValues, ValueRequest, open_store,
};

use crate::common::{behaves_as_a_store, entries, id, index, put};
use crate::redis::{store, store_in};
use symdex_testkit::redis::{Cluster, Server};

/// The values of an open image.
pub(crate) fn values(image: &StoredImage) -> &dyn StoredValues {
    let StoredImage::Values(values) = image else { panic!("Redis has values") };
    &**values
}

pub(crate) fn open(store: &RedisStore, byte: u8) -> StoredImage {
    store.open(&id(byte)).unwrap_or_else(|error| panic!("{error}")).expect("there")
}

/// How many values `image` has. Those that are lost do not count.
pub(crate) fn whole(image: &StoredImage) -> usize {
    let numbers: Vec<u64> = image.metadata().value_numbers().into_iter().flatten().collect();
    let fetched = values(image).fetch(&numbers).unwrap_or_else(|error| panic!("{error}"));
    let len = fetched
        .iter()
        .filter_map(FetchedValue::found)
        .inspect(|part| _ = part.verify().expect("intact"))
        .count();
    assert_eq!(len, numbers.len(), "values are lost");
    len
}

pub(crate) fn one_server_behaves_as_a_store() {
    let server = Server::start(&[]);
    let url = server.url().parse().expect("a URL");
    behaves_as_a_store(&*open_store(&url, &StoreOptions::new()).expect("opened"));
    // The values of the index that was replaced expire.
    let left = server.keys();
    assert!(left.iter().all(|key| !key.ends_with("metadata")), "{left:?}");
    for key in left {
        let ttl: u64 = server.text(&["PTTL", &key]).parse().expect("an expiry");
        assert!(ttl <= 60_000, "{key}: {ttl}");
    }
}

pub(crate) fn a_cluster_behaves_as_a_store() {
    let cluster = Cluster::start();
    behaves_as_a_store(&store(&cluster.url(), &StoreOptions::new()));
    a_report_is_two_round_trips_cold_and_one_warm(&store(&cluster.url(), &StoreOptions::new()));
    assert!(cluster.0.iter().all(|server| server.keys().len() > 5), "every node has images");
}

pub(crate) fn a_report_on_one_server_is_two_round_trips_cold_and_one_warm() {
    let server = Server::start(&[]);
    a_report_is_two_round_trips_cold_and_one_warm(&store_in(&server));
}

/// A report of 100 frames in 20 images.
fn a_report_is_two_round_trips_cold_and_one_warm(store: &RedisStore) {
    const IMAGES: u8 = 20;
    for byte in 1..=IMAGES {
        put(store, &index(byte, 40));
    }
    assert_eq!(entries(store).len(), usize::from(IMAGES));
    let ids: Vec<ImageId> = (1..=IMAGES).map(id).collect();
    let before = store.counts();
    let images: Vec<_> =
        store.open_many(&ids).into_iter().map(|image| image.expect("read").expect("there")).collect();
    assert_eq!(store.counts().round_trips - before.round_trips, 1);
    // Five frames in three values of each image.
    let offsets = [0x8, 0x5008, 0x5010, 0x9008, 0x6000].map(ImageOffset);
    let numbers: Vec<u64> = [0, 1, 2].into();
    for warm in [false, true] {
        let before = store.counts();
        let requests: Vec<_> =
            images.iter().map(|image| ValueRequest { values: values(image), numbers: &numbers }).collect();
        let mut scratch = Scratch::default();
        let mut answers = 0;
        for (image, parts) in images.iter().zip(store.fetch_many(&requests)) {
            let parts = parts.expect("read");
            for offset in offsets {
                let number = usize::try_from(image.metadata().value_number(offset)).expect("small");
                let part = parts[number].found().expect("not lost");
                let found = part.lookup(offset, LinePolicy::Statement, &mut scratch).expect("intact");
                answers += usize::from(found.is_some());
            }
        }
        assert_eq!(answers, 5 * usize::from(IMAGES));
        assert_eq!(store.counts().round_trips - before.round_trips, 1, "warm: {warm}");
    }
}

/// The frames at `offset`; `None` for a gap.
fn answer<B: AsRef<[u8]>>(index: &Index<B>, offset: ImageOffset) -> Option<Vec<OwnedFrame>> {
    let mut scratch = Scratch::default();
    Some(index.lookup(offset, LinePolicy::Statement, &mut scratch).expect("intact")?.to_vec())
}

pub(crate) fn values_of_a_real_index_answer_as_the_index() {
    let server = Server::start(&[]);
    let store = store_in(&server);
    let golden = Path::new("../../testdata/golden/v1");
    let files = std::fs::read_dir(golden).expect("golden indexes").map(|file| file.expect("a file").path());
    let mut compared = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "symdex")) {
        let bytes = std::fs::read(&path).expect("readable");
        let index = Index::open(&bytes[..]).expect("an index");
        assert!(!matches!(store.put(&index).expect("put"), PublishOutcome::Repaired { .. }));
        let image = store.open(index.id()).expect("read").expect("there");
        if image.metadata() != index.metadata() {
            continue; // Another golden index of this image is better.
        }
        for offset in (0..index.metadata().image_size.min(0x4000)).step_by(101).map(ImageOffset) {
            let number = image.metadata().value_number(offset);
            let numbers = image.metadata().value_numbers();
            let part = numbers
                .iter()
                .any(|numbers| numbers.contains(&number))
                .then(|| values(&image).fetch(&[number]).expect("read"));
            let expected = answer(&index, offset);
            assert_eq!(
                part.and_then(|part| answer(part[0].found().expect("not lost"), offset)),
                expected,
                "{} {offset:?}",
                path.display()
            );
            compared += usize::from(expected.is_some());
        }
    }
    assert!(compared > 0);
}

pub(crate) fn a_lost_value_is_missing_until_the_index_is_put_again() {
    let server = Server::start(&[]);
    let store = store_in(&server);
    put(&store, &index(0xab, 12));
    let image = open(&store, 0xab);
    let key = server.keys().into_iter().find(|key| key.ends_with("/1")).expect("a value");
    assert_eq!(server.text(&["DEL", &key]), "1");
    let fetched = values(&image).fetch(&[0, 1, 2]).expect("read");
    let [FetchedValue::Index(_), FetchedValue::Lost, FetchedValue::Index(_)] = &fetched[..] else {
        panic!("{fetched:?}")
    };
    let repaired = put(&store, &index(0xab, 12));
    assert_eq!(repaired, PublishOutcome::Repaired { damage: "value 1 was lost".to_owned() });
    assert_eq!(whole(&open(&store, 0xab)), 3);
}

pub(crate) fn damaged_values_and_metadata_are_damage_until_the_index_is_put_again() {
    let server = Server::start(&[]);
    let store = store_in(&server);
    put(&store, &index(0xab, 12));
    let image = open(&store, 0xab);
    let key = server.keys().into_iter().find(|key| key.ends_with("/1")).expect("a value");
    server.run(&["SETRANGE", &key, "20", "xyz"]);
    let fetched = values(&image).fetch(&[0, 1]).expect("readable");
    let [FetchedValue::Index(_), FetchedValue::Damaged(damage)] = &fetched[..] else { panic!("{fetched:?}") };
    assert!(damage.contains("value 1"), "{damage}");
    // A worse index does not win because it is whole, and a damaged one does not win because it was better.
    assert!(matches!(put(&store, &index(0xab, 11)), PublishOutcome::Repaired { .. }));
    assert_eq!(put(&store, &index(0xab, 12)), PublishOutcome::ConflictReplaced);

    server.run(&["SETRANGE", &format!("symdex/1/{{{}}}/metadata", id(0xab)), "30", "xyz"]);
    let error = store.open(&id(0xab)).expect_err("damaged");
    assert!(
        error.cause().is_damage() && error.to_string().starts_with(&store.location(&id(0xab))),
        "{error}"
    );
    assert_eq!(entries(&store).len(), 1);
    assert!(matches!(put(&store, &index(0xab, 12)), PublishOutcome::Repaired { .. }));
    assert_eq!(whole(&open(&store, 0xab)), 3);
}

pub(crate) fn an_open_image_answers_for_a_while_after_it_was_replaced_and_is_then_to_be_opened_again() {
    let server = Server::start(&[]);
    let store = store_in(&server);
    put(&store, &index(0xab, 12));
    let image = open(&store, 0xab);
    let old = server.keys();
    assert_eq!(put(&store, &index(0xab, 13)), PublishOutcome::ConflictReplaced);
    assert_eq!(whole(&image), 3);
    for key in old.iter().filter(|key| !key.ends_with("metadata")) {
        let ttl: u64 = server.text(&["PTTL", key]).parse().expect("an expiry");
        assert!(ttl <= 60_000, "{key}: {ttl}");
        server.run(&["DEL", key]);
    }
    let error = values(&image).fetch(&[0]).expect_err("replaced");
    assert!(matches!(error, Error::Replaced { .. }), "{error}");
    assert!(store.remove(&id(0xab)).expect("removed"));
    assert!(matches!(values(&image).fetch(&[0]), Err(Error::Replaced { .. })));
}

pub(crate) fn a_report_is_answered_from_one_version() {
    let server = Server::start(&[]);
    let options = StoreOptions::new().zstd_level(1);
    crate::common::versions::a_report_is_answered_from_one_version(|| {
        Box::new(store(&server.url(), &options))
    });
}

pub(crate) fn values_are_copied_to_another_redis_and_not_to_files() {
    let (from, to) = (Server::start(&[]), Server::start(&[]));
    let (from, to) = (store_in(&from), store_in(&to));
    put(&from, &index(0xab, 12));
    assert_eq!(from.copy_to(&id(0xab), &to).expect("copied"), Some(PublishOutcome::Written));
    assert_eq!(from.copy_to(&id(0xab), &to).expect("copied"), Some(PublishOutcome::Unchanged));
    assert_eq!(from.copy_to(&id(0xcd), &to).expect("nothing to do"), None);
    assert_eq!(whole(&open(&to, 0xab)), 3);
    assert_eq!(put(&to, &index(0xab, 12)), PublishOutcome::Unchanged);

    let root = tempfile::tempdir().expect("a folder");
    let folder = IndexFolder::new(root.path()).fan_out();
    let error = from.copy_to(&id(0xab), &folder).expect_err("no file").to_string();
    assert!(error.contains("Redis keeps an index as values"), "{error}");
    assert_eq!(from.copy_to(&id(0xcd), &folder).expect("nothing to do"), None);
    put(&folder, &index(0xcd, 3));
    assert_eq!(folder.copy_to(&id(0xcd), &to).expect("copied"), Some(PublishOutcome::Written));
}

use std::fs;
use std::path::Path;

use object_store::memory::InMemory;

use super::*;
use crate::provenance::OnConflict;
use crate::test_stores::{behaves_as_a_store, id, index, name_at, put};

/// A store in the memory of `client`.
pub(super) fn store(client: &Arc<InMemory>, options: &StoreOptions) -> ObjectsStore {
    let url = "s3://bucket/some/prefix".parse().expect("a URL");
    let client: Arc<dyn ObjectStore> = Arc::clone(client) as _;
    let key = Key::parse("some/prefix").expect("a key");
    let level = options.zstd_level.map_or(3, |level| u8::try_from(level).expect("a level"));
    let options = options.clone().zstd_level(level.min(3));
    let mut store = ObjectsStore::new(url, client, key, &options);
    store.cache = options
        .cache
        .as_ref()
        .map(|(folder, size)| Cache::new(folder, *size, &store.url, "").expect("private"));
    store
}

fn with_cache(folder: &Path, size: u64) -> StoreOptions {
    StoreOptions::new().cache(folder.join("cache"), size)
}

/// Writes an object of the image `id(0xab)`.
fn write(client: &InMemory, bytes: &[u8], size: Option<&str>) {
    let mut attributes = object_store::Attributes::new();
    if let Some(size) = size {
        attributes.insert(Attribute::Metadata(SIZE_FIELD.into()), size.to_owned().into());
    }
    let key = Key::parse(format!("some/prefix/ab/{}.symdex", id(0xab))).expect("a key");
    let options = object_store::PutOptions { attributes, ..Default::default() };
    futures_util::FutureExt::now_or_never(client.put_opts(&key, bytes.to_vec().into(), options))
        .expect("at once")
        .expect("written");
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).expect("compressed")
}

/// The names of the indexes in the cache.
fn cached(folder: &Path) -> Vec<String> {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten();
    let mut names: Vec<_> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".symdex"));
    names.sort();
    names
}

#[test]
fn object_stores_behave_as_stores() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = [
        StoreOptions::new(),
        StoreOptions::new().zstd_level(0),
        with_cache(folder.path(), 1 << 20),
        with_cache(folder.path(), 0),
    ];
    for options in all {
        behaves_as_a_store(&store(&Arc::default(), &options));
    }
}

#[test]
fn an_object_is_named_by_the_id_and_states_its_encoding_and_size() {
    let client = Arc::default();
    let store = store(&client, &StoreOptions::new());
    let bytes = index(0xab, 2);
    put(&store, &bytes);
    let Ok(Some(ObjectState::Object(object))) = store.find(&id(0xab), GetOptions::new()) else {
        panic!("no object")
    };
    assert_eq!(object.meta.location.as_ref(), format!("some/prefix/ab/{}.symdex", id(0xab)));
    assert_eq!(object.attributes.get(&Attribute::ContentEncoding).map(AsRef::as_ref), Some("zstd"));
    assert_eq!(store.location(&id(0xab)), format!("s3://bucket/some/prefix/ab/{}.symdex", id(0xab)));
    let stat = store.stat(&id(0xab)).expect("readable").expect("there");
    assert_eq!(stat.index_size, Some(bytes.len() as u64));
}

#[test]
fn objects_that_are_not_as_stated_are_damaged_and_are_repaired() {
    let good = index(0xab, 2);
    let mut changed = good.clone();
    changed[300] ^= 1;
    let bomb = zstd(&vec![0; 64 << 20]);
    let size = good.len().to_string();
    let mut followed = zstd(&good);
    followed.extend_from_slice(b"more");
    let cut = &zstd(&good)[..100];
    let cases: [(&[u8], Option<&str>, &str); 8] = [
        (b"text", None, "not a symdex index"),
        (cut, None, "cannot be decompressed"),
        (&followed, None, "bytes follow"),
        (&zstd(&good), Some("7"), "more than 7 bytes of index; expected 7"),
        (&zstd(&good), Some("1000000"), "fewer than 1000000 bytes"),
        (&bomb, None, "more than"),
        (&bomb, Some(&size), "more than"),
        (&zstd(&changed), Some(&size), "checksum"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for options in [StoreOptions::new(), with_cache(folder.path(), 1 << 20)] {
        for (bytes, stated, text) in &cases {
            let client = Arc::default();
            let store = store(&client, &options);
            write(&client, bytes, *stated);
            let error = store.open(&id(0xab)).map(drop).expect_err(text);
            assert!(error.cause().is_damage() && error.to_string().contains(text), "{text}: {error}");
            let (error, location) = (error.to_string(), store.location(&id(0xab)));
            assert!(error.starts_with(&location), "{error}");
            assert!(cached(folder.path()).is_empty(), "{text}");
            let outcome = put(&store, &good);
            assert!(matches!(outcome, PublishOutcome::Repaired { .. }), "{outcome:?}");
            assert!(store.open(&id(0xab)).expect("repaired").is_some());
            store.remove(&id(0xab)).expect("removed");
        }
    }
}

/// A put of the index that the object states reads its metadata only.
#[test]
fn a_damaged_object_is_read_by_a_put_that_replaces_and_by_one_that_knows_of_the_damage() {
    let client = Arc::default();
    let first = store(&client, &StoreOptions::new().zstd_level(0));
    let good = index(0xab, 2);
    put(&first, &good);
    let damage = || {
        let Ok(Some(ObjectState::Object(object))) = first.find(&id(0xab), GetOptions::new().with_head(true))
        else {
            panic!("no object")
        };
        let mut changed = good.clone();
        changed[300] ^= 1;
        let options = object_store::PutOptions { attributes: object.attributes, ..Default::default() };
        let written = client.put_opts(&object.meta.location, changed.into(), options);
        futures_util::FutureExt::now_or_never(written).expect("at once").expect("written");
    };
    let put_to = |store: &ObjectsStore, on_conflict| {
        let options = PutOptions::new().on_conflict(on_conflict);
        store.put_with(&Index::open(&good[..]).expect("an index"), &options).expect("put")
    };
    damage();
    let second = store(&client, &StoreOptions::new());
    assert_eq!(put_to(&second, OnConflict::More), PublishOutcome::Unchanged);
    assert!(matches!(put_to(&second, OnConflict::Replace), PublishOutcome::Repaired { .. }));
    assert_eq!(put_to(&second, OnConflict::Replace), PublishOutcome::Unchanged);
    damage();
    assert!(second.open(&id(0xab)).map(drop).expect_err("damaged").cause().is_damage());
    assert!(matches!(put_to(&second, OnConflict::More), PublishOutcome::Repaired { .. }));
    assert!(second.open(&id(0xab)).expect("repaired").is_some());
}

#[test]
fn an_index_has_one_object_whatever_its_compression() {
    let client = Arc::default();
    let compressed = store(&client, &StoreOptions::new());
    let plain = store(&client, &StoreOptions::new().zstd_level(0));
    let (small, large) = (index(0xab, 2), index(0xab, 5));
    put(&compressed, &small);
    assert!(put(&plain, &large) != PublishOutcome::Written, "the object is replaced");
    for store in [&compressed, &plain] {
        assert_eq!(*store.get(&id(0xab)).expect("readable").expect("there"), large[..]);
        let stated = store.stat(&id(0xab)).expect("readable").expect("there");
        assert_eq!((stated.index_size, stated.stored_size), (Some(large.len() as u64), large.len() as u64));
    }
    // The worse index does not come back, and one removal removes all.
    assert_eq!(put(&compressed, &small), PublishOutcome::ConflictKept);
    assert!(plain.remove(&id(0xab)).expect("removed"));
    assert!(compressed.open(&id(0xab)).expect("readable").is_none());
}

#[test]
fn an_object_of_another_image_is_refused_and_replaced() {
    let client = Arc::default();
    let store = store(&client, &StoreOptions::new());
    write(&client, &zstd(&index(0xcd, 5)), None);
    let error = store.open(&id(0xab)).map(drop).expect_err("another image");
    assert!(matches!(error, Error::OtherImage { .. }), "{error}");
    assert!(matches!(put(&store, &index(0xab, 1)), PublishOutcome::Repaired { .. }));
}

#[test]
fn the_cache_answers_until_it_is_stale_and_then_asks_for_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Arc::default();
    let store = store(&client, &with_cache(folder.path(), 1 << 20));
    let functions = || {
        let image = store.open(&id(0xab)).expect("readable")?;
        Some(image.metadata().counts.functions)
    };
    write(&client, &zstd(&index(0xab, 1)), None);
    assert_eq!(functions(), Some(1));
    // Another machine writes a better index. The fresh index of the cache still answers.
    write(&client, &zstd(&index(0xab, 2)), None);
    assert_eq!(functions(), Some(1));
    let path = walkdir::WalkDir::new(folder.path()).into_iter().flatten().map(walkdir::DirEntry::into_path);
    let tag = path.into_iter().find(|path| path.extension().is_some_and(|e| e == "tag")).expect("a tag");
    let make_stale = || {
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::open(&tag).expect("a file").set_modified(hour_ago).expect("a time");
    };
    make_stale();
    assert_eq!(functions(), Some(2));
    // An object that did not change is not fetched again.
    make_stale();
    let before = fs::read_to_string(&tag).expect("a tag");
    assert_eq!(functions(), Some(2));
    assert_eq!(fs::read_to_string(&tag).expect("a tag"), before);
    assert!(
        tag.metadata().expect("a file").modified().expect("a time").elapsed().expect("past").as_secs() < 600
    );
    make_stale();
    let key = store.key(&id(0xab));
    store.run(&key, |client, key| async move { client.delete(&key).await }).expect("deleted");
    assert_eq!(functions(), None);
    assert!(cached(folder.path()).is_empty());
}

#[test]
fn an_image_that_is_absent_is_remembered_until_it_is_put_through_the_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Arc::default();
    let options = with_cache(folder.path(), 1 << 20);
    let (one, other) = (store(&client, &options), store(&client, &options));
    let is_there = |store: &ObjectsStore| store.open(&id(0xab)).expect("readable").is_some();
    assert!(!is_there(&one));
    // An upload by another machine is not seen at once.
    write(&client, &zstd(&index(0xab, 1)), None);
    assert!(!is_there(&one) && !is_there(&other), "the object store is not asked");
    assert!(is_there(&store(&client, &StoreOptions::new())), "without the cache it is asked");
    put(&other, &index(0xab, 2));
    assert!(is_there(&one) && is_there(&other));
    // What others have removed is absent as well.
    assert!(one.remove(&id(0xab)).expect("removed"));
    assert!(!is_there(&other));
    put(&one, &index(0xab, 1));
    assert!(is_there(&other));
}

#[test]
fn after_a_put_the_cache_is_not_older_than_the_index_that_was_put() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = Arc::default();
    let cached = store(&client, &with_cache(folder.path(), 1 << 20));
    let other = store(&client, &StoreOptions::new());
    let functions = || Some(cached.open(&id(0xab)).expect("readable")?.metadata().counts.functions);
    assert_eq!(functions(), None);
    for round in 1..=2 {
        put(&other, &index(0xab, round));
        assert_eq!(functions(), Some(u64::from(round)).filter(|round| *round > 1).map(|round| round - 1));
        // It is there already, as after a put whose answer was lost.
        assert_eq!(put(&cached, &index(0xab, round)), PublishOutcome::Unchanged);
        assert_eq!(functions(), Some(u64::from(round)));
    }
}

#[test]
fn two_servers_with_a_bucket_of_one_name_have_a_cache_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let bucket_of = |server: &str, functions: u16| {
        let mut bucket = store(&Arc::default(), &StoreOptions::new());
        bucket.cache = Some(Cache::new(folder.path(), 1 << 20, &bucket.url, server).expect("private"));
        put(&bucket, &index(0xab, functions));
        bucket
    };
    let buckets = [bucket_of("http://one", 1), bucket_of("http://two", 2)];
    for bucket in buckets.iter().chain(&buckets) {
        let image = bucket.open(&id(0xab)).expect("readable").expect("there");
        let is_first = std::ptr::eq(bucket, &raw const buckets[0]);
        assert_eq!(image.metadata().counts.functions, if is_first { 1 } else { 2 });
    }
}

#[test]
fn a_damaged_index_in_the_cache_is_fetched_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&Arc::default(), &with_cache(folder.path(), 1 << 20));
    put(&store, &index(0xab, 3));
    assert!(store.open(&id(0xab)).expect("readable").is_some());
    let files = walkdir::WalkDir::new(folder.path()).into_iter().flatten().map(walkdir::DirEntry::into_path);
    let path =
        files.into_iter().find(|path| path.extension().is_some_and(|e| e == "symdex")).expect("an index");
    fs::write(&path, b"damaged").expect("written");
    assert!(store.open(&id(0xab)).expect("fetched").is_some());
    assert_eq!(fs::read(&path).expect("readable"), index(0xab, 3));
}

#[test]
fn the_cache_keeps_the_indexes_that_were_used_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let size = index(1, 40).len() as u64;
    let store = store(&Arc::default(), &with_cache(folder.path(), 4 * size));
    for byte in 1..=8 {
        put(&store, &index(byte, 40));
        assert!(store.open(&id(byte)).expect("readable").is_some());
    }
    // 90 % of the size have room for three.
    let names: Vec<_> = [7, 8].map(|byte| format!("{}.symdex", id(byte))).into();
    let kept = cached(folder.path());
    assert!(kept.ends_with(&names) && kept.len() <= 4, "{kept:?}");
}

#[cfg(unix)]
#[test]
fn a_cache_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("permitted");
    let url = "s3://bucket".parse().expect("a URL");
    let error = Cache::new(folder.path(), 1, &url, "").expect_err("not private");
    assert!(error.to_string().contains("other users may write"), "{error}");
}

#[test]
fn writers_of_one_object_leave_the_best_index() {
    let client: Arc<InMemory> = Arc::default();
    let indexes: Vec<_> = (1..=64).map(|functions| index(0xab, functions)).collect();
    for round in 0..5 {
        std::thread::scope(|scope| {
            for bytes in &indexes {
                scope.spawn(|| put(&store(&client, &StoreOptions::new()), bytes));
            }
        });
        let store = store(&client, &StoreOptions::new());
        let kept = store.get(&id(0xab)).expect("readable").expect("there");
        assert!(*kept == indexes[63][..], "round {round}");
        assert!(store.remove(&id(0xab)).expect("removed"));
    }
}

#[test]
fn every_home_gives_the_same_10000_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = index(0xab, 300);
    let mut homes: Vec<Box<dyn Store>> = vec![Box::new(crate::IndexFolder::new(folder.path()).fan_out())];
    for options in
        [StoreOptions::new(), StoreOptions::new().zstd_level(0), with_cache(folder.path(), 1 << 20)]
    {
        homes.push(Box::new(store(&Arc::default(), &options)));
    }
    for home in &homes {
        put(&**home, &bytes);
    }
    let images: Vec<_> =
        homes.iter().map(|home| home.open(&id(0xab)).expect("readable").expect("there")).collect();
    let whole = Index::open(IndexBytes::from(bytes)).expect("an index");
    let whole = StoredImage::Index(Arc::new(whole));
    let mut named = 0;
    for number in 0..10_000 {
        // In functions, in gaps, and past the end.
        let offset = symdex::ImageOffset(number * 127);
        let expected = name_at(&whole, offset);
        named += usize::from(expected.is_some());
        for image in &images {
            assert_eq!(name_at(image, offset), expected, "{offset:?}");
        }
    }
    assert!((300..9000).contains(&named), "{named}");
}

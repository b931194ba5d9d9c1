//! Images expire a time after their last use. The times in these tests are seconds instead of days.

use std::thread::sleep;
use std::time::{Duration, Instant};

use symdex_store::{Store, StoreOptions};

use crate::common::{entries, id, index, index_of, long_id, put};
use crate::redis::layout::{open, whole};
use crate::redis::{store, store_in};
use symdex_testkit::redis::Server;

const TTL: Duration = Duration::from_secs(4);

pub(crate) fn a_used_image_does_not_expire_and_an_unused_one_expires_as_a_whole() {
    let server = Server::start(&[]);
    let options = StoreOptions::new().ttl(TTL);
    let stores = [store(&server.url(), &options), store(&server.url(), &options)];
    put(&stores[0], &index(0xab, 12));
    put(&stores[0], &index(0xcd, 12));
    // One store keeps the metadata, the other one opens the image each time.
    let kept = open(&stores[0], 0xab);
    let renewals = || stores.iter().map(|store| store.counts().renewals).sum::<u64>();
    for _ in 1..=3 {
        sleep(TTL / 2);
        let (before, begun) = (renewals(), Instant::now());
        for _ in 0..20 {
            assert_eq!((whole(&kept), whole(&open(&stores[1], 0xab))), (3, 3));
        }
        // Both stores have seen that it is time to renew, and one of them was first.
        wait_for(|| renewals() > before);
        // On a slow machine, a tenth of the time passes during the reads.
        let tenths = begun.elapsed().as_millis() / (TTL / 10).as_millis();
        assert!(u128::from(renewals() - before) <= 1 + tenths, "{} of {tenths}", renewals() - before);
    }
    assert!(stores[0].open(&id(0xcd)).expect("read").is_none(), "it was not used");
    let ids: Vec<_> = entries(&stores[0]).into_iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [id(0xab)]);
    sleep(TTL);
    assert!(stores[1].open(&id(0xab)).expect("read").is_none());
    // The values outlive the metadata by a tenth.
    wait_for(|| server.keys().is_empty());
}

/// Waits until `is_true`, which does not take long.
fn wait_for(is_true: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_true() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it does not become true");
}

/// The milliseconds until each key expires, that of the metadata first.
fn expiries(server: &Server) -> Vec<u64> {
    let mut keys = server.keys();
    keys.sort_by_key(|key| !key.ends_with("metadata"));
    keys.iter().map(|key| server.text(&["PEXPIRETIME", key]).parse().expect("an expiry")).collect()
}

pub(crate) fn all_values_of_an_image_expire_at_one_time() {
    let server = Server::start(&[]);
    let store = store(&server.url(), &StoreOptions::new());
    put(&store, &index(0xab, 12));
    // Redis 7.0 reads the clock for each command of a script.
    let is_at_once = |value: u64, other: u64| value.abs_diff(other) < 1000;
    let is_one_time = |expiries: &[u64]| {
        let (metadata, values) = expiries.split_first().expect("metadata");
        values.len() == 3 && values.iter().all(|value| is_at_once(*value, values[0]) && *value > *metadata)
    };
    let before = expiries(&server);
    assert!(is_one_time(&before), "{before:?}");
    // A use during the first tenth of the time changes nothing.
    assert!(store.touch(&id(0xab)).expect("touched"));
    assert_eq!(expiries(&server), before);
    for key in server.keys() {
        server.run(&["PEXPIRE", &key, "1000000000"]);
    }
    assert!(store.touch(&id(0xab)).expect("touched"));
    let after = expiries(&server);
    assert!(is_one_time(&after) && after[0] >= before[0], "{before:?} {after:?}");
    assert_eq!(store.counts().renewals, 1);
    // Opening is a use.
    for key in server.keys() {
        server.run(&["PEXPIRE", &key, "1000000000"]);
    }
    _ = open(&store, 0xab);
    wait_for(|| store.counts().renewals == 2);
    assert!(is_one_time(&expiries(&server)));
    // So is putting the same index.
    for key in server.keys() {
        server.run(&["PEXPIRE", &key, "1000000000"]);
    }
    put(&store, &index(0xab, 12));
    assert!(is_one_time(&expiries(&server)) && store.counts().renewals == 3);
}

pub(crate) fn gc_among_writers_and_readers_removes_nothing_fresh() {
    let server = Server::start(&[]);
    crate::common::collected::gc_keeps_what_is_fresh(|| Box::new(store(&server.url(), &StoreOptions::new())));
}

pub(crate) fn gc_removes_what_was_not_used_for_a_time() {
    let server = Server::start(&[]);
    let day = Duration::from_secs(24 * 60 * 60);
    let store = store_in(&server);
    put(&store, &index(0xab, 12));
    put(&store, &index(0xcd, 12));
    // It was used 31 of 45 days ago.
    let key = format!("symdex/1/{{{}}}/metadata", id(0xab));
    server.run(&["PEXPIRE", &key, &(14 * day.as_millis()).to_string()]);
    let entry = store.stat(&id(0xab)).expect("read").expect("there");
    let age = entry.last_use.expect("known").elapsed().expect("in the past");
    assert!(age > 30 * day && age < 32 * day, "{age:?}");
    let counts = store.gc(30 * day).expect("collected");
    assert_eq!((counts.removed, counts.kept, counts.failed), (1, 1, 0));
    assert_eq!(counts.removed_bytes, entry.stored_size);
    assert_eq!(entries(&store).len(), 1);
    assert_eq!(server.keys().len(), 4, "the values are gone, too");
}

pub(crate) fn the_set_of_long_ids_lives_as_long_as_their_values() {
    let server = Server::start(&[]);
    let store = store(&server.url(), &StoreOptions::new());
    let (whole, set) = (long_id(0xab, 7), format!("symdex/1/{{{}}}/ids", id(0xab)));
    put(&store, &index_of(whole.clone(), 12));
    let of_start = || store.ids_from(&[id(0xab)]).remove(0).expect("readable");
    let expiry = |key: &str| server.text(&["PEXPIRETIME", key]).parse::<u64>().expect("an expiry");
    let value = server.keys().into_iter().find(|key| key.ends_with("/0")).expect("a value");
    assert!(expiry(&set).abs_diff(expiry(&value)) < 10, "{} {}", expiry(&set), expiry(&value));
    // A use of one image puts off the expiry of the set, and another image with a shorter time does not shorten it.
    for key in server.keys() {
        server.run(&["PEXPIRE", &key, "1000000000"]);
    }
    assert!(store.touch(&whole).expect("touched"));
    let renewed = expiry(&set);
    assert!(renewed.abs_diff(expiry(&value)) < 10);
    let short = crate::redis::store(&server.url(), &StoreOptions::new().ttl(Duration::from_secs(60)));
    put(&short, &index_of(long_id(0xab, 9), 3));
    assert_eq!((expiry(&set), of_start().len()), (renewed, 2));
    // An image that has expired is in the set, and is not found. A use of the other one writes a lost set again.
    server.run(&["DEL", &format!("symdex/1/{{{}}}01020309/metadata", id(0xab))]);
    assert_eq!(of_start(), std::slice::from_ref(&whole));
    server.run(&["DEL", &set]);
    assert!(of_start().is_empty());
    for key in server.keys() {
        server.run(&["PEXPIRE", &key, "1000000000"]);
    }
    assert!(store.touch(&whole).expect("touched"));
    assert_eq!(of_start(), [whole]);
}

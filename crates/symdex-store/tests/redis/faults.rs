//! Slow, lost and restarted servers.

use std::time::Duration;

use symdex::{Cause, Index};
use symdex_store::{PublishOutcome, RedisStore, Store, StoreOptions};

use crate::common::{id, index, put};
use crate::redis::layout::{open, whole};
use crate::redis::{store, store_in};
use symdex_testkit::proxy::{Fault, Proxy};
use symdex_testkit::redis::{Server, free_port};

fn through(proxy: &Proxy, timeout: Duration) -> RedisStore {
    store(&format!("redis://127.0.0.1:{}/0", proxy.port), &StoreOptions::new().timeout(timeout))
}

const LONG: Duration = Duration::from_secs(60);

pub(crate) fn lost_connections_and_half_answers_are_retried() {
    let server = Server::start(&[]);
    put(&store_in(&server), &index(0xab, 12));
    let proxy = Proxy::start(server.port);
    // The replies have more bytes than this.
    let cuts = [0, 1, 5, 9, 60, 200, 400, 600].map(Fault::CutAfter);
    for fault in [Fault::Refused].into_iter().chain(cuts) {
        proxy.spoil(fault, 2);
        let store = through(&proxy, LONG);
        assert_eq!(whole(&open(&store, 0xab)), 3, "{fault:?}");
        assert_eq!(store.counts().retries, 2, "{fault:?}");
    }
    assert_eq!(proxy.connections(), 9 * 3);
}

pub(crate) fn a_bit_that_flips_on_the_way_is_no_damage() {
    let server = Server::start(&[]);
    put(&store_in(&server), &index(0xab, 12));
    let proxy = Proxy::start(server.port);
    // In the metadata and in the values.
    for at in (150..1000).step_by(50) {
        proxy.spoil(Fault::FlipAt(at), 1);
        let store = through(&proxy, LONG);
        assert_eq!(whole(&open(&store, 0xab)), 3, "{at}");
        assert_eq!(store.counts().round_trips, 3, "{at}: what was damaged is read again");
    }
}

pub(crate) fn a_publisher_with_lost_connections_leaves_a_whole_index() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port);
    for round in 0..16_u16 {
        proxy.spoil(Fault::CutAfter(usize::from(round) * 4), 2);
        let functions = 12 + round;
        let bytes = index(0xab, functions);
        let new = Index::open(&bytes[..]).expect("an index");
        // A command whose reply was lost is sent again and must do no harm.
        let outcome = through(&proxy, LONG).put(&new).expect("put");
        assert!(matches!(outcome, PublishOutcome::Written | PublishOutcome::ConflictReplaced), "{outcome:?}");
        proxy.spoil(Fault::None, 0);
        let image = open(&store_in(&server), 0xab);
        assert_eq!(image.metadata(), new.metadata());
        whole(&image);
    }
}

pub(crate) fn late_answers_are_awaited_and_silence_is_a_time_out() {
    let server = Server::start(&[]);
    put(&store_in(&server), &index(0xab, 12));
    let proxy = Proxy::start(server.port);
    proxy.spoil(Fault::Late(Duration::from_millis(100)), 1);
    let patient = through(&proxy, LONG);
    assert_eq!((whole(&open(&patient, 0xab)), patient.counts().retries), (3, 0));
    proxy.spoil(Fault::Silent, u32::MAX);
    let error = through(&proxy, Duration::from_millis(300)).open(&id(0xab)).expect_err("silence");
    assert!(error.cause() == Cause::Unavailable, "{error}");
    assert!(error.to_string().contains("redis://127.0.0.1"), "{error}");
}

pub(crate) fn a_server_that_is_not_there_is_unavailable() {
    let store = store(&format!("redis://127.0.0.1:{}", free_port()), &StoreOptions::new());
    let error = store.open(&id(0xab)).expect_err("nothing there");
    assert!(error.cause() == Cause::Unavailable && error.to_string().contains("cannot read"), "{error}");
    assert_eq!(store.counts().retries, 6);
}

pub(crate) fn a_restarted_server_answers_again_through_the_same_store() {
    let mut server = Server::start(&[]);
    let store = store_in(&server);
    put(&store, &index(0xab, 12));
    let image = open(&store, 0xab);
    server.kill();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(|| store.open(&id(0xab)))).collect();
        server.restart();
        readers.into_iter().map(|reader| reader.join().expect("no panic")).collect()
    });
    server.wait();
    // The server had no disk. Each reader has found that nothing is there, or that the server was not there yet.
    for found in threads {
        assert!(
            found.as_ref().is_ok_and(Option::is_none)
                || found.as_ref().is_err_and(|e| e.cause() == Cause::Unavailable)
        );
    }
    assert!(store.open(&id(0xab)).expect("read").is_none());
    crate::redis::layout::values(&image).fetch(&[0]).expect_err("it is gone");
    assert_eq!(put(&store, &index(0xab, 12)), PublishOutcome::Written);
    assert_eq!(whole(&open(&store, 0xab)), 3);
}

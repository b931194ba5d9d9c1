//! Parallel work with results in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use symdex_pipeline::{in_order, pool};

#[test]
fn results_come_in_order_and_few_are_in_flight() {
    let begun = AtomicUsize::new(0);
    let mut ended = 0;
    let work = |item: usize| {
        begun.fetch_add(1, Ordering::SeqCst);
        item
    };
    let done = |item| {
        assert_eq!(item, ended);
        assert!(begun.load(Ordering::SeqCst) <= ended + 3);
        ended += 1;
        Ok::<(), ()>(())
    };
    in_order(&pool(3).expect("threads"), 3, 0..100, work, done).expect("no failure");
    assert_eq!(ended, 100);
}

#[test]
fn a_failure_ends_the_work() {
    let begun = AtomicUsize::new(0);
    let work = |_| begun.fetch_add(1, Ordering::SeqCst);
    assert_eq!(in_order(&pool(3).expect("threads"), 2, 0..100, work, |_| Err("enough")), Err("enough"));
    assert!(begun.load(Ordering::SeqCst) <= 2);
}

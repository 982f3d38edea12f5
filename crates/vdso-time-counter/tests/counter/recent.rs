//! The last reading that was kept.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use test_support::child;
use vdso_time_counter as counter;

use crate::kernel;

#[test]
fn recent_is_the_time_of_the_last_refresh_and_the_first_call_refreshes() {
    child::forked(|| {
        let before = kernel(libc::CLOCK_MONOTONIC);
        let first = counter::recent();
        assert!((before..=kernel(libc::CLOCK_MONOTONIC)).contains(&first.as_nanos()), "{first:?}");
        thread::sleep(Duration::from_millis(1));
        assert_eq!(counter::recent(), first);
        let second = counter::refresh();
        assert!(second > first);
        assert_eq!(counter::recent(), second);
    });
}

#[test]
fn recent_is_never_earlier_than_a_refresh_that_happened_before() {
    child::forked(|| {
        let latest = AtomicI64::new(0);
        let read = |turn: i64| {
            let before = latest.load(Ordering::Acquire);
            let now = if turn % 2 == 0 { counter::refresh() } else { counter::recent() }.as_nanos();
            assert!(now >= before, "{now} after {before}");
            latest.store(now, Ordering::Release);
        };
        thread::scope(|scope| {
            for turn in 0..4 {
                scope.spawn(move || (turn..turn + 100_000).for_each(read));
            }
        });
    });
}

#[test]
#[cfg(feature = "std")]
fn a_refresher_refreshes_until_it_is_dropped() {
    let until = |done: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(20), "it does not come");
        }
    };
    child::forked(|| {
        let start = counter::recent();
        let refresher = counter::Refresher::start(Duration::from_millis(1)).unwrap();
        until(&|| counter::recent() > start + Duration::from_millis(20));
        drop(refresher);
        until(&|| {
            let seen = counter::recent();
            thread::sleep(Duration::from_millis(200)); // a busy machine may not run the thread for long
            counter::recent() == seen
        });
    });
}

//! Tests of what differs from quanta. `cargo xtask clients` runs quanta's own tests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use vdso_time_quanta::minstant::{Anchor, Atomic};
use vdso_time_quanta::{Clock, Instant, Mock, Upkeep, set_recent, with_clock};

/// Longer than any machine needs for an event that a test waits for.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn no_thread_reads_a_time_before_one_that_it_or_with_ordered_another_thread_read() {
    let latest = Atomic::new(Instant::ZERO);
    let read = |clock: &Clock| {
        let before = latest.load(Acquire);
        let raw = clock.scaled(clock.raw());
        let now = Instant::now();
        assert!(raw <= now, "{raw:?} {now:?}");
        assert!(
            before <= raw || !cfg!(feature = "ordered"),
            "{before:?} {raw:?}"
        );
        latest.store(now, Release);
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    read(&Clock::new());
                }
            });
        }
    });
}

/// Held by a test that needs the recent time for itself.
static RECENT: Mutex<()> = Mutex::new(());

#[test]
fn recent_does_not_go_back_and_is_now_until_it_is_set() {
    let _alone = RECENT.lock();
    let start = Instant::now();
    assert!(Clock::new().recent() >= start && Instant::recent() >= start);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    let before = Instant::recent();
                    set_recent(Instant::now());
                    assert!(Instant::recent() >= before);
                }
            });
        }
    });
    // An upkeep continues from that recent time, and its end does not wait for the interval.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let before = Instant::now();
        let upkeep = Upkeep::new(Duration::from_secs(3600)).start();
        let recent = Clock::new().recent();
        // By then the upkeep waits for its interval to pass.
        thread::sleep(Duration::from_millis(50));
        drop(upkeep);
        sender.send(recent >= before).unwrap();
    });
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(true));
    // A mock moves the recent time back.
    let (clock, mock) = Clock::mock();
    mock.increment(5_u64);
    with_clock(&clock, || set_recent(Instant::now()));
    assert_eq!(Instant::recent(), clock.now());
    set_recent(Instant::ZERO);
}

#[test]
fn an_upkeep_replaces_a_recent_time_from_the_future() {
    let _alone = RECENT.lock();
    let (clock, mock) = Clock::mock();
    mock.increment(u64::MAX);
    drop(Upkeep::new_with_clock(LIMIT, clock.clone()).start());
    assert_eq!(Instant::recent(), clock.now());
    let before = Instant::now();
    let upkeep = Upkeep::new(Duration::from_millis(1)).start();
    let is_renewed = || (before..before + LIMIT).contains(&Instant::recent());
    assert!(is_renewed());
    set_recent(before + 2 * LIMIT);
    let is_renewed_then = |_| {
        thread::sleep(Duration::from_millis(1));
        is_renewed()
    };
    assert!((0..10_000).any(is_renewed_then), "{upkeep:?}");
    drop(upkeep);
    set_recent(Instant::ZERO);
    // A mock's time replaces one that is later by only some nanoseconds.
    for nanos in [500_u64, 5] {
        let (clock, mock) = Clock::mock();
        mock.increment(nanos);
        drop(Upkeep::new_with_clock(LIMIT, clock.clone()).start());
        assert_eq!(Instant::recent(), clock.now());
    }
    set_recent(Instant::ZERO);
}

#[test]
fn a_mock_ends_with_its_closure_even_if_that_panics() {
    let (clock, mock) = Clock::mock();
    mock.increment(Duration::from_nanos(7));
    let nested = || with_clock(&Clock::new(), Instant::now);
    with_clock(&clock, || assert!(nested() > Instant::now()));
    let panics = || with_clock(&clock, || panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(Instant::now() > clock.now());
    let mock = Mock::clone(&mock);
    mock.increment(1_u64);
    assert_eq!(clock.raw(), 8);
    mock.decrement(1_u64);
    assert!(catch_unwind(|| mock.decrement(8_u64)).is_err());
    assert_eq!(mock.value(), 7);
}

#[test]
fn the_end_of_a_thread_can_read_the_time() {
    struct AtEnd(mpsc::Sender<Instant>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            self.0.send(Instant::now()).unwrap();
        }
    }
    thread_local!(static AT_END: std::cell::OnceCell<AtEnd> = const { std::cell::OnceCell::new() });

    let (sender, receiver) = mpsc::channel();
    let start = Instant::now();
    thread::spawn(move || {
        AT_END.with(|at_end| at_end.set(AtEnd(sender)).ok());
        // A thread-local that is initialized later is destroyed earlier.
        with_clock(&Clock::mock().0, Instant::now)
    });
    assert!(receiver.recv_timeout(LIMIT).unwrap() >= start);
}

#[test]
fn an_anchor_converts_to_wall_time() {
    let nanos = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let before = nanos();
    let anchor = Anchor::new();
    let unix = u128::from(Instant::now().as_unix_nanos(&anchor));
    // The wall clock may be slewed meanwhile.
    assert!(
        (before..nanos() + 1_000_000).contains(&unix),
        "{before} {unix}"
    );
}

//! The clock under loom. One or two of the readers make the next segment.
//!
//! The latch has tests of its own. Here, a copy of its words is read and written at the same time;
//! only the sequence number and the high-water mark are loom's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64 as Unmodelled, Ordering::Relaxed};

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::engine::clock::CounterClock;
use crate::engine::source::{Keeper, Source};
use crate::engine::status::Unavailable;
use crate::{CLOCK, check};

/// A counter of 1 GHz, and a kernel's clock. Every other read of that clock is ahead. loom runs one
/// thread at a time, so all threads share the counter, and it orders nothing.
struct Machine {
    nanos: Unmodelled,
    reads: Unmodelled,
    /// loom may run another thread before a read.
    point: AtomicU64,
    /// Whether there is one.
    is_shared: AtomicBool,
    is_unavailable: AtomicBool,
}

/// How far ahead. A segment without a high-water mark would go back by that.
const LEAD: u64 = 1000;
const MILLI: u64 = 1_000_000;

impl Machine {
    fn pass(&self, nanos: u64) -> u64 {
        self.nanos.fetch_add(nanos, Relaxed) + nanos
    }
}

impl Source for Arc<Machine> {
    fn ticks(&self) -> u64 {
        self.ticks_ordered()
    }

    fn ticks_ordered(&self) -> u64 {
        if self.is_shared.load(Relaxed) {
            self.point.load(Relaxed);
        }
        self.pass(10)
    }

    fn monotonic(&self) -> Option<u64> {
        Some(self.ticks_ordered() + LEAD * (self.reads.fetch_add(1, Relaxed) % 2))
    }

    fn realtime(&self) -> Option<i64> {
        Some(self.pass(10) as i64)
    }

    fn raw(&self) -> Option<i64> {
        Some(self.pass(10) as i64)
    }

    fn detect(&self, _: bool) -> Result<Keeper, Unavailable> {
        if self.is_unavailable.load(Relaxed) {
            Err(Unavailable::ClockSource)
        } else {
            Ok(Keeper::Kernel)
        }
    }
}

type Clock = CounterClock<Arc<Machine>>;

fn fast(clock: &Clock) -> Option<u64> {
    clock.monotonic(Source::ticks_ordered)
}

fn read(clock: &Clock) -> u64 {
    fast(clock).or_else(|| clock.slow_monotonic()).unwrap()
}

fn start() -> (Arc<Machine>, Arc<Clock>) {
    let machine = Arc::new(Machine {
        nanos: Unmodelled::new(5_000 * MILLI),
        reads: Unmodelled::new(0),
        point: AtomicU64::new(0),
        is_shared: AtomicBool::new(false),
        is_unavailable: AtomicBool::new(false),
    });
    let clock = Arc::new(CounterClock::new(Arc::clone(&machine)));
    CLOCK.set(Arc::as_ptr(&clock).addr());
    (machine, clock)
}

/// Reads a calibrated clock in two threads. One of them may learn the other's time. The first read
/// of the kernel's clock is ahead or not.
fn model(prepare: fn(&Clock, &Machine)) {
    for parity in [0, 1] {
        check(1, move || {
            let (machine, clock) = start();
            while fast(&clock).is_none() {
                read(&clock);
                machine.pass(MILLI / 2);
            }
            prepare(&clock, &machine);
            machine.reads.store(parity, Relaxed);
            machine.is_shared.store(true, Relaxed);
            let message = Arc::new(AtomicU64::new(0));
            let other = Arc::clone(&clock);
            let send = Arc::clone(&message);
            let thread = thread::spawn(move || {
                let first = read(&other);
                send.store(first, Ordering::Release);
                let second = read(&other);
                assert!(second >= first, "{second} after {first}");
                second
            });
            let earlier = message.load(Ordering::Acquire);
            let now = read(&clock);
            assert!(now >= earlier, "{now} after {earlier}");
            let latest = thread.join().unwrap().max(now);
            let last = read(&clock);
            assert!(last >= latest, "{last} after {latest}");
        });
    }
}

#[test]
fn the_time_never_goes_back_while_the_next_segment_is_made() {
    model(|clock, machine| {
        while fast(clock).is_some() {
            machine.pass(MILLI / 100);
        }
    });
}

#[test]
fn the_time_never_goes_back_while_the_first_segment_after_a_pause_is_made() {
    model(|clock, machine| {
        machine.pass(50 * MILLI);
        read(clock); // the next read makes a segment
    });
}

/// Reads in one thread while the counter is not used, and measures it in another meanwhile.
#[test]
fn the_time_never_goes_back_while_an_unavailable_counter_comes_into_use() {
    let used = Arc::new(Unmodelled::new(0));
    let count = Arc::clone(&used);
    check(1, move || {
        let (machine, clock) = start();
        machine.is_unavailable.store(true, Relaxed);
        read(&clock);
        machine.is_unavailable.store(false, Relaxed);
        machine.pass(9_999 * MILLI); // the kernel will soon be asked again
        machine.is_shared.store(true, Relaxed);
        let other = Arc::clone(&clock);
        let thread = thread::spawn(move || {
            let first = read(&other);
            let second = fast(&other);
            assert!(
                second.is_none_or(|second| second >= first),
                "{second:?} after {first}"
            );
        });
        machine.is_shared.store(false, Relaxed); // the other thread can be at its first point
        for _ in 0..3 {
            machine.pass(11 * MILLI);
            read(&clock);
        }
        thread.join().unwrap();
        count.fetch_add(clock.load().segments, Relaxed);
    });
    assert!(used.load(Relaxed) > 0);
}

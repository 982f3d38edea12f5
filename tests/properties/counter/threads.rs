//! Threads that read one clock at once: a time that was handed over is never later than the one read next.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::clock::CounterClock;
use crate::sample::Source;
use crate::status::Status;

/// A counter that goes on with each read, by any thread, and a kernel's clock that goes with it, sometimes faster and
/// sometimes slower.
struct Shared {
    ticks: AtomicU64,
    /// How many ticks a read takes; one in some hundred takes a thousand times as many.
    pace: u64,
}

/// Ticks to a period in which the kernel's rate is the same.
const PERIOD: u64 = 1 << 26;

impl Shared {
    /// Of 3 ticks a nanosecond; the rate is 240 ppm more in one period, and 240 ppm less in the next.
    fn nanos(ticks: u64) -> u64 {
        let (periods, rest) = (ticks / PERIOD, ticks % PERIOD);
        let faster = PERIOD / 3 * 24 / 100_000;
        let base = 1_000_000_000 + periods * (PERIOD / 3) + periods % 2 * faster;
        let change = rest / 3 * 24 / 100_000;
        if periods % 2 == 0 { base + rest / 3 + change } else { base + rest / 3 - change }
    }

    fn pass(&self) -> u64 {
        let pace = if self.ticks.load(Ordering::Relaxed) % 331 == 0 { self.pace * 1000 } else { self.pace };
        self.ticks.fetch_add(pace, Ordering::SeqCst)
    }
}

impl Source for &Shared {
    fn ticks(&self) -> u64 {
        self.pass()
    }

    fn ticks_ordered(&self) -> u64 {
        self.pass()
    }

    fn monotonic(&self) -> Option<u64> {
        Some(Shared::nanos(self.pass()))
    }

    fn realtime(&self) -> Option<i64> {
        Some(Shared::nanos(self.pass()) as i64)
    }

    fn cpu(&self) -> Option<u32> {
        None
    }

    fn detect(&self) -> Result<(), Status> {
        Ok(())
    }

    fn stated_frequency(&self) -> Option<u64> {
        None
    }
}

#[test]
fn no_thread_sees_a_time_go_back() {
    const THREADS: usize = 8;
    const READS: usize = 600_000;
    for pace in [40, 700, 20_000] {
        let shared = Shared { ticks: AtomicU64::new(0), pace };
        let clock = CounterClock::new(&shared);
        let token = AtomicU64::new(0);
        let used = AtomicU64::new(0);
        let start = Barrier::new(THREADS);
        let reader = || {
            start.wait();
            for _ in 0..READS {
                let seen = token.load(Ordering::SeqCst);
                let fast = clock.monotonic(Source::ticks_ordered);
                let nanos = fast.or_else(|| clock.slow_monotonic()).unwrap();
                assert!(nanos >= seen, "{nanos} after {seen}: back by {}", seen - nanos);
                token.fetch_max(nanos, Ordering::SeqCst);
                used.fetch_add(fast.is_some().into(), Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(reader);
            }
        });
        let [used, lines] = [used.into_inner(), shared.ticks.load(Ordering::Relaxed) >> 25];
        println!(
            "{pace} ticks a read: {used} of {} reads by the counter, some {lines} lines",
            THREADS * READS
        );
        assert!(lines > 3 && used > 0, "{used} reads by the counter, {lines} lines");
    }
}

//! A limiter that works by any clock: the kernel's in a program, a simulated one in its tests, at no cost for either.
//!
//! `cargo run --release --example simulated_clock`

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use vdso_time::{Clock, Errno, Instant, Monotonic};

/// Lets something happen once in an interval.
struct Limiter<C: Clock> {
    last: Instant<C>,
    interval: Duration,
}

impl<C: Clock> Limiter<C> {
    fn new(interval: Duration) -> Self {
        Self { last: C::now() - interval, interval }
    }

    fn allows(&mut self) -> bool {
        let due = elapsed(self.last) >= self.interval;
        if due {
            self.last = C::now();
        }
        due
    }
}

/// Generic over the clock: for `Monotonic` the compiler makes of it what it makes of `elapsed_monotonic`.
#[inline(never)]
fn elapsed<C: Clock>(since: Instant<C>) -> Duration {
    C::now().duration_since(since)
}

/// The same with the clock written out.
#[inline(never)]
fn elapsed_monotonic(since: Instant) -> Duration {
    Instant::now().duration_since(since)
}

/// A clock that goes when it is told to.
enum Simulated {}

static NOW: AtomicI64 = AtomicI64::new(0);

impl Simulated {
    fn advance(by: Duration) {
        NOW.fetch_add(i64::try_from(by.as_nanos()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Clock for Simulated {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Ok(Instant::from_nanos(NOW.load(Ordering::Relaxed)))
    }
}

fn main() {
    let hour = Duration::from_secs(3600);
    let mut limiter = Limiter::<Simulated>::new(hour);
    let mut allowed = 0;
    for _ in 0..24 * 60 {
        allowed += u32::from(limiter.allows());
        Simulated::advance(Duration::from_secs(60));
    }
    println!("one simulated day, asked every minute, allowed every hour: {allowed} times");

    let start = Instant::now();
    let mut limiter = Limiter::<Monotonic>::new(Duration::from_millis(1));
    let mut allowed = 0;
    while elapsed_monotonic(start) < Duration::from_millis(20) {
        allowed += u32::from(limiter.allows());
    }
    println!("20 ms of real time, asked all the time, allowed every ms: {allowed} times");
}

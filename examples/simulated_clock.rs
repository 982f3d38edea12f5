//! A rate limiter that is generic over its clock. Programs use the kernel's clock, tests a simulated
//! one, and the machine code for the kernel's clock is that of a limiter without the parameter.
//!
//! `cargo run --release --example simulated_clock`

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use vdso_time::{Clock, Errno, Instant, Monotonic};

/// Allows something once in each interval.
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

/// For `Monotonic`, the compiler generates the same code as for `elapsed_monotonic`.
#[inline(never)]
fn elapsed<C: Clock>(since: Instant<C>) -> Duration {
    C::now().duration_since(since)
}

/// The same without the parameter.
#[inline(never)]
fn elapsed_monotonic(since: Instant) -> Duration {
    Instant::now().duration_since(since)
}

/// A clock that advances only by [`Simulated::advance`].
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
    println!("a simulated day, one request a minute, one allowed an hour: {allowed} allowed");

    let start = Instant::now();
    let mut limiter = Limiter::<Monotonic>::new(Duration::from_millis(1));
    let mut allowed = 0;
    while elapsed_monotonic(start) < Duration::from_millis(20) {
        allowed += u32::from(limiter.allows());
    }
    println!("20 ms, requests without a pause, one allowed a millisecond: {allowed} allowed");
}

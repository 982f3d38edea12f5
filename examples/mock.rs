//! `cargo run --example mock`: code that is generic over its clock, and a test that moves the time.

use std::cell::Cell;

use vdso_time::{Duration, Errno, Instant, Monotonic, MonotonicClock};

/// A lease that expires a minute after it was made.
struct Lease<C: MonotonicClock = Monotonic> {
    made: Instant<C>,
}

impl<C: MonotonicClock> Lease<C> {
    fn new() -> Self {
        Self { made: C::now() }
    }

    fn is_expired(&self) -> bool {
        self.made.elapsed() >= Duration::from_secs(60)
    }
}

/// A mock clock. Its time is this thread's `SECONDS`.
struct Mock;

thread_local!(static SECONDS: Cell<u64> = const { Cell::new(0) });

impl MonotonicClock for Mock {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Ok(Instant::EPOCH + Duration::from_secs(SECONDS.get()))
    }
}

fn main() {
    let lease = Lease::<Mock>::new();
    for seconds in [0, 59, 60] {
        SECONDS.set(seconds);
        println!("expired after {seconds} s: {}", lease.is_expired());
    }
    println!("expired now: {}", Lease::<Monotonic>::new().is_expired());
}

//! The kernel's clocks as the vDSO gives them, which is what the counter clock is measured against.

use std::time::{Duration, Instant};

use vdso_time::counter::{self, Status};
use vdso_time::{ClockId, clock_gettime};

/// Nanoseconds of a clock.
pub(crate) fn nanos(clock: ClockId) -> i64 {
    let now = clock_gettime(clock).expect("the clock can be read");
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Reads until the counter is used.
pub(crate) fn settle() -> Result<(), String> {
    let start = Instant::now();
    loop {
        let _ = counter::monotonic();
        match counter::status() {
            Status::Used => return Ok(()),
            _ if start.elapsed() < Duration::from_secs(2) => {}
            status => return Err(format!("the counter is not used: {status}")),
        }
    }
}

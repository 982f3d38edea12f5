//! The reads of both APIs. The two functions differ, because the compiler would merge functions
//! with the same code.

use vdso_time_quanta::{Clock, Instant};

#[inline(never)]
pub fn by_clock(clock: &Clock) -> u64 {
    clock.raw()
}

#[inline(never)]
pub fn by_instant() -> Instant {
    Instant::now()
}

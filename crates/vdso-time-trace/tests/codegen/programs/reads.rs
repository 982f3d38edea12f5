//! Reads of clocks: by the macro with `--cfg traced`, else bare.

#![crate_type = "lib"]

use vdso_time::{Clock as _, ClockId, Errno, Instant, MonotonicCoarse, Timespec};

#[cfg(not(traced))]
macro_rules! read {
    ($call:expr) => {
        $call
    };
}
#[cfg(traced)]
use vdso_time_trace::traced as read;

#[inline(never)]
pub fn seconds() -> i64 {
    read!(vdso_time::time())
}

#[inline(never)]
pub fn nanoseconds(clock: ClockId) -> Result<Timespec, Errno> {
    read!(vdso_time::clock_gettime(clock))
}

#[inline(never)]
pub fn in_a_loop(turns: u64) -> i64 {
    let start = read!(Instant::now());
    (0..turns).map(|_| read!(MonotonicCoarse::now()).as_nanos()).sum::<i64>() - start.as_nanos()
}

//! Times whose type names their clock.
//!
//! Comparing or subtracting times of two clocks does not compile.
//!
//! `Instant::now` and `SystemTime::UNIX_EPOCH` exist for the default clock only. Rust does not use
//! a default type parameter for inference, so `Instant::now()` compiles only if one clock has it.
//! Other clocks have `now` on their marker: `Boottime::now()`.

mod common;
mod kernel;
mod monotonic;
#[cfg(feature = "std")]
mod std_times;
mod unix_time;
mod wall;

#[cfg(vdso_time_linux)]
pub use kernel::{Boottime, MonotonicRaw, ProcessCpuTime, Tai, ThreadCpuTime};
pub use kernel::{Monotonic, MonotonicCoarse, Realtime, RealtimeCoarse};
pub use monotonic::{Instant, MonotonicClock};
pub use wall::{SystemTime, SystemTimeError, UNIX_EPOCH, WallClock};

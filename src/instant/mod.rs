//! Times whose type names their clock.
//!
//! Comparing or subtracting times of two clocks does not compile.
//!
//! `Instant::now` and `SystemTime::UNIX_EPOCH` exist for the default clock only. Rust does not use
//! a default type parameter for inference, so `Instant::now()` compiles only if one clock has it.
//! Other clocks have these items on their marker: `Boottime::now()`, and `Tai::UNIX_EPOCH` by
//! [`WallClock`].

mod clocks;
mod common;
mod monotonic;
#[cfg(feature = "std")]
mod std_instant;
mod wall;

pub use clocks::{
    Boottime, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime, Realtime, RealtimeCoarse, Tai,
    ThreadCpuTime,
};
pub use monotonic::{Instant, MonotonicClock};
pub use wall::{SystemTime, SystemTimeError, UNIX_EPOCH, WallClock};

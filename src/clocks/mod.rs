//! Times whose type names their clock.
//!
//! Comparing or subtracting times of two clocks does not compile. The types and traits exist on
//! every target, and `now` exists on targets that can read a clock.
//!
//! `Instant::now` and `SystemTime::UNIX_EPOCH` exist for the default clock only. Rust ignores the
//! default of a type parameter when it infers types. So if other clocks had `Instant::now` as well,
//! a call of `Instant::now()` would have to name the clock. Instead, each of the other clocks has
//! `now` on its own type: `Boottime::now()`. For the same reason, `from_nanos` exists for the
//! default clock only, while `from_clock_nanos` exists for every clock.

#![forbid(unsafe_code)]

mod common;
mod kernel;
mod kernel_time;
mod monotonic;
mod scale;
mod source;
#[cfg(feature = "std")]
mod std_times;
mod unix_time;
mod wall;

pub use kernel::*;
pub use monotonic::{Instant, MonotonicClock};
pub use scale::SameScale;
pub use source::{InstantSource, SystemTimeSource};
pub use wall::{SystemTime, SystemTimeError, UNIX_EPOCH, WallClock};

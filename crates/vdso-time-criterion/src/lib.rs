#![doc = include_str!("../README.md")]
#![cfg(any(target_os = "linux", target_os = "android"))]

mod counter_time;
mod vdso_time;

/// The version of criterion that the measurements are for.
pub use criterion;

pub use counter_time::{CounterTime, NotUsed};
pub use vdso_time::VdsoTime;

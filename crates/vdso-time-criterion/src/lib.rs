#![doc = include_str!("../README.md")]
#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::cast_precision_loss, reason = "ticks are far below 2^53")]

mod counter_time;
mod fence;
mod vdso_time_measurement;

/// The version of criterion that the measurements are for.
pub use criterion;

pub use counter_time::{CounterTime, Ticks};
pub use vdso_time_measurement::VdsoTime;

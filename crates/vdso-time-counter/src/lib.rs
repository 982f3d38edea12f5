#![doc = include_str!("../README.md")]
#![doc = include_str!("promises.md")]
#![doc = include_str!("glossary.md")]
#![no_std]
#![cfg(any(feature = "std", all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os))))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    any(vdso_time_other_os, not(any(target_os = "linux", target_os = "android"))),
    allow(dead_code, reason = "most of it is for Linux")
)]

#[cfg(feature = "std")]
extern crate std;

mod arch;
mod bounded;
mod clock;
mod clocks;
mod discipline;
mod global;
mod high_water;
mod interval;
mod latch;
mod machine;
mod sample;
mod segment;
mod source;
mod state;
mod status;
#[cfg_attr(
    all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)),
    path = "linux/mod.rs"
)]
mod system;
mod ticks;
mod view;

pub use clocks::{CounterMonotonic, CounterRealtime, monotonic, realtime};
pub use global::{
    check, forbid_system_calls, realtime_bounded, realtime_error_bound, resync, set_max_drift_ppb, state,
    statistics,
};
pub use interval::{ClockStatus, Interval};
pub use status::{Refusal, State, Statistics, Status};
pub use ticks::Ticks;

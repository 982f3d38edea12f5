#![doc = include_str!("../README.md")]
//!
//! ## Order
//!
//! [`monotonic()`] lets the CPU read the counter early: a time from another thread may be later
//! than the next read. The reads of [`CounterMonotonic`] wait for all earlier instructions, so no
//! time is earlier than one that any thread read before. The time can go back in two cases:
//!
//! - **The process enters another time namespace** whose `CLOCK_MONOTONIC` is behind by more than
//!   64 ms. If it is behind by less, the time stands still, or goes slower, until the kernel's
//!   clock has caught up. The error bound includes the difference.
//! - **The counter is set back** by less than a segment. Kernels do that only when they restore a
//!   virtual machine.
//!
//! ## Accuracy
//!
//! [`state()`] reads both clocks. The error bound is the sum of
//!
//! - the distance between the two, and 30 ns, or three ticks if they are longer;
//! - how far the segment and the kernel's clock can drift apart until the segment ends: by the
//!   rates of both, and by 500 ppm for NTP;
//! - the lead that the clock keeps because it does not go back, usually 0.
//!
//! The bound holds until the segment ends, unless one of these events comes after the call:
//!
//! - The kernel's rate changes by more than 500 ppm, or did so in this segment: adjtimex(2) slews
//!   by up to 10 % (`tick`), by 20 % with a PLL of constant 0 beside it, and chrony by 8.3 %. A
//!   change by 10 % causes an error of up to 1.6 ms, and of up to 0.4 ms if the rate changed
//!   shortly before.
//! - The system is suspended, or its virtual machine is moved or restored.
//! - The process enters another time namespace (time_namespaces(7)).
//! - Somebody sets `CLOCK_REALTIME`, for [`realtime()`].
//!
//! The next segment follows: after at most 17 ms, or 34 ms if the counter is now half as fast. If
//! the rate differs by more than 1/4 then, the counter is measured again, and the vDSO answers
//! meanwhile. An event during the measurement can make the first segment wrong in the same way.
//!
//! ## Where the clock must not be used
//!
//! - A thread that may not read the counter (`PR_SET_TSC`, strict seccomp) gets SIGSEGV, as it does
//!   in a vDSO that reads the counter.
//! - Call [`forbid_system_calls`] before a thread enters a sandbox that kills for `prctl`,
//!   `openat`, `read`, `close` or `clock_gettime`: some reads make these calls. If a sandbox
//!   returns an error, or there is no /sys, the vDSO answers ([`Refusal::Unknown`]).
//! - If a process forks while another thread updates the clock, the child cannot update it: the
//!   vDSO answers there after the segment has ended ([`Status::Updating`]). An update is some 20
//!   stores in 8 ms, so few forks meet one. The child does not repair it, because it cannot tell
//!   the thread that updates from one that is only stopped.
//!
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
mod recent;
#[cfg(feature = "std")]
mod refresher;
mod sample;
mod segment;
mod source;
mod state;
mod status;
#[cfg_attr(
    all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)),
    path = "linux/mod.rs"
)]
#[cfg_attr(
    any(vdso_time_other_os, not(any(target_os = "linux", target_os = "android"))),
    path = "other_os.rs"
)]
mod system;
mod ticks;
mod view;

pub use bounded::ClockStatus;
pub use clocks::{CounterMonotonic, CounterRealtime, monotonic, realtime};
pub use global::{check, forbid_system_calls, realtime_error_bound, resync, state, statistics};
pub use interval::{Interval, realtime_bounded, set_max_drift_ppb};
pub use recent::{recent, refresh};
#[cfg(feature = "std")]
pub use refresher::Refresher;
pub use status::{Refusal, State, Statistics, Status};
pub use ticks::Ticks;

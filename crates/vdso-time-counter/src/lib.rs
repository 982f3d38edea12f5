//! A clock that reads the CPU's own counter and follows the kernel's clock.
//!
//! ```
//! use vdso_time_counter::{self as counter, Status};
//!
//! let start = counter::monotonic(); // on the scale of CLOCK_MONOTONIC
//! let state = counter::state();
//! match state.status {
//!     Status::Used => println!("by the counter, within {:?} of the kernel", state.error_bound),
//!     // The first 11 ms of reads, and programs that read less often than once in 1 ms: the vDSO
//!     // answers. The time is as accurate, and costs what the vDSO costs.
//!     Status::Calibrating | Status::Stale => println!("by the vDSO for now: {}", state.status),
//!     why => println!("by the vDSO: {why}"), // this machine or sandbox has no usable counter
//! }
//! println!("{:?} passed", counter::monotonic() - start);
//! ```
//!
//! | call | returns | in order |
//! |---|---|---|
//! | [`monotonic()`], [`realtime()`] | the time, by the cheapest read | within a thread |
//! | [`CounterMonotonic::now()`], [`CounterRealtime::now()`] | the time | across threads |
//! | [`Ticks::now()`] | the counter's value, which converts to a time later | within a thread |
//! | [`recent()`] | the time of the last [`refresh()`], for one load | see there |
//! | [`realtime_bounded()`] | the limits of the true time | see there |
//!
//! # What it promises
//!
//! - **Cost**: a read costs little more than reading the counter. A fast read takes no lock, never
//!   waits and writes nothing. Nothing allocates, runs before `main`, or starts a thread (only
//!   `Refresher` does).
//! - **Error**: a read is within [`State::error_bound`] of the kernel's clock.
//! - **Order**: the monotonic time does not go back.
//! - **Fallback**: where the counter cannot be trusted, the vDSO answers, and [`state()`] says why.
//! - **Signals**: a signal handler can read at any time, also if it interrupts a read.
//!
//! # Order
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
//! # Accuracy
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
//! # Where the clock must not be used
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
//!
//! # How it works
//!
//! 1. The first reads measure the counter's rate, in 11 ms or more. The vDSO answers meanwhile.
//! 2. A segment gives the time of each tick for 8 to 16 ms, or for 2 to 4 ms for some time after
//!    the kernel's rate changed.
//! 3. In the last 1/256 of a segment, one reader reads both clocks side by side and makes the next
//!    one. It begins where the old one ends. Its rate differs from the measured one by at most 1/4,
//!    so that it approaches the kernel's clock.
//! 4. If no reader came in time, the vDSO answers. A read within 1 ms of such a read makes a new
//!    segment. For a monotonic read, one of the wall clock does not count.
//!
//! The counter is used only if the kernel keeps its time by it: `current_clocksource` is `tsc`,
//! `arch_sys_counter`, `riscv_clocksource`, `tod` or `Constant`. Such a kernel checks that the
//! counters of the CPUs agree. The clock asks the kernel at the first read, every 10 s, if the
//! counter and the clock diverge by more than adjtimex(2) can explain, and if reading the clock
//! takes three times as long as before, eight times in a row. [`Refusal`] has the other conditions.
//! The clock tries again after 1 to 640 s. Meanwhile a read costs what the vDSO costs, and an
//! ordered read one fence more.

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
mod baseline;
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

pub use baseline::Baseline;
pub use bounded::ClockStatus;
pub use clocks::{CounterMonotonic, CounterRealtime, monotonic, realtime};
pub use global::{baseline, check, forbid_system_calls, realtime_error_bound, resync, state, statistics};
pub use interval::{Interval, realtime_bounded, set_max_drift_ppb};
pub use recent::{recent, refresh};
#[cfg(feature = "std")]
pub use refresher::Refresher;
pub use status::{Refusal, State, Statistics, Status};
pub use ticks::Ticks;

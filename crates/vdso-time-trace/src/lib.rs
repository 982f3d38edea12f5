#![doc = include_str!("../README.md")]
#![no_std]
#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(clippy::new_without_default, reason = "tracers are statics, which need a constant function")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("vdso-time-trace needs 64-bit atomics, which this target lacks");

mod attach;
mod chain;
mod counter;
mod macros;
mod read;
mod report;
mod ring;
mod select;
mod seqlock;
mod site;
mod tracer;

/// The atomics of [`chain`] and [`seqlock`]. `tests/model` replaces them by loom's.
mod atomic {
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
}

pub use attach::{Full, attach, detach};
pub use chain::Link;
pub use counter::Counter;
pub use read::Read;
pub use report::{Report, report};
pub use ring::{Past, Ring};
pub use select::Select;
pub use site::{Site, sites};
pub use tracer::{Trace, Tracer};

/// For the code of [`traced!`].
#[cfg(feature = "enabled")]
#[doc(hidden)]
pub mod hidden {
    pub use crate::site::VDSO_TIME_TRACE_0_1_SITES as SITES;
    pub use linkme;
}

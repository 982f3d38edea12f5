#![doc = include_str!("../README.md")]
#![no_std]
#![cfg(any(target_os = "linux", target_os = "android"))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("vdso-time-trace counts with atomics of 64 bits, which this target lacks");

mod attach;
mod chain;
mod counter;
mod event;
mod histogram;
mod interval;
mod macros;
mod per_site;
mod report;
mod ring;
mod select;
mod site;
mod slot;
mod slow;
mod timing;
mod tracer;

/// The atomics of [`chain`] and [`slot`], which a test replaces by those of a model checker.
mod atomic {
    pub(crate) use core::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

pub use attach::{Full, Link, attach, detach};
pub use counter::Counter;
pub use event::{Event, Read, Reading};
pub use histogram::Histogram;
pub use interval::Interval;
pub use per_site::{Fresh, PerSite};
pub use report::{Report, report};
pub use ring::{Past, Ring};
pub use select::Select;
pub use site::{Site, sites};
pub use slow::Slow;
pub use tracer::{Trace, Tracer};

/// What [`traced!`] needs.
#[cfg(feature = "enabled")]
#[doc(hidden)]
pub mod hidden {
    pub use crate::__vdso_time_trace_site as site;
    pub use crate::site::VDSO_TIME_TRACE_0_1_SITES as SITES;
    pub use linkme;
}

#![doc = include_str!("../README.md")]
#![no_std]
#![cfg(any(target_os = "linux", target_os = "android"))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("vdso-time-trace needs 64-bit atomics, which this target lacks");

mod macros;
mod read;
mod report;
mod site;
mod tracer;

pub use read::Read;
pub use report::{Report, report};
pub use site::{Site, Trace, Tracer, sites};
pub use tracer::Counter;

/// For the code of [`traced!`].
#[cfg(feature = "enabled")]
#[doc(hidden)]
pub mod hidden {
    pub use crate::site::VDSO_TIME_TRACE_0_1_SITES as SITES;
    pub use linkme;
}

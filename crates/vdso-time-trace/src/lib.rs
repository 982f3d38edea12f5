#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(target_has_atomic = "64")]
mod counter;
mod macros;
mod read;
#[cfg(target_has_atomic = "64")]
mod report;
mod site;
#[cfg(feature = "enabled")]
mod text;
mod tracer;

#[cfg(target_has_atomic = "64")]
pub use counter::Counter;
pub use read::Read;
#[cfg(target_has_atomic = "64")]
pub use report::{Report, report};
pub use site::{Site, Trace, Tracer, sites};

/// For the code of [`traced!`].
#[doc(hidden)]
pub mod hidden {
    #[cfg(feature = "enabled")]
    pub use crate::site::VDSO_TIME_TRACE_0_1_SITES as SITES;
    #[cfg(feature = "enabled")]
    pub use crate::text::{function, function_length};
    #[cfg(feature = "enabled")]
    pub use linkme;

    /// Returns `answer`, which must be a [`Read`](crate::Read). With the feature `enabled`,
    /// `traced!` has the same restriction. So code that compiles without the feature also compiles
    /// with it.
    #[cfg(not(feature = "enabled"))]
    #[inline]
    pub fn bare<T: crate::Read>(_: &'static str, answer: T) -> T {
        answer
    }
}

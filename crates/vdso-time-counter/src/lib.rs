#![doc = include_str!("../README.md")]
#![doc = include_str!("guarantees.md")]
#![doc = include_str!("glossary.md")]
#![no_std]
#![cfg(any(
    feature = "std",
    all(
        any(target_os = "linux", target_os = "android"),
        not(vdso_time_other_os)
    )
))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(vdso_time_other_os))))]
#![cfg_attr(
    any(
        vdso_time_other_os,
        not(any(target_os = "linux", target_os = "android"))
    ),
    allow(dead_code, reason = "most of it is for Linux")
)]

#[cfg(feature = "std")]
extern crate std;

mod clocks;
mod engine;
mod global;
mod machine;
mod ticks;

pub use clocks::{
    CounterMonotonic, CounterMonotonicUnordered, CounterRealtime, CounterRealtimeUnordered,
};
pub use engine::status::{State, Statistics, Status, Unavailable};
pub use global::{check, prepare_for_sandbox, state, trust_hypervisor};
pub use ticks::Ticks;
pub use vdso_time::Duration;

/// A time of [`CounterMonotonic`].
///
/// To read the time, call [`CounterMonotonic::now`]. The type `Instant` of this crate has no `now`:
/// [`vdso_time::Instant::now`] exists only for the kernel's clock. So this does not compile:
///
/// ```compile_fail,E0599
/// use vdso_time_counter::Instant;
///
/// let start = Instant::now();
/// ```
///
/// # Examples
///
/// ```
/// use vdso_time_counter::{CounterMonotonic, Duration, Instant};
///
/// let start: Instant = CounterMonotonic::now();
/// let passed: Duration = start.elapsed();
/// ```
pub type Instant = vdso_time::Instant<CounterMonotonic>;

/// A time of [`CounterRealtime`].
///
/// To read the time, call [`CounterRealtime::now`]. The type `SystemTime` of this crate has no
/// `now`, so this does not compile:
///
/// ```compile_fail,E0599
/// use vdso_time_counter::SystemTime;
///
/// let now = SystemTime::now();
/// ```
pub type SystemTime = vdso_time::SystemTime<CounterRealtime>;

/// The times of the clocks whose reads are unordered.
pub mod unordered {
    use super::{CounterMonotonicUnordered, CounterRealtimeUnordered};

    /// A time of [`CounterMonotonicUnordered`].
    ///
    /// To read the time, call [`CounterMonotonicUnordered::now`]. The type `unordered::Instant` has
    /// no `now`, so this does not compile:
    ///
    /// ```compile_fail,E0599
    /// use vdso_time_counter::unordered::Instant;
    ///
    /// let start = Instant::now();
    /// ```
    pub type Instant = vdso_time::Instant<CounterMonotonicUnordered>;

    /// A time of [`CounterRealtimeUnordered`].
    ///
    /// To read the time, call [`CounterRealtimeUnordered::now`]. The type `unordered::SystemTime`
    /// has no `now`, so this does not compile:
    ///
    /// ```compile_fail,E0599
    /// use vdso_time_counter::unordered::SystemTime;
    ///
    /// let now = SystemTime::now();
    /// ```
    pub type SystemTime = vdso_time::SystemTime<CounterRealtimeUnordered>;
}

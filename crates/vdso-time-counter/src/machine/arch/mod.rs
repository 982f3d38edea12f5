//! The counter of the architecture that this build is for: [`CpuCounter`].

mod counter;
mod none;

// The counter is read only on Linux, because only Linux has a clock source that tells whether the
// counter can be used as a clock. The counter is not read in Miri either, because Miri cannot run
// assembly.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(miri, vdso_time_other_os))
))]
mod native;
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(miri, vdso_time_other_os))
))]
use native as imp;

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    not(any(miri, vdso_time_other_os))
)))]
use none as imp;

pub(crate) use counter::Counter;
pub(crate) use imp::CpuCounter;

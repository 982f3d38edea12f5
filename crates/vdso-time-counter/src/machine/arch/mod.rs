//! The counter of the architecture that this build is for: [`CpuCounter`].

mod counter;
mod none;

// Only Linux says by its clock source whether the counter is a clock, and Miri runs no assembly.
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

//! [`Native`]: this machine as a [`Source`].

pub(crate) mod arch;

// On Linux, the module `linux` asks the kernel for its clock source, because the CPU's counter is
// used only if the kernel uses it as well. On other systems, the counter is never used, and std's
// clock answers.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(vdso_time_other_os)
))]
mod linux;
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(vdso_time_other_os)
))]
use linux as system;

#[cfg(any(
    vdso_time_other_os,
    not(any(target_os = "linux", target_os = "android"))
))]
mod other_os;
#[cfg(any(
    vdso_time_other_os,
    not(any(target_os = "linux", target_os = "android"))
))]
use other_os as system;

use vdso_time::{ClockId, Errno, clock_gettime};

use crate::engine::source::{Keeper, Source};
use crate::engine::status::Unavailable;
use arch::{Counter as _, CpuCounter};

/// This machine's counter and kernel.
pub(super) struct Native;

/// Reads a clock of the kernel in nanoseconds, which always fit in 64 bits (`ktime_t`).
#[inline]
pub(super) fn kernel_nanos(clock: ClockId) -> Result<i64, Errno> {
    clock_gettime(clock).map(|time| {
        time.tv_sec
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec)
    })
}

impl Source for Native {
    #[inline]
    fn ticks(&self) -> u64 {
        CpuCounter::ticks()
    }

    #[inline]
    fn ticks_ordered(&self) -> u64 {
        CpuCounter::ticks_ordered()
    }

    #[inline]
    fn low_half(tick: u64) -> u32 {
        CpuCounter::low_half(tick)
    }

    #[inline]
    fn monotonic(&self) -> Option<u64> {
        Some(kernel_nanos(ClockId::MONOTONIC).ok()? as u64)
    }

    #[inline]
    fn realtime(&self) -> Option<i64> {
        kernel_nanos(ClockId::REALTIME).ok()
    }

    fn raw(&self) -> Option<i64> {
        kernel_nanos(ClockId::MONOTONIC_RAW).ok()
    }

    fn detect(&self, trusts_hypervisor: bool) -> Result<Keeper, Unavailable> {
        system::detect(trusts_hypervisor)
    }

    fn stated_frequency(&self) -> Option<u64> {
        CpuCounter::stated_frequency()
    }
}

//! [`Native`]: this machine as a [`Source`].

pub(crate) mod arch;
#[cfg_attr(
    all(
        any(target_os = "linux", target_os = "android"),
        not(vdso_time_other_os)
    ),
    path = "linux.rs"
)]
#[cfg_attr(
    any(
        vdso_time_other_os,
        not(any(target_os = "linux", target_os = "android"))
    ),
    path = "other_os.rs"
)]
mod system;

use core::sync::atomic::AtomicBool;

use vdso_time::{ClockId, Errno, clock_gettime};

use crate::engine::source::Source;
use crate::engine::status::Unavailable;
use arch::{Counter as _, CpuCounter};

/// Whether the hypervisor's stable bit counts as the CPU's invariant bit.
pub(super) static TRUSTS_HYPERVISOR: AtomicBool = AtomicBool::new(false);

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

    fn detect(&self) -> Result<(), Unavailable> {
        system::detect()
    }

    fn is_paravirtual(&self) -> bool {
        system::is_paravirtual()
    }

    fn stated_frequency(&self) -> Option<u64> {
        CpuCounter::stated_frequency()
    }
}

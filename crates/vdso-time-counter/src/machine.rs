//! [`Native`]: this machine as a [`Source`].

#![allow(unsafe_code, reason = "prctl(2)")]

use vdso_time::{ClockId, Timespec, clock_gettime};

use super::arch::native;
use super::sample::{Discipline, Source};
use super::status::Status;

/// This machine's counter and kernel.
pub(super) struct Native;

/// The nanoseconds of a time that the kernel made. These always fit in 64 bits (`ktime_t`).
#[inline]
pub(super) fn nanos(time: Timespec) -> i64 {
    time.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec)
}

#[inline]
fn read(clock: ClockId) -> Option<i64> {
    clock_gettime(clock).ok().map(nanos)
}

impl Source for Native {
    #[inline]
    fn ticks(&self) -> u64 {
        native::ticks()
    }

    #[inline]
    fn ticks_ordered(&self) -> u64 {
        native::ticks_ordered()
    }

    #[inline]
    fn order(&self) {
        native::order();
    }

    #[inline]
    fn ticks_after_order(&self) -> u64 {
        if native::IS_ORDERED_FIRST { native::ticks() } else { native::ticks_ordered() }
    }

    #[inline]
    fn monotonic(&self) -> Option<u64> {
        read(ClockId::MONOTONIC).map(|nanos| nanos as u64)
    }

    #[inline]
    fn realtime(&self) -> Option<i64> {
        read(ClockId::REALTIME)
    }

    fn raw(&self) -> Option<u64> {
        read(ClockId::MONOTONIC_RAW).map(|nanos| nanos as u64)
    }

    fn call_kernel(&self) -> Option<()> {
        system::call_kernel()
    }

    fn detect(&self) -> Result<(), Status> {
        system::detect()
    }

    fn marker(&self) -> u64 {
        system::marker()
    }

    fn stated_frequency(&self) -> Option<u64> {
        native::stated_frequency()
    }

    fn discipline(&self) -> Option<Discipline> {
        discipline().ok()
    }
}

pub(super) use system::discipline;

/// The part of [`Source`] that needs Linux.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os)))]
mod system {
    use vdso_time::__private::{auxval, read_file, syscall as call};
    use vdso_time::{ClockId, Errno, Route, routes, syscall};

    use super::super::arch::native;
    use super::super::sample::Discipline;
    use super::super::status::Status;
    use super::super::{timex, vmclock};

    /// The kernel's clock source (Documentation/timers/timekeeping.rst). The file is documented in
    /// Documentation/ABI/testing/sysfs-devices-system-clocksource and exists since Linux 2.6.19.
    const CURRENT: &core::ffi::CStr = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";

    pub(in super::super) fn discipline() -> Result<Discipline, Errno> {
        /// adjtimex's `tick` without a slew, in microseconds, and the slew by one more of these.
        const TICK: i64 = 10_000;
        const PPB: u64 = 100_000;
        vmclock::open();
        let timex = timex::read()?;
        Ok(Discipline {
            realtime: timex.realtime,
            max_error: timex.max_error.max(0) as u64,
            pending: timex.offset.unsigned_abs(),
            written: timex.written.map(|number| number as u64),
            slew: timex.tick.abs_diff(TICK).saturating_mul(PPB),
            is_synchronized: timex.is_synchronized,
            has_leap: timex.has_leap,
            has_pps: timex.has_pps,
        })
    }

    pub(super) fn call_kernel() -> Option<()> {
        syscall::clock_gettime(ClockId::MONOTONIC).ok().map(drop)
    }

    pub(super) fn marker() -> u64 {
        vmclock::marker()
    }

    /// Returns whether this thread must not read the counter that the vDSO reads: `PR_GET_TSC` of
    /// prctl(2), on x86, and on aarch64 since Linux 6.12.
    fn is_denied() -> bool {
        const PR_GET_TSC: usize = 25;
        const PR_TSC_SIGSEGV: u32 = 2;
        let mut state: u32 = 0;
        let args = [PR_GET_TSC, (&raw mut state).expose_provenance(), 0, 0, 0];
        // SAFETY: the kernel writes one `int` to `state`.
        unsafe { call(native::PRCTL, args) }.is_ok() && state == PR_TSC_SIGSEGV
    }

    /// This thread must be able to read the counter, its rate must be constant, and the kernel must
    /// keep its time by it. Such a kernel marks the TSC unstable if the CPUs do not agree.
    pub(super) fn detect() -> Result<(), Status> {
        // The high-water mark is a 64-bit atomic, which a program for ARMv5 lacks on every CPU.
        let is_readable = cfg!(target_has_atomic = "64") && !native::CLOCK_SOURCES.is_empty();
        if !is_readable || !matches!(routes().clock_gettime, Route::Vdso { .. }) {
            return Err(Status::NoCounter);
        }
        if is_denied() {
            return Err(Status::Denied);
        }
        let mut name = [0; 8];
        read_file(CURRENT, &mut name, |_, _| ()).map_err(|_| Status::Unknown)?;
        let name = name.iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != b'\n');
        if !native::CLOCK_SOURCES.iter().any(|source| source.bytes().eq(name.clone())) {
            return Err(Status::ClockSource);
        }
        // QEMU emulates no invariant TSC. The tests assume one by this cfg.
        let is_invariant = native::is_invariant() || cfg!(vdso_time_assume_invariant);
        if !is_invariant {
            return Err(Status::NotInvariant);
        }
        native::detect(auxval);
        Ok(())
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(vdso_time_other_os))))]
mod system {
    use vdso_time::Errno;

    use super::super::sample::Discipline;
    use super::super::status::Status;

    pub(in super::super) fn discipline() -> Result<Discipline, Errno> {
        Err(Errno::ENOSYS)
    }

    pub(super) fn call_kernel() -> Option<()> {
        None
    }

    pub(super) fn marker() -> u64 {
        0
    }

    pub(super) fn detect() -> Result<(), Status> {
        Err(Status::Unsupported)
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use crate::arch::native;

    #[test]
    fn the_numbers_of_the_system_calls_are_libcs() {
        for (ours, libc) in [(native::PRCTL, libc::SYS_prctl), (native::ADJTIMEX, libc::SYS_adjtimex)] {
            assert!(ours == u32::MAX || u32::try_from(libc) == Ok(ours), "{ours}, and not {libc}");
        }
    }
}

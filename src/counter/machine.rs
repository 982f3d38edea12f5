//! [`Native`]: this machine as a [`Source`].

use super::sample::{Discipline, Source};
use super::status::Status;
use crate::arch::{IS_ORDERED_FIRST, order_ticks};
use crate::system::native;
use crate::types::ClockId;

impl Source for Native {
    #[inline]
    fn ticks(&self) -> u64 {
        native::counter::ticks()
    }

    #[inline]
    fn ticks_ordered(&self) -> u64 {
        native::counter::ticks_ordered()
    }

    #[inline]
    fn order(&self) {
        order_ticks();
    }

    #[inline]
    fn ticks_after_order(&self) -> u64 {
        if IS_ORDERED_FIRST { native::counter::ticks() } else { native::counter::ticks_ordered() }
    }

    #[inline]
    fn monotonic(&self) -> Option<u64> {
        Some(self.read(ClockId::MONOTONIC)?.ktime() as u64)
    }

    #[inline]
    fn realtime(&self) -> Option<i64> {
        Some(self.read(ClockId::REALTIME)?.ktime())
    }

    fn raw(&self) -> Option<u64> {
        Some(self.read(ClockId::MONOTONIC_RAW)?.ktime() as u64)
    }

    fn call_kernel(&self) -> Option<()> {
        system::call_kernel()
    }

    fn cpu(&self) -> Option<u32> {
        system::cpu()
    }

    fn detect(&self) -> Result<(), Status> {
        system::detect()
    }

    fn disruption(&self) -> u32 {
        system::disruption()
    }

    fn stated_frequency(&self) -> Option<u64> {
        native::counter::stated_frequency()
    }

    fn discipline(&self) -> Option<Discipline> {
        discipline().ok()
    }
}

pub(super) use system::{Native, discipline};

/// What only Linux says.
#[cfg(vdso_time_linux)]
mod system {
    use super::super::sample::Discipline;
    use super::super::status::Status;
    use crate::arch::detect_ticks;
    use crate::errno::Errno;
    use crate::linux::native::{self, ABI};
    use crate::linux::slot::{ClockFn, Slot};
    use crate::linux::{auxv, calls, process, routes, syscall, timex, vmclock};
    use crate::types::{ClockId, Timespec};

    /// This machine's counter and kernel: a copy of the slot of clock_gettime, in the cache line
    /// that a read after a pause needs anyway.
    #[repr(transparent)]
    pub(in super::super) struct Native(Slot<ClockFn>);

    impl Native {
        pub(in super::super) const fn new() -> Self {
            Self(Slot::new(first))
        }

        #[inline]
        pub(in super::super) fn read(&self, clock: ClockId) -> Option<Timespec> {
            let mut time = Timespec::default();
            if self.0.get()(clock, &mut time) != 0 {
                again(clock, &mut time)?;
            }
            Some(time)
        }
    }

    /// Fills the slot, and the one that this is a copy of.
    #[cold]
    extern "C" fn first(clock: ClockId, out: &mut Timespec) -> i32 {
        let result = calls::slot_of_clock_gettime().get()(clock, out);
        super::super::CLOCK.source().0.set(calls::slot_of_clock_gettime().get());
        result
    }

    #[cold]
    #[inline(never)]
    fn again(clock: ClockId, out: &mut Timespec) -> Option<()> {
        *out = calls::clock_gettime(clock).ok()?;
        Some(())
    }

    /// The kernel's clock source (Documentation/timers/timekeeping.rst). The file is documented in
    /// Documentation/ABI/testing/sysfs-devices-system-clocksource and exists since Linux 2.6.19.
    const CURRENT: &core::ffi::CStr = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";

    pub(in super::super) fn discipline() -> Result<Discipline, Errno> {
        /// Microseconds in a tick of user space, and what one of them more means.
        const TICK: i64 = 10_000;
        const PPB: u64 = 100_000;
        let timex = timex::read()?;
        Ok(Discipline {
            realtime: timex.realtime,
            max_error: timex.max_error.unsigned_abs(),
            slew: timex.tick.abs_diff(TICK).saturating_mul(PPB),
            is_synchronized: timex.is_synchronized,
        })
    }

    pub(super) fn call_kernel() -> Option<()> {
        syscall::clock_gettime(ClockId::MONOTONIC).ok().map(drop)
    }

    /// Returns the CPU, if it matters and that needs no system call.
    #[inline]
    pub(super) fn cpu() -> Option<u32> {
        if native::counter::IS_PER_CPU { routes::cpu_in_user_space() } else { None }
    }

    pub(super) fn disruption() -> u32 {
        vmclock::disruption()
    }

    /// This thread must be able to read the counter, its rate must be constant, and the kernel must
    /// keep its time by it. Such a kernel marks the TSC unstable if the CPUs do not agree.
    pub(super) fn detect() -> Result<(), Status> {
        // The high-water mark is a 64-bit atomic, which a program for ARMv5 lacks on every CPU.
        if cfg!(not(target_has_atomic = "64")) || ABI.clock_sources.is_empty() || !routes::has_clock_gettime()
        {
            return Err(Status::NoCounter);
        }
        if process::is_counter_denied() {
            return Err(Status::Denied);
        }
        let mut name = [0; 8];
        process::read_file(CURRENT, &mut name, |_, _| ()).map_err(|_| Status::Unknown)?;
        let name = name.iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != b'\n');
        if !ABI.clock_sources.iter().any(|source| source.bytes().eq(name.clone())) {
            return Err(Status::ClockSource);
        }
        // QEMU emulates no invariant TSC. The tests assume one by this cfg.
        let is_invariant = native::counter::is_invariant() || cfg!(vdso_time_assume_invariant);
        if !is_invariant {
            return Err(Status::NotInvariant);
        }
        detect_ticks(auxv::value);
        vmclock::open();
        Ok(())
    }
}

#[cfg(not(vdso_time_linux))]
mod system {
    use super::super::sample::Discipline;
    use super::super::status::Status;
    use crate::errno::Errno;
    use crate::system::calls::clock_gettime;
    use crate::types::{ClockId, Timespec};

    pub(in super::super) struct Native;

    impl Native {
        pub(in super::super) const fn new() -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "the same call as on Linux")]
        pub(in super::super) fn read(&self, clock: ClockId) -> Option<Timespec> {
            clock_gettime(clock).ok()
        }
    }

    pub(in super::super) fn discipline() -> Result<Discipline, Errno> {
        Err(Errno::ENOSYS)
    }

    pub(super) fn call_kernel() -> Option<()> {
        None
    }

    pub(super) fn cpu() -> Option<u32> {
        None
    }

    pub(super) fn disruption() -> u32 {
        0
    }

    pub(super) fn detect() -> Result<(), Status> {
        Err(Status::Unsupported)
    }
}

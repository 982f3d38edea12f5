//! The public functions on top of libc, which finds the vDSO itself. They are used on Linux where
//! [`ARCH`](crate::ARCH) is `None`.

#![allow(unsafe_code, reason = "libc is called")]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "documented for other architectures"
)]

use crate::routes::{Route, Routes};

/// The public functions. Their documentation is in `sys/vdso/calls.rs`.
pub(crate) mod calls {
    use crate::arch::libc_errno;
    use crate::errno::Errno;
    use crate::process::kernel;
    use crate::types::{ClockId, Cpu, Timespec, Timeval};

    #[must_use]
    pub fn time() -> i64 {
        try_time().unwrap_or(-1)
    }

    pub fn try_time() -> Result<i64, Errno> {
        // Without CONFIG_POSIX_TIMERS, the kernel has no coarse clocks.
        Ok(clock_gettime(ClockId::REALTIME_COARSE)
            .or_else(|_| clock_gettime(ClockId::REALTIME))?
            .tv_sec)
    }

    pub fn gettimeofday() -> Result<Timeval, Errno> {
        clock_gettime(ClockId::REALTIME).map(Timeval::of)
    }

    pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
        // SAFETY: libc writes only to `time`, and accepts every clock id.
        read(|time| unsafe { libc::clock_gettime(clock.as_raw(), time) })
    }

    pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
        if cfg!(miri) {
            return Err(Errno::ENOSYS);
        }
        // SAFETY: libc writes only to `time`, and accepts every clock id.
        read(|time| unsafe { libc::clock_getres(clock.as_raw(), time) })
    }

    pub fn getcpu() -> Result<Cpu, Errno> {
        kernel::getcpu(libc::SYS_getcpu as u32)
    }

    /// Returns the time that `call` writes, and leaves `errno` alone.
    ///
    /// `call` is a closure that calls libc directly, and not a pointer to libc's function. LLVM's
    /// CFI checks each call through a pointer, and ends the program if the function is not in CFI's
    /// tables.
    #[allow(
        clippy::useless_conversion,
        reason = "a `long` has 32 bits on some of these targets"
    )]
    fn read(call: impl FnOnce(*mut libc::timespec) -> libc::c_int) -> Result<Timespec, Errno> {
        // SAFETY: the fields are numbers and, in musl where `time_t` has 64 bits, padding. All of
        // them can be 0.
        let mut time: libc::timespec = unsafe { core::mem::zeroed() };
        if let (-1, error) = libc_errno::preserved(|| call(&raw mut time)) {
            return Err(Errno::from_raw_os_error(error).unwrap_or(Errno::EINVAL));
        }
        // Negative 32-bit seconds are a time after January 2038.
        if size_of_val(&time.tv_sec) == 4 && time.tv_sec < 0 {
            return Err(Errno::EOVERFLOW);
        }
        Ok(Timespec {
            tv_sec: time.tv_sec.into(),
            tv_nsec: time.tv_nsec.into(),
        })
    }
}

/// The functions of `calls` that return a `Result`. libc decides whether to make the system call.
pub(crate) mod syscall {
    pub use super::calls::{clock_getres, clock_gettime, getcpu, gettimeofday, try_time};
    use crate::types::ClockId;

    /// Returns a function that reads this clock, and returns whether it succeeded.
    pub(crate) fn single_read(clock: ClockId) -> impl Fn() -> bool {
        move || clock_gettime(clock).is_ok()
    }
}

/// Returns what answers each function: [`Route::Libc`].
#[must_use]
pub fn routes() -> Routes {
    Routes::all(Route::Libc)
}

/// Does nothing: libc finds the vDSO.
pub fn warm_up() {}

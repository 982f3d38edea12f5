//! What the other files provide, through libc: for Linux on another architecture, x32, ILP32, and Miri.
//!
//! The table names no symbol of the vDSO, for libc finds them itself, and its numbers are this file's own:
//! [`syscall`] takes them to libc's functions.

use super::libc_errno;
use crate::arch::abi::{Abi, Discovery, Function, Shape, Syscall, call};

const CLOCK_GETTIME: u32 = 0;
const CLOCK_GETRES: u32 = 1;
const GETCPU: u32 = 2;
const RT_SIGPROCMASK: u32 = 3;
const PRCTL: u32 = 4;
const OPENAT: u32 = 5;
const READ: u32 = 6;
const CLOSE: u32 = 7;
/// Bytes of the kernel's `sigset_t`, the last argument of rt_sigprocmask; the caller's is the usual one.
#[cfg(not(miri))]
const SIGSET_SIZE: usize = if cfg!(any(
    target_arch = "mips",
    target_arch = "mips32r6",
    target_arch = "mips64",
    target_arch = "mips64r6"
)) {
    16
} else {
    8
};

/// Whether libc's `time_t` ends in January 2038: glibc and uClibc on 32-bit architectures by default.
const IS_TIME32: bool = size_of::<libc::time_t>() == 4;

const CLOCK: Function =
    function(&[call(CLOCK_GETTIME, Shape::Timespec64)], &[call(CLOCK_GETTIME, Shape::Timespec32)]);
const RESOLUTION: Function =
    function(&[call(CLOCK_GETRES, Shape::Timespec64)], &[call(CLOCK_GETRES, Shape::Timespec32)]);

/// A function without symbols, whose call has the shape of libc's `time_t`.
const fn function(wide: &'static [Syscall], narrow: &'static [Syscall]) -> Function {
    let (syscalls, time32_syscalls): (&'static [Syscall], &'static [Syscall]) =
        if IS_TIME32 { (&[], narrow) } else { (wide, &[]) };
    Function { candidates: &[], syscalls, time32_syscalls }
}

/// The table of no architecture.
pub(crate) static ABI: Abi = Abi {
    name: "libc",
    machine: 0, // EM_NONE
    class: 0,   // ELFCLASSNONE
    version: "",
    time: CLOCK,
    gettimeofday: CLOCK,
    clock_gettime: CLOCK,
    clock_getres: RESOLUTION,
    getcpu: Function { candidates: &[], syscalls: &[call(GETCPU, Shape::Getcpu)], time32_syscalls: &[] },
    clock_sources: &[],
    discovery: Discovery {
        prctl: PRCTL,
        openat: OPENAT,
        read: READ,
        close: CLOSE,
        rt_sigprocmask: RT_SIGPROCMASK,
    },
};

/// Calls libc.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    type Clock = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;
    let before = libc_errno::get();
    let result = match number {
        CLOCK_GETRES if cfg!(miri) => return -(libc::ENOSYS as isize),
        CLOCK_GETTIME | CLOCK_GETRES => {
            let clock: Clock = if number == CLOCK_GETTIME { libc::clock_gettime } else { libc::clock_getres };
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is this function's own, and the id may be any number.
            let result = unsafe { clock(args[0] as libc::clockid_t, &raw mut time) };
            if result == 0 && IS_TIME32 {
                let words = core::ptr::with_exposed_provenance_mut::<[i32; 2]>(args[1]);
                // SAFETY: the table says `Timespec32`, so the caller gave room for two `i32`.
                unsafe { words.write([time.tv_sec as i32, time.tv_nsec as i32]) };
            } else if result == 0 {
                #[allow(clippy::unnecessary_cast, reason = "32 bits on some of these targets")]
                let time = [time.tv_sec as i64, time.tv_nsec as i64];
                let words = core::ptr::with_exposed_provenance_mut::<[i64; 2]>(args[1]);
                // SAFETY: the table says `Timespec64`, so the caller gave room for two `i64`.
                unsafe { words.write(time) };
            }
            result as isize
        }
        #[cfg(not(miri))]
        GETCPU => {
            // SAFETY: the caller gave two places for a `u32`.
            unsafe { libc::syscall(libc::SYS_getcpu, args[0], args[1], args[2]) as isize }
        }
        #[cfg(not(miri))]
        RT_SIGPROCMASK => {
            // SAFETY: the caller gave an invalid `how`, with which the kernel does no more than read.
            unsafe {
                libc::syscall(libc::SYS_rt_sigprocmask, args[0], args[1], args[2], SIGSET_SIZE) as isize
            }
        }
        _ => return -(libc::ENOSYS as isize),
    };
    if result != -1 {
        return result;
    }
    let error = libc_errno::get();
    libc_errno::set(before);
    -(error as isize)
}

/// No counter.
#[cfg(feature = "counter")]
pub(crate) mod counter {
    pub(crate) const IS_READABLE: bool = false;

    pub(crate) fn ticks() -> u64 {
        0
    }

    pub(crate) fn ticks_ordered() -> u64 {
        0
    }

    pub(crate) fn is_invariant() -> bool {
        false
    }

    pub(crate) fn stated_frequency() -> Option<u64> {
        None
    }
}

//! What the other files provide, through libc: for Linux on another architecture, x32, ILP32, and Miri.
//!
//! The table names no symbol of the vDSO, for libc finds them itself, and its numbers are this file's own:
//! [`syscall`] takes them to libc's functions.

use super::abi::{Abi, Discovery, Function, Shape, call};
use super::errno;

const CLOCK_GETTIME: u32 = 0;
const CLOCK_GETRES: u32 = 1;
const GETCPU: u32 = 2;
const RT_SIGPROCMASK: u32 = 3;
const NONE: u32 = u32::MAX;
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

/// The table of no architecture.
pub(crate) static ABI: Abi = Abi {
    name: "absent",
    machine: 0, // EM_NONE
    class: 0,   // ELFCLASSNONE
    version: "",
    time: Function { candidates: &[], syscalls: &[call(CLOCK_GETTIME, Shape::Timespec64)] },
    gettimeofday: Function { candidates: &[], syscalls: &[call(CLOCK_GETTIME, Shape::Timespec64)] },
    clock_gettime: Function { candidates: &[], syscalls: &[call(CLOCK_GETTIME, Shape::Timespec64)] },
    clock_getres: Function { candidates: &[], syscalls: &[call(CLOCK_GETRES, Shape::Timespec64)] },
    getcpu: Function { candidates: &[], syscalls: &[call(GETCPU, Shape::Getcpu)] },
    clock_sources: &[],
    discovery: Discovery {
        prctl: NONE,
        openat: NONE,
        read: NONE,
        close: NONE,
        rt_sigprocmask: RT_SIGPROCMASK,
    },
};

/// Calls libc.
///
/// # Safety
/// The number and the arguments must make a call that keeps Rust's rules.
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    type Clock = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;
    let before = errno::get();
    let result = match number {
        CLOCK_GETRES if cfg!(miri) => return -(libc::ENOSYS as isize),
        CLOCK_GETTIME | CLOCK_GETRES => {
            let clock: Clock = if number == CLOCK_GETTIME { libc::clock_gettime } else { libc::clock_getres };
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is this function's own, and the id may be any number.
            let result = unsafe { clock(args[0] as libc::clockid_t, &raw mut time) };
            if result == 0 {
                #[allow(clippy::unnecessary_cast, reason = "32 bits on some of these targets")]
                let time = [time.tv_sec as i64, time.tv_nsec as i64];
                let words = core::ptr::with_exposed_provenance_mut::<[i64; 2]>(args[1]);
                // SAFETY: the caller gave a `Timespec`, which is two `i64`.
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
    let error = errno::get();
    errno::set(before);
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

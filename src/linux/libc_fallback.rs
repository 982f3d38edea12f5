//! The architecture's table and system calls, through libc: for Linux on an architecture without a
//! table, x32, ILP32 and Miri.
//!
//! The table names no symbol of the vDSO, because libc finds them itself. Its system call numbers
//! are made up; [`syscall`] maps them to libc's functions.

use core::ptr::with_exposed_provenance_mut;

use crate::arch::abi::{Abi, Discovery, Function, Shape, Syscall, call, function};
use crate::arch::libc_errno;
pub(crate) use crate::arch::without_assembly::rseq;

const CLOCK_GETTIME: u32 = 0;
const CLOCK_GETRES: u32 = 1;
const GETCPU: u32 = 2;
const RT_SIGPROCMASK: u32 = 3;
const UNKNOWN: u32 = 4;

/// Whether libc's `time_t` ends in January 2038, as glibc's and uClibc's do by default on 32-bit
/// architectures.
const IS_TIME32: bool = size_of::<libc::time_t>() == 4;

/// A function without symbols, whose call has the shape of libc's `time_t`.
const fn by_libc(wide: &'static [Syscall], narrow: &'static [Syscall]) -> Function {
    if IS_TIME32 { function(&[], &[]).or_time32(narrow) } else { function(&[], wide) }
}

const CLOCK: Function =
    by_libc(&[call(CLOCK_GETTIME, Shape::Timespec64)], &[call(CLOCK_GETTIME, Shape::Timespec32)]);
const RESOLUTION: Function =
    by_libc(&[call(CLOCK_GETRES, Shape::Timespec64)], &[call(CLOCK_GETRES, Shape::Timespec32)]);

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
    getcpu: function(&[], &[call(GETCPU, Shape::Getcpu)]),
    discovery: Discovery {
        prctl: UNKNOWN,
        openat: UNKNOWN,
        read: UNKNOWN,
        close: UNKNOWN,
        rt_sigprocmask: RT_SIGPROCMASK,
    },
};

/// Calls libc. `errno` does not change.
///
/// # Safety
///
/// The call must be sound with these arguments.
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let (result, error) = libc_errno::preserved(|| match number {
        // SAFETY: the caller passes the address of a variable of the shape in the table.
        CLOCK_GETTIME => Some(unsafe { read_clock(libc::clock_gettime, args[0], args[1]) }),
        // SAFETY: the caller passes the address of a variable of the shape in the table.
        CLOCK_GETRES if !cfg!(miri) => Some(unsafe { read_clock(libc::clock_getres, args[0], args[1]) }),
        #[cfg(not(miri))]
        GETCPU => {
            // SAFETY: the caller passes the addresses of two `u32`.
            Some(unsafe { libc::syscall(libc::SYS_getcpu, args[0], args[1], args[2]) as isize })
        }
        #[cfg(not(miri))]
        RT_SIGPROCMASK => {
            let [how, set, old, ..] = args;
            // SAFETY: with the caller's unknown `how` the kernel reads the set and changes nothing.
            Some(unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, set, old, SIGSET_SIZE) as isize })
        }
        _ => None,
    });
    match result {
        None => -(libc::ENOSYS as isize),
        Some(-1) => -(error as isize),
        Some(result) => result,
    }
}

/// Calls a function of libc and writes the time to `out`, with the width that the table says.
///
/// # Safety
///
/// At `out` must be a variable of two `i32` if `IS_TIME32`, else of two `i64`.
unsafe fn read_clock(
    call: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int,
    clock: usize,
    out: usize,
) -> isize {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: libc writes only to `time`, and accepts every clock id.
    let result = unsafe { call(clock as libc::clockid_t, &raw mut time) };
    if result == 0 && IS_TIME32 {
        let out = with_exposed_provenance_mut::<[i32; 2]>(out);
        // SAFETY: the caller promises a variable of two `i32`.
        unsafe { out.write([time.tv_sec as i32, time.tv_nsec as i32]) };
    } else if result == 0 {
        #[allow(clippy::unnecessary_cast, reason = "32 bits on some of these targets")]
        let time = [time.tv_sec as i64, time.tv_nsec as i64];
        let out = with_exposed_provenance_mut::<[i64; 2]>(out);
        // SAFETY: the caller promises a variable of two `i64`.
        unsafe { out.write(time) };
    }
    result as isize
}

/// The size of the kernel's `sigset_t`. The callers pass the one that most architectures have.
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

//! libc's functions, called as by a program that handles errors.

#![allow(unsafe_code, reason = "functions of libc")]

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use vdso_time::ClockId;

use super::keep::Keep;

/// Defines functions that make a call which returns 0 if it wrote to `out`, and keep what it wrote.
macro_rules! libc_calls {
    ($($name:ident($($clock:ident)?): |$out:ident: $type:ty| $call:expr;)*) => {$(
        #[inline]
        pub(super) fn $name($($clock: ClockId)?) {
            let mut answer = MaybeUninit::<$type>::uninit();
            let $out = answer.as_mut_ptr();
            // SAFETY: the function writes at most a value of the type to `out`, which has room for
            // it.
            if unsafe { $call } == 0 {
                // SAFETY: the function returned 0, so it wrote the value.
                unsafe { answer.assume_init() }.keep();
            }
        }
    )*};
}

libc_calls! {
    clock_gettime(clock): |out: libc::timespec| libc::clock_gettime(clock.as_raw(), out);
    clock_getres(clock): |out: libc::timespec| libc::clock_getres(clock.as_raw(), out);
    gettimeofday(): |out: libc::timeval| libc::gettimeofday(out, null_mut());
    syscall_of(clock): |out: libc::timespec| libc::syscall(libc::SYS_clock_gettime, clock.as_raw(), out);
}

#[inline]
pub(super) fn time() {
    // SAFETY: a null pointer asks for the result only.
    super::keep(unsafe { libc::time(null_mut()) });
}

/// Calls sched_getcpu(3), which has no node.
#[inline]
pub(super) fn getcpu() {
    // SAFETY: the function has no precondition.
    super::keep(unsafe { libc::sched_getcpu() });
}

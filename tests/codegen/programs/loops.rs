//! The loops whose instructions `tests/codegen/instruction_count.rs` counts in a listing: each read
//! of a clock by a pointer to the vDSO's function, and by the crate.

#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "this is only listed"
)]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use vdso_time::{ClockId, Instant, SystemTime, Timespec, Timeval};

/// Reads again and again, until a read fails. An answer is one number made of all that was read. So
/// each field is loaded from where it was stored, and a copy in between would show.
fn repeat(turns: usize, read: impl Fn() -> Option<i64>) {
    for _ in 0..turns {
        let Some(answer) = read() else { return };
        black_box(answer);
    }
}

/// Returns what a function of the vDSO writes. The function does not fail, so it writes.
fn written<T>(call: impl FnOnce(*mut T)) -> T {
    let mut out = MaybeUninit::uninit();
    call(out.as_mut_ptr());
    // SAFETY: every kernel has the clocks that are read here, so the function has written.
    unsafe { out.assume_init() }
}

macro_rules! reads {
    ($($direct:ident($function:ident: $signature:ty) $call:expr; $ours:ident $our_call:expr;)*) => {$(
        #[inline(never)]
        pub unsafe fn $direct(turns: usize, $function: $signature) {
            repeat(turns, || Some($call));
        }

        #[inline(never)]
        pub fn $ours(turns: usize) {
            repeat(turns, || $our_call);
        }
    )*};
}

type TimeFn = unsafe extern "C" fn(*mut i64) -> i64;
type ClockFn = unsafe extern "C" fn(i32, *mut Timespec) -> i32;
type GettimeofdayFn = unsafe extern "C" fn(*mut Timeval, *mut ()) -> i32;

reads! {
    direct_time(time: TimeFn) {
        // SAFETY: null is allowed.
        unsafe { time(null_mut()) }
    };
    our_time Some(vdso_time::time());

    direct_gettimeofday(read: GettimeofdayFn) {
        // SAFETY: the function writes only to `time`, and accepts null.
        let time = written(|time| _ = unsafe { read(time, null_mut()) });
        time.tv_sec.wrapping_add(time.tv_usec)
    };
    our_gettimeofday {
        vdso_time::gettimeofday().ok().map(|time| time.tv_sec.wrapping_add(time.tv_usec))
    };

    direct_clock_gettime(read: ClockFn) {
        // SAFETY: the function writes only to `time`.
        sum(written(|time| _ = unsafe { read(ClockId::MONOTONIC.as_raw(), time) }))
    };
    our_clock_gettime vdso_time::clock_gettime(ClockId::MONOTONIC).ok().map(sum);

    direct_instant_now(read: ClockFn) {
        // SAFETY: the function writes only to `time`.
        nanos(written(|time| _ = unsafe { read(ClockId::MONOTONIC.as_raw(), time) }))
    };
    our_instant_now Some(Instant::now().as_nanos());

    direct_system_time_now(read: ClockFn) {
        // SAFETY: the function writes only to `time`.
        sum(written(|time| _ = unsafe { read(ClockId::REALTIME.as_raw(), time) }))
    };
    our_system_time_now Some(sum(SystemTime::now().into()));
}

fn sum(time: Timespec) -> i64 {
    time.tv_sec.wrapping_add(time.tv_nsec)
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec)
}

//! The loops whose instructions are counted: each read of a clock, by a pointer to the vDSO's
//! function and by the crate.
//!
//! `instruction_count.rs` uses the table, and compiles this file to an optimised program of its
//! own, whose loops it lists or executes.

#![allow(dead_code, reason = "the test uses the table, the program runs it")]
#![allow(unsafe_code, reason = "the vDSO's functions are called here")]

use std::hint::black_box;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Cpu, Instant, Timespec, Timeval};

/// Turns of a loop; it is executed once so often, and once twice as often.
pub(crate) const TURNS: usize = 4;

/// A loop. Its function must be the vDSO's, with the signature that the loop calls it by.
type Loop = unsafe fn(turns: usize, function: *const ());

/// A read of a clock. Its loops are called `direct_` and `our_` and its name.
pub(crate) struct Read {
    pub(crate) name: &'static str,
    /// The function of x86_64's vDSO that `direct` calls, and that `ours` must call.
    symbol: &'static str,
    direct: Loop,
    ours: Loop,
}

impl Read {
    /// The vDSO's function; `None` if this kernel's vDSO does not have it.
    pub(crate) fn function(&self) -> Option<*const ()> {
        Vdso::locate().ok()?.symbol_address(self.symbol, None)
    }
}

/// Reads again and again, until a read fails. An answer is one number made of all that was read. So
/// each field is loaded from where it was stored, and a copy in between would show.
fn repeat(turns: usize, read: impl Fn() -> Option<i64>) {
    for _ in 0..turns {
        let Some(answer) = read() else { return };
        black_box(answer);
    }
}

/// What a function of the vDSO writes. The function does not fail, so it writes.
fn written<T>(call: impl FnOnce(*mut T)) -> T {
    let mut place = MaybeUninit::uninit();
    call(place.as_mut_ptr());
    // SAFETY: every kernel has the clocks that are read here, so the function has written.
    unsafe { place.assume_init() }
}

macro_rules! reads {
    ($($name:literal, $symbol:literal: $direct:ident($function:ident: $signature:ty) $call:expr;
       $ours:ident $our_call:expr;)*) => {
        $(
            #[inline(never)]
            unsafe fn $direct(turns: usize, function: *const ()) {
                // SAFETY: the function has this signature, as the caller says.
                let $function = unsafe { transmute::<*const (), $signature>(function) };
                repeat(turns, || Some($call));
            }

            #[inline(never)]
            fn $ours(turns: usize, _: *const ()) {
                repeat(turns, || $our_call);
            }
        )*

        pub(crate) const READS: &[Read] =
            &[$(Read { name: $name, symbol: $symbol, direct: $direct, ours: $ours }),*];
    };
}

type TimeFn = unsafe extern "C" fn(*mut i64) -> i64;
type GettimeofdayFn = unsafe extern "C" fn(*mut Timeval, *mut ()) -> i32;
type ClockFn = unsafe extern "C" fn(i32, *mut Timespec) -> i32;
type GetcpuFn = unsafe extern "C" fn(*mut u32, *mut u32, *mut ()) -> i32;

// clock_getres has another clock, because the compiler makes one function of two that are equal.
reads! {
    "time", "__vdso_time": direct_time(time: TimeFn) {
        // SAFETY: null is allowed.
        unsafe { time(null_mut()) }
    };
    our_time Some(vdso_time::time());

    "gettimeofday", "__vdso_gettimeofday": direct_gettimeofday(gettimeofday: GettimeofdayFn) {
        // SAFETY: the function writes to the place alone.
        micros(written(|now| _ = unsafe { gettimeofday(now, null_mut()) }))
    };
    our_gettimeofday vdso_time::gettimeofday().ok().map(micros);

    "clock_gettime", "__vdso_clock_gettime": direct_clock_gettime(read: ClockFn) {
        // SAFETY: the function writes to the place alone.
        sum(written(|time| _ = unsafe { read(ClockId::MONOTONIC.as_raw(), time) }))
    };
    our_clock_gettime vdso_time::clock_gettime(ClockId::MONOTONIC).ok().map(sum);

    "clock_getres", "__vdso_clock_getres": direct_clock_getres(read: ClockFn) {
        // SAFETY: the function writes to the place alone.
        sum(written(|time| _ = unsafe { read(ClockId::REALTIME.as_raw(), time) }))
    };
    our_clock_getres vdso_time::clock_getres(ClockId::REALTIME).ok().map(sum);

    "getcpu", "__vdso_getcpu": direct_getcpu(getcpu: GetcpuFn) {
        let mut cpu = 0;
        // SAFETY: the function writes to the two places alone.
        let node = written(|node| cpu = written(|cpu| _ = unsafe { getcpu(cpu, node, null_mut()) }));
        both(cpu, node)
    };
    our_getcpu vdso_time::getcpu().ok().map(|Cpu { cpu, node, .. }| both(cpu, node));

    "instant_now", "__vdso_clock_gettime": direct_instant_now(read: ClockFn) {
        // SAFETY: the function writes to the place alone.
        nanos(written(|time| _ = unsafe { read(ClockId::MONOTONIC.as_raw(), time) }))
    };
    our_instant_now Some(Instant::now().as_nanos());
}

fn sum(time: Timespec) -> i64 {
    time.tv_sec.wrapping_add(time.tv_nsec)
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec)
}

fn micros(time: Timeval) -> i64 {
    time.tv_sec.wrapping_add(time.tv_usec)
}

fn both(cpu: u32, node: u32) -> i64 {
    cpu.wrapping_add(node).into()
}

/// Stops for the tracer. Only x86_64 is executed by one; elsewhere the program is only listed.
fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the tracer goes on after it.
    unsafe {
        std::arch::asm!("int3");
    }
}

/// A function of its own, so that what surrounds a loop is the same for any number of turns.
#[inline(never)]
unsafe fn between_breakpoints(run: Loop, turns: usize, function: *const ()) {
    breakpoint();
    // SAFETY: the function is that of the loop, as the caller says.
    unsafe { run(turns, function) };
    breakpoint();
}

fn main() {
    // Every first call is made here. Between the breakpoints each function is in its slot.
    black_box(vdso_time::routes());
    for read in READS {
        let Some(function) = read.function() else { continue };
        for (run, turns) in
            [(read.direct, TURNS), (read.direct, 2 * TURNS), (read.ours, TURNS), (read.ours, 2 * TURNS)]
        {
            // SAFETY: the kernel gives the function of this name the signature that the loop has.
            unsafe { between_breakpoints(run, turns, function) };
        }
    }
}

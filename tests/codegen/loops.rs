//! The loops whose instructions are counted: each read of a clock, by a pointer to the vDSO's function and by the crate.
//!
//! The test that counts them takes the table from here, and makes this file a program of its own, optimised, whose
//! loops it lists or executes.

#![allow(dead_code, reason = "the test takes the table, the program walks it")]
#![allow(unsafe_code, reason = "the vDSO's functions are called here")]

use std::hint::black_box;
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Cpu, Instant, Timespec, Timeval};

/// Turns of a loop; it is executed once so often, and once twice as often.
pub(crate) const TURNS: usize = 4;

/// A loop. Its caller vouches that the function is the vDSO's, with the signature that the loop calls it by.
type Loop = unsafe fn(turns: usize, function: *const ());

/// A read of a clock.
pub(crate) struct Read {
    pub(crate) name: &'static str,
    /// The function of x86_64's vDSO that `direct` takes, and that must be behind `ours`.
    symbol: &'static str,
    /// The loop over a pointer to that function.
    direct: Loop,
    /// The loop over the crate's function.
    ours: Loop,
}

/// Each read; its loops are called `direct_` and `our_` and its name.
pub(crate) const READS: &[Read] = &[
    read("time", "__vdso_time", direct_time, our_time),
    read("gettimeofday", "__vdso_gettimeofday", direct_gettimeofday, our_gettimeofday),
    read("clock_gettime", "__vdso_clock_gettime", direct_clock_gettime, our_clock_gettime),
    read("clock_getres", "__vdso_clock_getres", direct_clock_getres, our_clock_getres),
    read("getcpu", "__vdso_getcpu", direct_getcpu, our_getcpu),
    read("instant_now", "__vdso_clock_gettime", direct_instant_now, our_instant_now),
];

const fn read(name: &'static str, symbol: &'static str, direct: Loop, ours: Loop) -> Read {
    Read { name, symbol, direct, ours }
}

impl Read {
    /// The vDSO's function; `None` if this kernel's vDSO has it not.
    pub(crate) fn function(&self) -> Option<*const ()> {
        Vdso::locate().ok()?.symbol_address(self.symbol, None)
    }
}

type TimeFn = unsafe extern "C" fn(*mut i64) -> i64;
type GettimeofdayFn = unsafe extern "C" fn(*mut Timeval, *mut ()) -> i32;
type ClockFn = unsafe extern "C" fn(i32, *mut Timespec) -> i32;
type GetcpuFn = unsafe extern "C" fn(*mut u32, *mut u32, *mut ()) -> i32;

/// The loop. An answer is one number, made of all that was read: so each field is loaded from where it was stored, and a
/// copy in between would show. A failure ends the loop.
fn repeat(turns: usize, read: impl Fn() -> Option<i64>) {
    for _ in 0..turns {
        let Some(answer) = read() else { return };
        black_box(answer);
    }
}

#[inline(never)]
unsafe fn direct_time(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    let time = unsafe { transmute::<*const (), TimeFn>(function) };
    // SAFETY: a null pointer asks for nothing but the result.
    repeat(turns, || Some(unsafe { time(null_mut()) }));
}

#[inline(never)]
fn our_time(turns: usize, _: *const ()) {
    repeat(turns, || Some(vdso_time::time()));
}

#[inline(never)]
unsafe fn direct_gettimeofday(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    let gettimeofday = unsafe { transmute::<*const (), GettimeofdayFn>(function) };
    repeat(turns, || {
        let mut now = MaybeUninit::uninit();
        // SAFETY: the function writes to `now` alone.
        unsafe { gettimeofday(now.as_mut_ptr(), null_mut()) };
        // SAFETY: it does not fail, so it has written.
        Some(micros(unsafe { now.assume_init() }))
    });
}

#[inline(never)]
fn our_gettimeofday(turns: usize, _: *const ()) {
    repeat(turns, || vdso_time::gettimeofday().ok().map(micros));
}

#[inline(never)]
unsafe fn direct_clock_gettime(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    unsafe { direct_clock(turns, function, ClockId::MONOTONIC, sum) };
}

#[inline(never)]
fn our_clock_gettime(turns: usize, _: *const ()) {
    repeat(turns, || vdso_time::clock_gettime(ClockId::MONOTONIC).ok().map(sum));
}

/// Of another clock, for the compiler makes one of two functions that are equal.
#[inline(never)]
unsafe fn direct_clock_getres(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    unsafe { direct_clock(turns, function, ClockId::REALTIME, sum) };
}

#[inline(never)]
fn our_clock_getres(turns: usize, _: *const ()) {
    repeat(turns, || vdso_time::clock_getres(ClockId::REALTIME).ok().map(sum));
}

#[inline(never)]
unsafe fn direct_getcpu(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    let getcpu = unsafe { transmute::<*const (), GetcpuFn>(function) };
    repeat(turns, || {
        let (mut cpu, mut node) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the function writes to `cpu` and `node` alone.
        unsafe { getcpu(cpu.as_mut_ptr(), node.as_mut_ptr(), null_mut()) };
        // SAFETY: it does not fail, so it has written.
        let cpu = unsafe { cpu.assume_init() };
        // SAFETY: the same of the node.
        Some(both(cpu, unsafe { node.assume_init() }))
    });
}

#[inline(never)]
fn our_getcpu(turns: usize, _: *const ()) {
    repeat(turns, || vdso_time::getcpu().ok().map(|Cpu { cpu, node, .. }| both(cpu, node)));
}

#[inline(never)]
unsafe fn direct_instant_now(turns: usize, function: *const ()) {
    // SAFETY: the caller's function has this signature.
    unsafe { direct_clock(turns, function, ClockId::MONOTONIC, nanos) };
}

#[inline(never)]
fn our_instant_now(turns: usize, _: *const ()) {
    repeat(turns, || Some(Instant::now().as_nanos()));
}

/// The loop over a function of a clock.
unsafe fn direct_clock(turns: usize, function: *const (), clock: ClockId, number: impl Fn(Timespec) -> i64) {
    // SAFETY: the caller's function has this signature.
    let read = unsafe { transmute::<*const (), ClockFn>(function) };
    repeat(turns, || {
        let mut time = MaybeUninit::uninit();
        // SAFETY: the function writes to `time` alone.
        unsafe { read(clock.as_raw(), time.as_mut_ptr()) };
        // SAFETY: every kernel has these clocks, so the function has written.
        Some(number(unsafe { time.assume_init() }))
    });
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

/// Stops for the tracer. Only x86_64 is executed by one; elsewhere the program is but listed.
fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the tracer goes on behind it.
    unsafe {
        std::arch::asm!("int3");
    }
}

/// A function of its own, so that what surrounds a loop is the same for any number of turns.
#[inline(never)]
unsafe fn between_breakpoints(run: Loop, turns: usize, function: *const ()) {
    breakpoint();
    // SAFETY: the caller's function is that of the loop.
    unsafe { run(turns, function) };
    breakpoint();
}

fn main() {
    // Every first call is made here: what is executed between the breakpoints finds its function in the slot.
    black_box(vdso_time::routes());
    for read in READS {
        let Some(function) = read.function() else { continue };
        for (run, turns) in
            [(read.direct, TURNS), (read.direct, 2 * TURNS), (read.ours, TURNS), (read.ours, 2 * TURNS)]
        {
            // SAFETY: the vDSO's function of this name, to which the kernel gives the signature that the loop has.
            unsafe { between_breakpoints(run, turns, function) };
        }
    }
}

//! The vDSO's functions through pointers: the floor of every row. As a careful caller does, these
//! calls initialise the memory for the answer and test the result.

#![allow(unsafe_code, reason = "calls of functions by address")]

use std::ffi::c_long;
use std::mem::{self, MaybeUninit};
use std::ptr::{self, null_mut};

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Route};

use super::keep::Keep;
use crate::harness::Contender;
use crate::harness::samples::DIRECT;

/// clock_gettime and clock_getres, with numbers of 64 or 32 bits.
type ClockFn<N> = unsafe extern "C" fn(i32, *mut [N; 2]) -> i32;
type GettimeofdayFn = unsafe extern "C" fn(*mut [c_long; 2], *mut ()) -> i32;
type TimeFn = unsafe extern "C" fn(*mut c_long) -> c_long;
type GetcpuFn = unsafe extern "C" fn(*mut u32, *mut u32, *mut ()) -> i32;

/// Returns the contender for the symbol of a route, whose name gives the signature.
pub(super) fn contender(route: Route, clock: ClockId) -> Option<Contender> {
    let Route::Vdso { symbol, address, .. } = route else { return None };
    let name = symbol.trim_start_matches("__vdso_").trim_start_matches("__kernel_");
    match name {
        "clock_gettime64" | "clock_getres_time64" => Some(clock_call::<i64>(address, clock)),
        "clock_gettime" | "clock_getres" => Some(clock_call::<c_long>(address, clock)),
        "gettimeofday" => Some(gettimeofday_call(address)),
        "time" => Some(time_call(address)),
        _ => None,
    }
}

/// Returns the function at an address.
///
/// # Safety
/// A function of the type `F` must be there until the process ends.
unsafe fn function<F: Copy>(address: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    let address: *const () = ptr::with_exposed_provenance(address);
    // SAFETY: a function pointer has the size of an address; the caller vouches for the function.
    unsafe { mem::transmute_copy(&address) }
}

fn clock_call<N: Keep + Copy + Default + 'static>(address: usize, clock: ClockId) -> Contender {
    let clock = clock.as_raw();
    // SAFETY: the vDSO has a function with a name of this signature at the address of the route.
    let call: ClockFn<N> = unsafe { function(address) };
    Contender::new(DIRECT, move || {
        let mut out = [N::default(); 2];
        // SAFETY: the function writes two numbers of the type `N` to `out`, and nothing else.
        assert!(unsafe { call(clock, &raw mut out) } == 0, "the vDSO refuses the clock");
        out.keep();
    })
}

fn gettimeofday_call(address: usize) -> Contender {
    // SAFETY: the vDSO has a function with a name of this signature at the address of the route.
    let call: GettimeofdayFn = unsafe { function(address) };
    Contender::new(DIRECT, move || {
        let mut out = [0; 2];
        // SAFETY: the function writes two numbers to `out`, and nothing to the null pointer.
        assert!(unsafe { call(&raw mut out, null_mut()) } == 0, "the vDSO has no time");
        out.keep();
    })
}

fn time_call(address: usize) -> Contender {
    // SAFETY: the vDSO has a function with a name of this signature at the address of the route.
    let call: TimeFn = unsafe { function(address) };
    // SAFETY: a null pointer asks for the result only.
    Contender::new(DIRECT, move || super::keep(unsafe { call(null_mut()) }))
}

/// Returns the contender for the vDSO's getcpu.
pub(super) fn getcpu() -> Option<Contender> {
    let address = Vdso::locate().ok()?.symbol_address("__vdso_getcpu", None)?;
    // SAFETY: the vDSO has a function of this signature at the address of the symbol.
    let call: GetcpuFn = unsafe { function(address.addr()) };
    Some(Contender::new(DIRECT, move || {
        let (mut cpu, mut node) = (MaybeUninit::<u32>::uninit(), MaybeUninit::<u32>::uninit());
        // SAFETY: the function writes the CPU and the node to these two places, and nothing else.
        unsafe { call(cpu.as_mut_ptr(), node.as_mut_ptr(), null_mut()) };
        // SAFETY: getcpu with valid pointers cannot fail, so the CPU is written.
        unsafe { cpu.assume_init() }.keep();
        // SAFETY: as the CPU, the node is written.
        unsafe { node.assume_init() }.keep();
    }))
}

//! The floor: a function of the vDSO itself, through a pointer that the loop has in a register.

#![allow(unsafe_code, reason = "an address is called as a function here")]

use std::mem::{self, MaybeUninit};
use std::ptr;

use vdso_time::arch::{Function, Shape};
use vdso_time::{ClockId, Route};

use super::keep::Keep;
use crate::harness::Contender;

/// clock_gettime and clock_getres, with numbers of 64 or 32 bits.
type ClockFn<N> = unsafe extern "C" fn(i32, *mut [N; 2]) -> i32;
type GettimeofdayFn<N> = unsafe extern "C" fn(*mut [N; 2], *mut ()) -> i32;
type TimeFn<N> = unsafe extern "C" fn(*mut N) -> N;
type GetcpuFn = unsafe extern "C" fn(*mut u32, *mut u32, *mut ()) -> i32;

/// The contender `direct` for the function that a route leads to, with the shape that the table gives its symbol.
#[must_use]
pub fn contender(route: Route, function: &Function, clock: ClockId) -> Option<Contender> {
    let Route::Vdso { symbol, address, .. } = route else { return None };
    let candidate = function.candidates.iter().find(|candidate| candidate.name == symbol)?;
    match candidate.shape {
        Shape::Timespec64 => Some(clock_call::<i64>(address, clock)),
        Shape::Timespec32 => Some(clock_call::<i32>(address, clock)),
        Shape::Timeval64 => Some(gettimeofday_call::<i64>(address)),
        Shape::Timeval32 => Some(gettimeofday_call::<i32>(address)),
        Shape::Time64 => Some(time_call::<i64>(address)),
        Shape::Time32 => Some(time_call::<i32>(address)),
        Shape::Getcpu => Some(getcpu_call(address)),
        _ => None,
    }
}

/// The function at an address.
///
/// # Safety
/// There must be code of the signature `F`, a type of function pointers, for the life of the process.
unsafe fn function<F: Copy>(address: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    let address: *const () = ptr::with_exposed_provenance(address);
    // SAFETY: a function pointer is as large as an address; the caller vouches for the code.
    unsafe { mem::transmute_copy(&address) }
}

fn clock_call<N: Keep + 'static>(address: usize, clock: ClockId) -> Contender {
    let clock = clock.as_raw();
    // SAFETY: the route says that the vDSO has a function there, the table that it has this signature.
    let call: ClockFn<N> = unsafe { function(address) };
    let mut place = MaybeUninit::uninit();
    // SAFETY: the function writes to `place` alone.
    let refused = unsafe { call(clock, place.as_mut_ptr()) } != 0;
    if refused {
        return Contender::new("direct", move || {
            let mut place = MaybeUninit::uninit();
            // SAFETY: as above.
            unsafe { call(clock, place.as_mut_ptr()) }.keep();
        });
    }
    Contender::new("direct", move || {
        let mut place = MaybeUninit::uninit();
        // SAFETY: as above.
        unsafe { call(clock, place.as_mut_ptr()) };
        // SAFETY: the call above, the same, answered 0, so this one does, and the numbers are written.
        unsafe { place.assume_init() }.keep();
    })
}

fn gettimeofday_call<N: Keep + 'static>(address: usize) -> Contender {
    // SAFETY: as in `clock_call`.
    let call: GettimeofdayFn<N> = unsafe { function(address) };
    Contender::new("direct", move || {
        let mut place = MaybeUninit::uninit();
        // SAFETY: the function writes to `place` alone.
        unsafe { call(place.as_mut_ptr(), ptr::null_mut()) };
        // SAFETY: it refuses nothing, so the numbers are written.
        unsafe { place.assume_init() }.keep();
    })
}

fn time_call<N: Keep + 'static>(address: usize) -> Contender {
    // SAFETY: as in `clock_call`.
    let call: TimeFn<N> = unsafe { function(address) };
    Contender::new("direct", move || {
        // SAFETY: a null pointer asks for nothing but the result.
        unsafe { call(ptr::null_mut()) }.keep();
    })
}

fn getcpu_call(address: usize) -> Contender {
    // SAFETY: as in `clock_call`.
    let call: GetcpuFn = unsafe { function(address) };
    Contender::new("direct", move || {
        let (mut cpu, mut node) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the function writes to `cpu` and `node` alone.
        unsafe { call(cpu.as_mut_ptr(), node.as_mut_ptr(), ptr::null_mut()) };
        // SAFETY: it refuses nothing, so the CPU is written.
        unsafe { cpu.assume_init() }.keep();
        // SAFETY: and the node.
        unsafe { node.assume_init() }.keep();
    })
}

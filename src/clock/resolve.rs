//! The slots, and the one loop over the tables that decides what each will hold.
//!
//! A slot has the signature with 64-bit numbers, whatever the vDSO has. It ends up with the vDSO's function itself,
//! with an adapter to one of another shape ([`width`]), or with the system call; the vDSO's functions fail
//! one by one. Whatever a call answers later, a slot keeps what it got.
//!
//! # Safety
//! The functions here and in [`width`] that a slot may hold are called as the kernel's are: each place that they are given
//! must be good for a write, and nobody else's meanwhile.

use core::mem::MaybeUninit;
use core::ptr;

use super::route::Reason;
use super::width;
use crate::arch::native::ABI;
use crate::arch::{Abi, Candidate, Function, Quirk, Shape};
use crate::elf::{Entry, Format, Native, Walk};
use crate::error::Errno;
use crate::once::{ClockFn, FnPtr, GetcpuFn, GettimeofdayFn, OnceFn, TimeFn};
use crate::sys;
use crate::types::{ClockId, Timespec, Timeval};
use crate::vdso;

pub(super) static TIME: OnceFn<TimeFn> = OnceFn::new(first_time);
pub(super) static GETTIMEOFDAY: OnceFn<GettimeofdayFn> = OnceFn::new(first_gettimeofday);
pub(super) static CLOCK_GETTIME: OnceFn<ClockFn> = OnceFn::new(first_clock_gettime);
pub(super) static CLOCK_GETRES: OnceFn<ClockFn> = OnceFn::new(first_clock_getres);
pub(super) static GETCPU: OnceFn<GetcpuFn> = OnceFn::new(first_getcpu);

/// The first of some candidates that the image has and that is fit to be called.
pub(super) fn choose<'t, F: Format>(
    abi: &Abi,
    candidates: impl Iterator<Item = &'t Candidate>,
    image: &Walk<'_, F>,
    unfit: impl Fn(&Candidate) -> Option<Quirk>,
) -> Result<(&'t Candidate, Entry), Reason> {
    if (image.machine(), image.class()) != (abi.machine, abi.class) {
        return Err(Reason::ForeignImage);
    }
    let mut reason = Reason::NoSymbol;
    for candidate in candidates {
        if let Some(quirk) = unfit(candidate) {
            reason = Reason::Unfit(quirk);
        } else if let Some(entry) = image.find(candidate.name, Some(abi.version)) {
            return Ok((candidate, entry));
        }
    }
    Err(reason)
}

/// The state of the image in which a candidate must not be called, if the image is in it. States that are not possible are
/// not looked for.
pub(super) fn unfit<F: Format>(
    image: &Walk<'_, F>,
    candidate: &Candidate,
    possible: impl Fn(Quirk) -> bool,
) -> Option<Quirk> {
    candidate.unless.filter(|&quirk| {
        possible(quirk)
            && match quirk {
                Quirk::BlankedNames => image.has_blanked_names(),
                Quirk::Relocated => image.load_address() != 0,
            }
    })
}

/// Finds the vDSO and, in it, the winner among a function's candidates, or among those of one shape: its shape and its
/// address.
#[inline(never)]
fn winner(candidates: &'static [Candidate], wanted: Option<Shape>) -> Option<(Shape, *mut ())> {
    let (bytes, head) = vdso::find::<Native>().ok()?;
    let image = Walk::parse(bytes, head).ok()?;
    let wanted = |candidate: &&Candidate| wanted.is_none_or(|shape| candidate.shape == shape);
    let possible = |quirk| match quirk {
        Quirk::BlankedNames => const { ABI.has_quirk(Quirk::BlankedNames) },
        Quirk::Relocated => const { ABI.has_quirk(Quirk::Relocated) },
    };
    let unfit = |candidate: &_| unfit(&image, candidate, possible);
    let (winner, entry) = choose(&ABI, candidates.iter().filter(wanted), &image, unfit).ok()?;
    let address = vdso::address(&image, entry.value);
    Some((winner.shape, ptr::with_exposed_provenance_mut(address)))
}

/// Decides what the slot behind an adapter will hold: the symbol of this very shape, or a refusal.
pub(super) fn resolve_shape<F: FnPtr>(function: &'static Function, own: Shape, refusal: F) -> F {
    match winner(function.candidates, Some(own)) {
        // SAFETY: the table says that the symbol is code of this shape, and `F` is the shape's type; the vDSO stays.
        Some((_, address)) => unsafe { OnceFn::at(address) },
        None => refusal,
    }
}

// The resolvers, which the slots are born with. An adapter is named only where the table has a row for it, so that
// a 64-bit program does not carry the 32-bit ones.

#[cold]
unsafe extern "C" fn first_time(place: *mut i64) -> i64 {
    let found: TimeFn = match winner(ABI.time.candidates, None) {
        Some((Shape::Time64, code)) => {
            // SAFETY: the table says that the symbol is code of this signature; the vDSO stays.
            let symbol: TimeFn = unsafe { OnceFn::at(code) };
            // `time` has no test for an error, so a symbol that is seen to return one is not taken.
            // SAFETY: the caller's `place` is good.
            if is_error(unsafe { symbol(place) }) { width::time_by_clock } else { symbol }
        }
        Some((Shape::Time32, _)) if const { ABI.time.has(Shape::Time32) } => width::time,
        Some(_) => width::time_by_clock,
        None => kernel_time,
    };
    TIME.set(found);
    // SAFETY: it is code of this signature; the caller's `place` is good.
    unsafe { found(place) }
}

#[cold]
unsafe extern "C" fn first_gettimeofday(time: *mut Timeval, zone: *mut ()) -> i32 {
    let found: GettimeofdayFn = match winner(ABI.gettimeofday.candidates, None) {
        // SAFETY: as in `first_time`.
        Some((Shape::Timeval64, code)) => unsafe { OnceFn::at(code) },
        Some((Shape::Timespec64, _)) if const { ABI.gettimeofday.has(Shape::Timespec64) } => {
            width::gettimeofday_by_clock
        }
        Some((Shape::Timeval32, _)) if const { ABI.gettimeofday.has(Shape::Timeval32) } => {
            width::gettimeofday
        }
        _ => kernel_gettimeofday,
    };
    GETTIMEOFDAY.set(found);
    // SAFETY: it is code of this signature; the caller's places are good.
    unsafe { found(time, zone) }
}

#[cold]
unsafe extern "C" fn first_clock_gettime(clock: i32, time: *mut Timespec) -> i32 {
    let found: ClockFn = match winner(ABI.clock_gettime.candidates, None) {
        // SAFETY: as in `first_time`.
        Some((Shape::Timespec64, code)) => unsafe { OnceFn::at(code) },
        Some(_) if const { ABI.clock_gettime.has(Shape::Timespec32) } => width::clock_gettime,
        _ => kernel_clock_gettime,
    };
    CLOCK_GETTIME.set(found);
    // SAFETY: it is code of this signature; the caller's place is good.
    unsafe { found(clock, time) }
}

#[cold]
unsafe extern "C" fn first_clock_getres(clock: i32, resolution: *mut Timespec) -> i32 {
    let found: ClockFn = match winner(ABI.clock_getres.candidates, None) {
        // SAFETY: as in `first_time`.
        Some((Shape::Timespec64, code)) => unsafe { OnceFn::at(code) },
        Some(_) if const { ABI.clock_getres.has(Shape::Timespec32) } => width::clock_getres,
        _ => kernel_clock_getres,
    };
    CLOCK_GETRES.set(found);
    // SAFETY: it is code of this signature; the caller's place is good.
    unsafe { found(clock, resolution) }
}

#[cold]
pub(super) unsafe extern "C" fn first_getcpu(cpu: *mut u32, node: *mut u32, unused: *mut ()) -> i32 {
    let found: GetcpuFn = match winner(ABI.getcpu.candidates, None) {
        // SAFETY: as in `first_time`.
        Some((Shape::Getcpu, code)) => unsafe { OnceFn::at(code) },
        _ => kernel_getcpu,
    };
    GETCPU.set(found);
    // SAFETY: it is code of this signature; the caller's places are good.
    unsafe { found(cpu, node, unused) }
}

// The system calls, with the signatures of the slots. Their addresses are compared (`OnceFn::holds`): inlinable, a function
// may have one in each codegen unit.

#[inline(never)]
pub(super) unsafe extern "C" fn kernel_time(_: *mut i64) -> i64 {
    sys::time().unwrap_or(-1)
}

#[inline(never)]
pub(super) unsafe extern "C" fn kernel_gettimeofday(time: *mut Timeval, _: *mut ()) -> i32 {
    // SAFETY: the caller's place is good.
    let place = unsafe { &mut *time.cast::<MaybeUninit<Timeval>>() };
    raw(sys::read_timeval(place.write(Timeval::default())))
}

#[inline(never)]
pub(super) unsafe extern "C" fn kernel_clock_gettime(clock: i32, time: *mut Timespec) -> i32 {
    // SAFETY: the caller's place is good.
    unsafe { kernel_clock(&sys::CLOCK_GETTIME, clock, time) }
}

#[inline(never)]
pub(super) unsafe extern "C" fn kernel_clock_getres(clock: i32, resolution: *mut Timespec) -> i32 {
    // SAFETY: the caller's place is good.
    unsafe { kernel_clock(&sys::CLOCK_GETRES, clock, resolution) }
}

/// Asks the system calls of a clock function.
///
/// # Safety
/// `place` must be good for a write.
unsafe fn kernel_clock(calls: &sys::Chain, clock: i32, place: *mut Timespec) -> i32 {
    // SAFETY: the caller's duty.
    let place = unsafe { &mut *place.cast::<MaybeUninit<Timespec>>() };
    raw(calls.read(ClockId::from_raw(clock), place.write(Timespec::default())))
}

#[inline(never)]
pub(super) unsafe extern "C" fn kernel_getcpu(cpu: *mut u32, node: *mut u32, _: *mut ()) -> i32 {
    // A sandbox may say 0 and write nothing: that is CPU 0 then.
    // SAFETY: the caller's place is good for a write.
    unsafe { cpu.write(0) };
    // SAFETY: the same.
    unsafe { node.write(0) };
    // SAFETY: the same of both.
    unsafe { sys::getcpu_at(cpu, node) as i32 }
}

/// A result as the kernel gives it.
fn raw(result: Result<(), Errno>) -> i32 {
    result.map_or_else(|error| -error.raw_os_error(), |()| 0)
}

/// Writes an answer, or returns the error, as the kernel does.
///
/// # Safety
/// `place` must be good for a write.
pub(super) unsafe fn deliver<T>(answer: Result<T, Errno>, place: *mut T) -> i32 {
    match answer {
        Ok(value) => {
            // SAFETY: the caller's duty.
            unsafe { place.write(value) };
            0
        }
        Err(error) => -error.raw_os_error(),
    }
}

/// Whether a raw result is an error, not a time.
#[inline]
pub(super) const fn is_error(result: i64) -> bool {
    matches!(result, -4095..=-1)
}

//! The slots, and the one pass over the image that fills all of them.
//!
//! A slot has the 64-bit signature on every kernel. It gets the vDSO's own function, an adapter to
//! a function of another signature ([`adapters`]), or the system call. Each function is decided
//! alone: a missing symbol does not disable another function. A slot keeps its function, whatever a
//! call answers later.

use core::ptr;

use super::adapters;
use super::native::ABI;
use super::outcome::{FallbackReason, Outcome, RECORDS, outcomes};
use super::rseq;
use super::slot::{ClockFn, Code, GetcpuFn, GettimeofdayFn, Slot, TimeFn};
use super::syscall;
use super::vdso;
use crate::arch::{Function, Quirk, Shape, set_entry};
use crate::elf::Native;
use crate::types::{Timespec, Timeval};

/// Defines a slot and the resolver that it starts with.
macro_rules! slots {
    ($($SLOT:ident: $Function:ty, $resolver:ident($($argument:ident: $T:ty),+) -> $result:ty;)+) => {$(
        pub(super) static $SLOT: Slot<$Function> = Slot::new($resolver);

        #[cold]
        unsafe extern "C" fn $resolver($($argument: $T),+) -> $result {
            resolve_all();
            let function = $SLOT.get();
            // SAFETY: the slot holds a function of the resolver's own signature, so the caller's
            // promises about the arguments hold for it.
            unsafe { function($($argument),+) }
        }
    )+};
}

slots! {
    TIME: TimeFn, first_time(out: *mut i64) -> i64;
    GETTIMEOFDAY: GettimeofdayFn, first_gettimeofday(out: *mut Timeval, zone: *mut ()) -> i32;
    CLOCK_GETTIME: ClockFn, first_clock_gettime(clock: i32, out: *mut Timespec) -> i32;
    CLOCK_GETRES: ClockFn, first_clock_getres(clock: i32, out: *mut Timespec) -> i32;
    GETCPU: GetcpuFn, first_getcpu(cpu: *mut u32, node: *mut u32, unused: *mut ()) -> i32;
}

/// Finds the vDSO and fills every slot.
#[inline(never)]
pub(super) fn resolve_all() {
    let outcomes = match vdso::find::<Native>() {
        Ok(image) if (image.machine(), image.class()) == (ABI.machine, ABI.class) => {
            let address = |value| vdso::address(&image, value);
            set_entry(|name, version| {
                let entry = image.find(name, Some(version))?;
                Some(ptr::with_exposed_provenance_mut(address(entry.value)))
            });
            let is_blanked = const { ABI.has_quirk(Quirk::BlankedNames) } && image.has_blanked_names();
            outcomes(&ABI, &image, is_blanked, address)
        }
        Ok(_) => [Outcome::Fallback(FallbackReason::ForeignImage); 5],
        Err(error) => [Outcome::Fallback(FallbackReason::from(error)); 5],
    };
    rseq::find();
    for (outcome, record) in outcomes.iter().zip(&RECORDS) {
        record.store(*outcome);
    }
    let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
    CLOCK_GETTIME.set(
        code(&ABI.clock_gettime, clock_gettime)
            .and_then(clock_gettime_from)
            .unwrap_or(syscall::slot_clock_gettime),
    );
    CLOCK_GETRES.set(
        code(&ABI.clock_getres, clock_getres)
            .and_then(clock_getres_from)
            .unwrap_or(syscall::slot_clock_getres),
    );
    GETTIMEOFDAY.set(
        code(&ABI.gettimeofday, gettimeofday)
            .and_then(gettimeofday_from)
            .unwrap_or(syscall::slot_gettimeofday),
    );
    GETCPU.set(getcpu_from(code(&ABI.getcpu, getcpu)));
    TIME.set(code(&ABI.time, time).and_then(time_from).unwrap_or(syscall::slot_time));
}

/// Returns the code of the symbol that answers a function.
fn code(function: &Function, outcome: Outcome) -> Option<Code> {
    let Outcome::Symbol { row, address, .. } = outcome else { return None };
    let shape = function.candidates.get(row)?.shape;
    // SAFETY: `outcomes` found the symbol of this row in the vDSO, and the table says that it has
    // this shape. The vDSO stays mapped (`Vdso::locate`).
    Some(unsafe { Code::new(shape, address) })
}

// Each of these returns the symbol's own function or an adapter to it. They name an adapter only if
// the table has a row for it, so the compiler leaves the 32-bit ones out of 64-bit programs. The
// symbol of an adapter is stored before the slot.

fn clock_gettime_from(code: Code) -> Option<ClockFn> {
    if const { ABI.clock_gettime.has(Shape::Timespec32) } {
        if let Some(function) = code.function() {
            adapters::CLOCK_GETTIME32.set(function);
            return Some(adapters::clock_gettime_from_32);
        }
    }
    let function = code.function()?;
    adapters::CLOCK_GETTIME.set(function);
    Some(function)
}

fn clock_getres_from(code: Code) -> Option<ClockFn> {
    if const { ABI.clock_getres.has(Shape::Timespec32) } {
        if let Some(function) = code.function() {
            adapters::CLOCK_GETRES32.set(function);
            return Some(adapters::clock_getres_from_32);
        }
    }
    code.function()
}

fn gettimeofday_from(code: Code) -> Option<GettimeofdayFn> {
    if const { ABI.gettimeofday.has(Shape::Timespec64) } {
        if let Some(function) = code.function() {
            adapters::CLOCK_GETTIME.set(function);
            return Some(adapters::gettimeofday_from_clock_gettime);
        }
    }
    if const { ABI.gettimeofday.has(Shape::Timeval32) } {
        if let Some(function) = code.function() {
            adapters::GETTIMEOFDAY32.set(function);
            return Some(adapters::gettimeofday_from_32);
        }
    }
    code.function()
}

fn getcpu_from(code: Option<Code>) -> GetcpuFn {
    let function = code.and_then(Code::function);
    if !rseq::has_node() {
        return function.unwrap_or(syscall::slot_getcpu);
    }
    if let Some(function) = function {
        adapters::GETCPU.set(function);
    }
    adapters::getcpu_from_rseq
}

fn time_from(code: Code) -> Option<TimeFn> {
    if const { ABI.time.has(Shape::Timespec64) } {
        if let Some(function) = code.function() {
            adapters::CLOCK_GETTIME.set(function);
            return Some(adapters::time_from_clock_gettime);
        }
    }
    if const { ABI.time.has(Shape::Timespec32) } {
        if let Some(function) = code.function() {
            adapters::CLOCK_GETTIME32.set(function);
            return Some(adapters::time_from_clock_gettime32);
        }
    }
    if const { ABI.time.has(Shape::Time32) } {
        if let Some(function) = code.function() {
            adapters::TIME32.set(function);
            return Some(adapters::time_from_32);
        }
    }
    if const { !ABI.time.has(Shape::Time64) } {
        return None;
    }
    let function: TimeFn = code.function()?;
    // The callers of `time` do not test its result, so a symbol that returns an error is not used.
    // SAFETY: the function is time(2)'s, which accepts a null pointer.
    let is_error = is_error(unsafe { function(ptr::null_mut()) });
    Some(if is_error { adapters::time_from_clock_gettime } else { function })
}

/// Returns whether a raw result is an error and not a time.
#[inline]
pub(super) const fn is_error(result: i64) -> bool {
    matches!(result, -4095..=-1)
}

//! The slots, and the one pass over the image that fills all of them.
//!
//! A slot has the 64-bit signature whatever the vDSO has. It ends up with the vDSO's own function, with
//! an adapter to one of another signature ([`adapters`]), or with the system call. Each function is
//! decided alone: a symbol that is missing costs no other function its symbol. A slot keeps what it got,
//! whatever a call answers later.

use core::ptr;

use super::adapters;
use super::native::ABI;
use super::outcome::{FallbackReason, Outcome, RECORDS, outcomes};
use super::slot::{ClockFn, GetcpuFn, GettimeofdayFn, Slot, TimeFn, function_at};
use super::syscall;
use super::vdso;
use crate::arch::{Function, Quirk, Shape, set_entry};
use crate::elf::Native;
use crate::types::{Timespec, Timeval};

pub(super) static TIME: Slot<TimeFn> = Slot::new(first_time);
pub(super) static GETTIMEOFDAY: Slot<GettimeofdayFn> = Slot::new(first_gettimeofday);
pub(super) static CLOCK_GETTIME: Slot<ClockFn> = Slot::new(first_clock_gettime);
pub(super) static CLOCK_GETRES: Slot<ClockFn> = Slot::new(first_clock_getres);
pub(super) static GETCPU: Slot<GetcpuFn> = Slot::new(first_getcpu);

// The resolvers, which the slots start with. Their callers promise what those of the real functions do.

#[cold]
unsafe extern "C" fn first_time(out: *mut i64) -> i64 {
    resolve_all();
    let time = TIME.get();
    // SAFETY: the slot holds code of this signature, and the caller's pointer is good.
    unsafe { time(out) }
}

#[cold]
unsafe extern "C" fn first_gettimeofday(out: *mut Timeval, zone: *mut ()) -> i32 {
    resolve_all();
    let gettimeofday = GETTIMEOFDAY.get();
    // SAFETY: the slot holds code of this signature, and the caller's pointers are good.
    unsafe { gettimeofday(out, zone) }
}

#[cold]
unsafe extern "C" fn first_clock_gettime(clock: i32, out: *mut Timespec) -> i32 {
    resolve_all();
    let clock_gettime = CLOCK_GETTIME.get();
    // SAFETY: the slot holds code of this signature, and the caller's pointer is good.
    unsafe { clock_gettime(clock, out) }
}

#[cold]
unsafe extern "C" fn first_clock_getres(clock: i32, out: *mut Timespec) -> i32 {
    resolve_all();
    let clock_getres = CLOCK_GETRES.get();
    // SAFETY: the slot holds code of this signature, and the caller's pointer is good.
    unsafe { clock_getres(clock, out) }
}

#[cold]
unsafe extern "C" fn first_getcpu(cpu: *mut u32, node: *mut u32, unused: *mut ()) -> i32 {
    resolve_all();
    let getcpu = GETCPU.get();
    // SAFETY: the slot holds code of this signature, and the caller's pointers are good.
    unsafe { getcpu(cpu, node, unused) }
}

/// Finds the vDSO, and fills every slot.
#[inline(never)]
pub(super) fn resolve_all() {
    let outcomes = match vdso::find::<Native>() {
        Ok(image) => {
            set_entry(|name, version| {
                let is_native = image.machine() == ABI.machine;
                let entry = image.find(name, Some(version)).filter(|_| is_native)?;
                Some(ptr::with_exposed_provenance_mut(vdso::address(&image, entry.value)))
            });
            let is_blanked = const { ABI.has_quirk(Quirk::BlankedNames) } && image.has_blanked_names();
            outcomes(&ABI, &image, is_blanked)
        }
        Err(error) => [Outcome::fallback(FallbackReason::from(error)); 5],
    };
    for (outcome, record) in outcomes.iter().zip(&RECORDS) {
        record.store(*outcome);
    }
    let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
    fill_clock_gettime(found(&ABI.clock_gettime, clock_gettime));
    fill_clock_getres(found(&ABI.clock_getres, clock_getres));
    fill_gettimeofday(found(&ABI.gettimeofday, gettimeofday));
    fill_getcpu(found(&ABI.getcpu, getcpu));
    fill_time(found(&ABI.time, time));
}

fn found(function: &Function, outcome: Outcome) -> Found {
    let (row, address) = outcome.row()?;
    Some((function.candidates.get(row)?.shape, ptr::with_exposed_provenance_mut(address)))
}

/// The signature and the code of the symbol that answers a function.
type Found = Option<(Shape, *mut ())>;

// An adapter is named only where the table has a row for it, so that a 64-bit program does not carry the
// 32-bit ones. Each fills the symbols of its adapter first, then the slot.

fn fill_time(found: Found) {
    TIME.set(match found {
        Some((Shape::Time64, code)) if const { ABI.time.has(Shape::Time64) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            let symbol: TimeFn = unsafe { function_at(code) };
            // The callers of `time` do not look for errors, so a symbol that returns one is not used.
            // SAFETY: the symbol has this signature, and accepts a null pointer.
            let is_error = is_error(unsafe { symbol(ptr::null_mut()) });
            if is_error { adapters::time_from_clock_gettime } else { symbol }
        }
        Some((Shape::Timespec64, code)) if const { ABI.time.has(Shape::Timespec64) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETTIME.set(code) };
            adapters::time_from_clock_gettime
        }
        Some((Shape::Timespec32, code)) if const { ABI.time.has(Shape::Timespec32) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETTIME32.set(code) };
            adapters::time_from_clock_gettime32
        }
        Some((Shape::Time32, code)) if const { ABI.time.has(Shape::Time32) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::TIME32.set(code) };
            adapters::time_from_32
        }
        _ => syscall::slot_time,
    });
}

fn fill_gettimeofday(found: Found) {
    GETTIMEOFDAY.set(match found {
        // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
        Some((Shape::Timeval64, code)) => unsafe { function_at(code) },
        Some((Shape::Timespec64, code)) if const { ABI.gettimeofday.has(Shape::Timespec64) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETTIME.set(code) };
            adapters::gettimeofday_from_clock_gettime
        }
        Some((Shape::Timeval32, code)) if const { ABI.gettimeofday.has(Shape::Timeval32) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::GETTIMEOFDAY32.set(code) };
            adapters::gettimeofday_from_32
        }
        _ => syscall::slot_gettimeofday,
    });
}

fn fill_clock_gettime(found: Found) {
    CLOCK_GETTIME.set(match found {
        Some((Shape::Timespec64, code)) => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETTIME.set(code) };
            // SAFETY: the same.
            unsafe { function_at(code) }
        }
        Some((Shape::Timespec32, code)) if const { ABI.clock_gettime.has(Shape::Timespec32) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETTIME32.set(code) };
            adapters::clock_gettime_from_32
        }
        _ => syscall::slot_clock_gettime,
    });
}

fn fill_clock_getres(found: Found) {
    CLOCK_GETRES.set(match found {
        // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
        Some((Shape::Timespec64, code)) => unsafe { function_at(code) },
        Some((Shape::Timespec32, code)) if const { ABI.clock_getres.has(Shape::Timespec32) } => {
            // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
            unsafe { adapters::CLOCK_GETRES32.set(code) };
            adapters::clock_getres_from_32
        }
        _ => syscall::slot_clock_getres,
    });
}

fn fill_getcpu(found: Found) {
    GETCPU.set(match found {
        // SAFETY: the table says that the symbol has this signature, and the vDSO stays.
        Some((Shape::Getcpu, code)) => unsafe { function_at(code) },
        _ => syscall::slot_getcpu,
    });
}

/// Whether a raw result is an error and not a time.
#[inline]
pub(super) const fn is_error(result: i64) -> bool {
    matches!(result, -4095..=-1)
}

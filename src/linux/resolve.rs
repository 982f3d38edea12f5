//! The slots, and the one pass over the image that fills all of them.
//!
//! A slot has the 64-bit signature on every kernel. It gets the vDSO's own function, an adapter to
//! a function of another signature ([`adapters`]), or the system call. Each function is decided
//! alone: a missing symbol does not disable another function. A slot keeps its function, whatever a
//! call answers later.

use core::ptr;

use super::adapters;
use super::native::ABI;
use super::record::RECORDS;
use super::rseq;
use super::slot::{ClockFn, Code, GetcpuFn, GettimeofdayFn, Slot, TimeFn};
use super::syscall;
use super::vdso;
use crate::arch::{Function, Quirk, Shape, set_entry};
use crate::elf::{Entry, Native};
use crate::route::{FallbackReason, Outcome, outcomes};
use crate::types::{ClockId, Timespec, Timeval};

/// Defines a slot and the resolver that it starts with.
macro_rules! slots {
    ($($SLOT:ident: $Function:ty, $resolver:ident($($argument:ident: $T:ty),+) -> $result:ty;)+) => {$(
        pub(super) static $SLOT: Slot<$Function> = Slot::new($resolver);

        #[cold]
        extern "C" fn $resolver($($argument: $T),+) -> $result {
            resolve_all();
            $SLOT.get()($($argument),+)
        }
    )+};
}

slots! {
    TIME: TimeFn, first_time(out: Option<&mut i64>) -> i64;
    GETTIMEOFDAY: GettimeofdayFn, first_gettimeofday(out: &mut Timeval, zone: Option<&mut ()>) -> i32;
    CLOCK_GETTIME: ClockFn, first_clock_gettime(clock: ClockId, out: &mut Timespec) -> i32;
    CLOCK_GETRES: ClockFn, first_clock_getres(clock: ClockId, out: &mut Timespec) -> i32;
    GETCPU: GetcpuFn, first_getcpu(cpu: &mut u32, node: &mut u32, unused: Option<&mut ()>) -> i32;
}

/// Finds the vDSO and fills every slot.
#[inline(never)]
pub(super) fn resolve_all() {
    let outcomes = match vdso::find::<Native>(false).map(|image| image.parsed.in_format::<Native>()) {
        Ok(Some(image)) if (image.machine(), image.class()) == (ABI.machine, ABI.class) => {
            let code = |entry: &Entry| vdso::code(&image, entry);
            set_entry(|name, version| {
                let entry = image.find(name, Some(version))?;
                code(&entry).ok().map(ptr::with_exposed_provenance_mut)
            });
            let is_blanked = const { ABI.has_quirk(Quirk::BlankedNames) } && image.has_blanked_names();
            outcomes(&ABI, &image, is_blanked, code)
        }
        Ok(_) => [Outcome::Fallback(FallbackReason::ForeignImage); 5],
        Err(error) => [Outcome::Fallback(FallbackReason::from(error)); 5],
    };
    rseq::find();
    for (outcome, record) in outcomes.iter().zip(&RECORDS) {
        record.store(*outcome);
    }
    let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
    let clock_gettime = code(&ABI.clock_gettime, clock_gettime).and_then(clock_gettime_from);
    CLOCK_GETTIME.set(clock_gettime.unwrap_or(syscall::slot_clock_gettime));
    let clock_getres = code(&ABI.clock_getres, clock_getres).and_then(clock_getres_from);
    CLOCK_GETRES.set(clock_getres.unwrap_or(syscall::slot_clock_getres));
    let gettimeofday = code(&ABI.gettimeofday, gettimeofday).and_then(gettimeofday_from);
    GETTIMEOFDAY.set(gettimeofday.unwrap_or(syscall::slot_gettimeofday));
    let getcpu = code(&ABI.getcpu, getcpu).and_then(Code::function);
    GETCPU.set(getcpu.unwrap_or(syscall::slot_getcpu));
    let time = code(&ABI.time, time).and_then(time_from);
    TIME.set(time.unwrap_or(syscall::slot_time));
}

/// Returns the code of the symbol that answers a function.
fn code(function: &Function, outcome: Outcome) -> Option<Code> {
    let Outcome::Symbol { row, address, .. } = outcome else { return None };
    let shape = function.candidates.get(row)?.shape;
    // SAFETY: `outcomes` found the symbol of this row in the vDSO, and the table says that it has
    // this shape, which vdso(7) documents. The vDSO stays mapped (`Vdso::locate`).
    Some(unsafe { Code::new(shape, address) })
}

/// Returns an adapter from the enclosing function if the symbol has this shape, and stores the
/// symbol for the adapter. The test of the table leaves 32-bit adapters out of 64-bit programs.
macro_rules! adapt {
    ($code:ident, $function:ident: $Shape:ident to $SYMBOL:ident for $adapter:ident) => {
        if const { ABI.$function.has(Shape::$Shape) } {
            if let Some(function) = $code.function() {
                adapters::$SYMBOL.set(function);
                return Some(adapters::$adapter);
            }
        }
    };
}

fn clock_gettime_from(code: Code) -> Option<ClockFn> {
    adapt!(code, clock_gettime: Timespec32 to CLOCK_GETTIME32 for clock_gettime_from_32);
    let function = code.function()?;
    adapters::CLOCK_GETTIME.set(function);
    Some(function)
}

fn clock_getres_from(code: Code) -> Option<ClockFn> {
    adapt!(code, clock_getres: Timespec32 to CLOCK_GETRES32 for clock_getres_from_32);
    code.function()
}

fn gettimeofday_from(code: Code) -> Option<GettimeofdayFn> {
    adapt!(code, gettimeofday: Timespec64 to CLOCK_GETTIME for gettimeofday_from_clock_gettime);
    adapt!(code, gettimeofday: Timeval32 to GETTIMEOFDAY32 for gettimeofday_from_32);
    code.function()
}

fn time_from(code: Code) -> Option<TimeFn> {
    adapt!(code, time: Timespec64 to CLOCK_GETTIME for time_from_clock_gettime);
    adapt!(code, time: Timespec32 to CLOCK_GETTIME32 for time_from_clock_gettime32);
    adapt!(code, time: Time32 to TIME32 for time_from_32);
    if const { !ABI.time.has(Shape::Time64) } {
        return None;
    }
    let time: TimeFn = code.function()?;
    // The callers of `time` do not test its result, so a symbol that returns an error is not used.
    Some(if is_error(time(None)) { adapters::time_from_clock_gettime } else { time })
}

/// Returns whether a raw result is an error and not a time.
#[inline]
pub(super) const fn is_error(result: i64) -> bool {
    matches!(result, -4095..=-1)
}

//! The slots, and the pass over the image that fills all of them.
//!
//! Every slot has the 64-bit signature, on every kernel. It gets one of three functions:
//!
//! - the vDSO's own;
//! - one of this crate that calls a function of the vDSO with another signature;
//! - one that answers `ENOSYS`, after which the caller asks the kernel.
//!
//! Each function is resolved alone: a missing symbol does not disable another function. A slot
//! keeps its function, whatever a call answers later.

use super::record::RECORDS;
use super::slot::{ClockFn, Code, GetcpuFn, GettimeofdayFn, Slot, TimeFn};
use super::{syscall, time32};
use crate::arch::native::{self, ABI};
use crate::arch::{Function, Shape};
use crate::choice::{FallbackReason, Outcome, decide, is_called};
use crate::elf::Native;
use crate::errno::Errno;
use crate::process::vdso;
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

/// Finds the vDSO, and fills every slot and then every record.
#[inline(never)]
pub(super) fn resolve_all() {
    let mut outcomes = find_symbols();
    let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = &mut outcomes;
    let clock_gettime = code(&ABI.clock_gettime, clock_gettime).and_then(clock_gettime_from);
    CLOCK_GETTIME.fill(clock_gettime, no_clock);
    let clock_getres = code(&ABI.clock_getres, clock_getres).and_then(clock_getres_from);
    CLOCK_GETRES.fill(clock_getres, no_clock);
    let gettimeofday = code(&ABI.gettimeofday, gettimeofday).and_then(gettimeofday_from);
    GETTIMEOFDAY.fill(gettimeofday, no_gettimeofday);
    let getcpu = code(&ABI.getcpu, getcpu).and_then(Code::function);
    GETCPU.fill(getcpu, no_getcpu);
    let function = code(&ABI.time, time).and_then(time_from);
    TIME.fill(function, kernel_time);
    if function.is_none() {
        *time = time.and(Err(FallbackReason::NoSymbol));
    }
    // Last: `warm_up` takes a record as the sign that every slot is filled.
    for (outcome, record) in outcomes.iter().zip(&RECORDS) {
        record.store(outcome);
    }
}

/// Finds the symbol that answers each function, or why none does. A symbol's code is in the vDSO.
fn find_symbols() -> [Outcome; 5] {
    let image = match vdso::find::<Native>(false) {
        Ok(image) if is_called(&ABI, &image) => image,
        Ok(_) => return [Err(FallbackReason::ForeignImage); 5],
        Err(error) => return [Err(FallbackReason::of(error)); 5],
    };
    let bias = vdso::bias(&image);
    let mut check_code = vdso::code_check(&image);
    if let Some((name, version)) = ABI.kernel_entry {
        if let Some(entry) = image.find(name, Some(version)) {
            let address = entry.value.wrapping_add(bias) as usize;
            if check_code(address, entry.size).is_ok() {
                // SAFETY: the table names the symbol that enters the kernel, `find` found it in
                // the vDSO, which stays mapped, and `check_code` passed its code.
                unsafe { native::set_kernel_entry(address) };
            }
        }
    }
    decide(&ABI, &image, bias).map(|outcome| {
        let symbol = outcome?;
        check_code(symbol.address, symbol.size).map_err(FallbackReason::of)?;
        Ok(symbol)
    })
}

/// Returns the code of the symbol that answers a function.
fn code(function: &Function, outcome: &Outcome) -> Option<Code> {
    let symbol = outcome.as_ref().ok()?;
    let shape = function.candidates.get(symbol.row)?.shape;
    // SAFETY: `find_symbols` found the symbol of this row in the vDSO, and the table says that it
    // has this shape, which vdso(7) documents. The vDSO stays mapped (`Vdso::locate`).
    Some(unsafe { Code::new(shape, symbol.address) })
}

/// Tests the shape of the code. If the function has no symbol of that shape, the test is a constant
/// and the compiler removes what depends on it.
macro_rules! is_shape {
    ($code:ident, $function:ident, $Shape:ident) => {
        $code.shape == Shape::$Shape && const { ABI.$function.has(Shape::$Shape) }
    };
}

fn clock_gettime_from(code: Code) -> Option<ClockFn> {
    if is_shape!(code, clock_gettime, Timespec32) {
        time32::CLOCK_GETTIME.set(code.function()?);
        return Some(time32::clock_gettime);
    }
    code.function()
}

fn clock_getres_from(code: Code) -> Option<ClockFn> {
    if is_shape!(code, clock_getres, Timespec32) {
        time32::CLOCK_GETRES.set(code.function()?);
        return Some(time32::clock_getres);
    }
    code.function()
}

fn gettimeofday_from(code: Code) -> Option<GettimeofdayFn> {
    if const { ABI.gettimeofday.has(Shape::Timespec64) } {
        return Some(gettimeofday_from_clock_gettime);
    }
    code.function()
}

fn time_from(code: Code) -> Option<TimeFn> {
    if is_shape!(code, time, Time64) {
        // The callers of `time` do not test its result, so a symbol that returns an error is not
        // used.
        return code.function().filter(|time: &TimeFn| !is_error(time(None)));
    }
    Some(time_from_clock_gettime)
}

/// `gettimeofday` from `CLOCK_REALTIME`.
extern "C" fn gettimeofday_from_clock_gettime(out: &mut Timeval, _: Option<&mut ()>) -> i32 {
    let mut now = Timespec::default();
    let result = CLOCK_GETTIME.get()(ClockId::REALTIME, &mut now);
    // The kernel's nanoseconds fit in 32 bits. To divide 64 bits, a 32-bit CPU calls a function.
    *out = Timeval { tv_sec: now.tv_sec, tv_usec: (now.tv_nsec as u32 / 1000).into() };
    result
}

/// `time` from `CLOCK_REALTIME_COARSE`, which has the second of time(2) and reads no counter.
extern "C" fn time_from_clock_gettime(_: Option<&mut i64>) -> i64 {
    let mut now = Timespec::default();
    let result = CLOCK_GETTIME.get()(ClockId::REALTIME_COARSE, &mut now);
    if result == 0 { now.tv_sec } else { kernel_time(None) }
}

// What the slots get if no symbol answers. The callers of `time` do not test its result, so its
// function asks the kernel.

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();

extern "C" fn kernel_time(_: Option<&mut i64>) -> i64 {
    syscall::time().unwrap_or(-1)
}

extern "C" fn no_clock(_: ClockId, _: &mut Timespec) -> i32 {
    ENOSYS
}

extern "C" fn no_gettimeofday(_: &mut Timeval, _: Option<&mut ()>) -> i32 {
    ENOSYS
}

extern "C" fn no_getcpu(_: &mut u32, _: &mut u32, _: Option<&mut ()>) -> i32 {
    ENOSYS
}

/// Returns whether a raw result is an error and not a time.
#[inline]
pub(super) const fn is_error(result: i64) -> bool {
    matches!(result, -4095..=-1)
}

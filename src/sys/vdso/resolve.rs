//! The slots, and the pass over the image that fills all of them.
//!
//! On every kernel, the slots here hold functions with 64-bit signatures. Each function is resolved
//! separately, so a missing symbol does not disable another function. A slot keeps its function
//! even if that function fails later.

use core::sync::atomic::{AtomicBool, Ordering};

use super::slot::{ClockFn, Code, FnPtr, GetcpuFn, GettimeofdayFn, Slot, TimeFn};
use super::{syscall, time32};
use crate::arch::native::{self, ABI};
use crate::arch::{Entry, Shape};
use crate::choice::{FallbackReason, can_call, decide};
use crate::errno::Errno;
use crate::process::vdso::Vdso;
use crate::routes::Routes;
use crate::types::{ClockId, Timespec, Timeval};

pub(super) static TIME: Slot<TimeFn> = Slot::new(
    resolve_time,
    adapter(&ABI.time, time_from_clock_gettime, kernel_time),
    kernel_time,
);
pub(super) static GETTIMEOFDAY: Slot<GettimeofdayFn> = Slot::new(
    resolve_gettimeofday,
    adapter(
        &ABI.gettimeofday,
        gettimeofday_from_clock_gettime,
        no_gettimeofday,
    ),
    no_gettimeofday,
);
pub(super) static CLOCK_GETTIME: Slot<ClockFn> = Slot::new(
    resolve_clock_gettime,
    adapter(&ABI.clock_gettime, time32::clock_gettime, no_clock),
    no_clock,
);
pub(super) static CLOCK_GETRES: Slot<ClockFn> = Slot::new(
    resolve_clock_getres,
    adapter(&ABI.clock_getres, time32::clock_getres, no_clock),
    no_clock,
);
pub(super) static GETCPU: Slot<GetcpuFn> = Slot::new(resolve_getcpu, no_getcpu, no_getcpu);

/// Returns the adapter if the signature of a candidate differs from the slot's. Otherwise no call
/// needs the adapter, and the function returns the fallback instead, so that the program does not
/// contain the adapter.
const fn adapter<F: FnPtr>(entry: &Entry, adapter: F, fallback: F) -> F {
    if entry.has_only(F::SHAPE) {
        fallback
    } else {
        adapter
    }
}

// The resolvers, which the slots start with.

#[cold]
extern "C" fn resolve_time(out: Option<&mut i64>) -> i64 {
    resolve_all();
    TIME.get()(out)
}

#[cold]
extern "C" fn resolve_gettimeofday(out: &mut Timeval, zone: Option<&mut ()>) -> i32 {
    resolve_all();
    GETTIMEOFDAY.get()(out, zone)
}

#[cold]
extern "C" fn resolve_clock_gettime(clock: ClockId, out: &mut Timespec) -> i32 {
    resolve_all();
    CLOCK_GETTIME.get()(clock, out)
}

#[cold]
extern "C" fn resolve_clock_getres(clock: ClockId, out: &mut Timespec) -> i32 {
    resolve_all();
    CLOCK_GETRES.get()(clock, out)
}

#[cold]
extern "C" fn resolve_getcpu(cpu: &mut u32, node: &mut u32, unused: Option<&mut ()>) -> i32 {
    resolve_all();
    GETCPU.get()(cpu, node, unused)
}

/// Whether the symbols that were found have versions.
static HAS_VERSIONS: AtomicBool = AtomicBool::new(false);

/// Finds the vDSO and its functions, as the first call of any function does.
///
/// A first call makes the system call `rt_sigprocmask` and, without the feature `libc`, also
/// `prctl` and possibly `openat`, `read` and `close`. If the program uses a sandbox that denies one
/// of them, or that kills the process for it, call `warm_up` before any thread enters the sandbox.
///
/// The first call finds the functions for all threads and for the life of the process. So if a
/// sandbox hides the vDSO from the first call, every thread makes system calls from then on, and a
/// later `warm_up` changes nothing.
pub fn warm_up() {
    // `TIME` is filled last.
    if !TIME.is_filled() {
        resolve_all();
    }
}

/// Returns what answers each function in this process. It calls [`warm_up`] first.
#[must_use]
pub fn routes() -> Routes {
    warm_up();
    let none = Err(FallbackReason::NoSymbol);
    let narrow_gettime = time32::CLOCK_GETTIME.outcome(&ABI.clock_gettime, none);
    let narrow_getres = time32::CLOCK_GETRES.outcome(&ABI.clock_getres, none);
    let clock_gettime = CLOCK_GETTIME.outcome(&ABI.clock_gettime, narrow_gettime);
    let outcomes = [
        TIME.outcome(&ABI.time, clock_gettime),
        GETTIMEOFDAY.outcome(&ABI.gettimeofday, clock_gettime),
        clock_gettime,
        CLOCK_GETRES.outcome(&ABI.clock_getres, narrow_getres),
        GETCPU.outcome(&ABI.getcpu, none),
    ];
    Routes::new(&ABI, outcomes, HAS_VERSIONS.load(Ordering::Relaxed))
}

/// Finds the vDSO, and fills every slot: first those that an adapter calls, and `TIME` last, so
/// that a thread that sees `TIME` filled sees all others filled as well.
#[inline(never)]
fn resolve_all() {
    let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = find_symbols();
    // A table has 32-bit candidates for both clock_gettime and clock_getres, or for neither. So it
    // is enough to look at the candidates for clock_gettime.
    if const { !ABI.clock_gettime.has_only(Shape::Timespec64) } {
        time32::CLOCK_GETTIME.fill(clock_gettime);
        time32::CLOCK_GETRES.fill(clock_getres);
    }
    CLOCK_GETTIME.fill(clock_gettime);
    CLOCK_GETRES.fill(clock_getres);
    GETTIMEOFDAY.fill(gettimeofday);
    GETCPU.fill(getcpu);
    TIME.fill(time);
}

/// Finds the symbol that answers each function, or why none does.
fn find_symbols() -> [Result<Code, FallbackReason>; 5] {
    let vdso = match Vdso::locate() {
        Ok(vdso) => vdso,
        Err(error) => return [Err(FallbackReason::of(error)); 5],
    };
    let image = &vdso.image;
    if !can_call(&ABI, image) {
        return [Err(FallbackReason::ForeignImage); 5];
    }
    let base = vdso.base().expose_provenance();
    if let Some((name, version)) = ABI.kernel_entry {
        if let Some(value) = image.value_of(name, Some(version)) {
            // SAFETY: `can_call` found that the image is for this architecture, whose table names
            // the symbol that enters the kernel, and `value_of` found that symbol in the image. The
            // image stays mapped (`Vdso::locate`).
            unsafe { native::set_kernel_entry(image.address(value, base)) };
        }
    }
    HAS_VERSIONS.store(image.has_versions(), Ordering::Relaxed);
    decide(&ABI, image, base).map(|outcome| {
        // SAFETY: `can_call` found that the image is for this architecture, and `decide` found the
        // symbol in it. The image stays mapped (`Vdso::locate`). According to the kernel's files,
        // which the table cites, a symbol with this name and version has this shape, accepts null
        // and writes only through its arguments.
        outcome.map(|choice| unsafe { Code::new(choice) })
    })
}

/// Computes `gettimeofday` from `CLOCK_REALTIME`.
extern "C" fn gettimeofday_from_clock_gettime(out: &mut Timeval, _: Option<&mut ()>) -> i32 {
    let mut now = Timespec::default();
    let result = CLOCK_GETTIME.get()(ClockId::REALTIME, &mut now);
    // The kernel's nanoseconds fit in 32 bits, so a 32-bit division is enough. On a 32-bit CPU, a
    // 64-bit division would be a function call.
    *out = Timeval {
        tv_sec: now.tv_sec,
        tv_usec: (now.tv_nsec as u32 / 1000).into(),
    };
    result
}

/// Computes `time` from `CLOCK_REALTIME_COARSE`, whose seconds are those that time(2) returns, and
/// which is read without the CPU's counter.
extern "C" fn time_from_clock_gettime(_: Option<&mut i64>) -> i64 {
    let mut now = Timespec::default();
    let result = CLOCK_GETTIME.get()(ClockId::REALTIME_COARSE, &mut now);
    if result == 0 {
        now.tv_sec
    } else {
        kernel_time(None)
    }
}

// The fallbacks, which go into the slots if no symbol answers. `time()` does not test the result of
// its slot, so the fallback of this slot asks the kernel itself.

const ENOSYS: i32 = -Errno::ENOSYS.raw_os_error();

extern "C" fn kernel_time(_: Option<&mut i64>) -> i64 {
    syscall::try_time().unwrap_or(-1)
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

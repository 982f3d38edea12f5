//! Adapters that give the 32-bit functions of a 32-bit vDSO the signature of the 64-bit ones. The
//! seconds of the 32-bit functions overflow in January 2038.

use super::slot::{ClockFn32, Slot};
use crate::errno::Errno;
use crate::types::{ClockId, Timespec, Timespec32};

/// The vDSO's functions with 32-bit times, which the adapters call.
pub(super) static CLOCK_GETTIME: Slot<ClockFn32> = Slot::new(none, none, none);
pub(super) static CLOCK_GETRES: Slot<ClockFn32> = Slot::new(none, none, none);

/// Fails, so that the caller asks the kernel.
///
/// An adapter can call this function even after the vDSO was found. `resolve_all` stores the vDSO's
/// function in [`CLOCK_GETTIME`] or [`CLOCK_GETRES`] first, and only then the adapter in the slot
/// of the public function. But calls load both slots `Relaxed`, so a thread may see the adapter
/// before it sees the vDSO's function.
extern "C" fn none(_: ClockId, _: &mut Timespec32) -> i32 {
    -Errno::ENOSYS.raw_os_error()
}

pub(super) extern "C" fn clock_gettime(clock: ClockId, out: &mut Timespec) -> i32 {
    widened(CLOCK_GETTIME.get(), clock, out)
}

pub(super) extern "C" fn clock_getres(clock: ClockId, out: &mut Timespec) -> i32 {
    widened(CLOCK_GETRES.get(), clock, out)
}

fn widened(function: ClockFn32, clock: ClockId, out: &mut Timespec) -> i32 {
    let mut time = Timespec32::default();
    let result = function(clock, &mut time);
    match time.widened() {
        Ok(time) => {
            *out = time;
            result
        }
        Err(error) => -error.raw_os_error(),
    }
}

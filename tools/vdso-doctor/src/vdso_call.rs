//! The vDSO's function for a read, as a typed pointer.

#![allow(unsafe_code, reason = "the vDSO's functions are called by address")]

use std::ptr::null_mut;

use vdso_time::ClockId;
use vdso_time::vdso::{Functions, VdsoFn};

use crate::call::Call;

/// A function of the vDSO, and the clock that is passed to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VdsoCall {
    pointer: VdsoFn,
    clock: ClockId,
}

impl VdsoCall {
    /// Returns the function that answers a call.
    pub(crate) fn of(call: Call, functions: &Functions) -> Option<Self> {
        // If the vDSO has no symbol for time or gettimeofday, `functions` contains clock_gettime
        // instead, which returns the same time for the clock given here.
        let (pointer, clock) = match call {
            Call::Time => (functions.time, ClockId::REALTIME_COARSE),
            Call::Gettimeofday => (functions.gettimeofday, ClockId::REALTIME),
            Call::Getcpu => (functions.getcpu, ClockId::REALTIME),
            Call::ClockGettime(clock) => (functions.clock_gettime, clock),
            Call::ClockGetres(clock) => (functions.clock_getres, clock),
        };
        Some(Self {
            pointer: pointer?,
            clock,
        })
    }

    /// Returns whether a positive result is a time, and never an error number.
    pub(crate) fn returns_time(self) -> bool {
        matches!(self.pointer, VdsoFn::Time64(_))
    }

    /// Calls the function, and returns its result: seconds, 0, or an error number. The error number
    /// is negated, except on powerpc.
    #[inline]
    pub(crate) fn call(self) -> i64 {
        let mut first = [0_u64; 2];
        let mut second = 0_u32;
        let first = &raw mut first;
        match self.pointer {
            // SAFETY: the vDSO stays mapped, and `first` has room for a time.
            VdsoFn::Timespec64(read) => unsafe { read(self.clock, first.cast()) }.into(),
            // SAFETY: as above.
            VdsoFn::Timespec32(read) => unsafe { read(self.clock, first.cast()) }.into(),
            VdsoFn::Timeval64(gettimeofday) => {
                // SAFETY: as above. The time zone may be null.
                unsafe { gettimeofday(first.cast(), null_mut()) }.into()
            }
            // SAFETY: as above.
            VdsoFn::Time64(time) => unsafe { time(first.cast()) },
            VdsoFn::Getcpu(getcpu) => {
                // SAFETY: as above. The third pointer may be null.
                unsafe { getcpu(first.cast(), &raw mut second, null_mut()) }.into()
            }
            _ => 0,
        }
    }
}

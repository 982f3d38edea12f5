//! The vDSO's functions through pointers: the floor of every row. Like a careful caller, they
//! initialise the memory for the answer and test the result.

#![allow(unsafe_code, reason = "calls of functions by address")]

use std::ptr::null_mut;

use vdso_time::vdso::VdsoFn;
use vdso_time::{ClockId, Timespec, Timeval};

use super::keep;
use super::keep::Keep;
use crate::harness::Contender;
use crate::harness::samples::DIRECT;

/// Returns the contender for a function and its clock.
pub(super) fn contender(function: Option<VdsoFn>, clock: ClockId) -> Option<Contender> {
    Some(match function? {
        VdsoFn::Timespec64(call) => Contender::new(DIRECT, move || {
            let mut out = Timespec::default();
            // SAFETY: the vDSO stays mapped, and `out` is valid for writes.
            let status = unsafe { call(clock, &raw mut out) };
            assert!(status == 0, "the vDSO refuses the clock");
            out.keep();
        }),
        VdsoFn::Timespec32(call) => Contender::new(DIRECT, move || {
            let mut out = [0_i32; 2];
            // SAFETY: as above.
            let status = unsafe { call(clock, &raw mut out) };
            assert!(status == 0, "the vDSO refuses the clock");
            out.keep();
        }),
        VdsoFn::Timeval64(call) => Contender::new(DIRECT, move || {
            let mut out = Timeval::default();
            // SAFETY: as above. The time zone may be null.
            let status = unsafe { call(&raw mut out, null_mut()) };
            assert!(status == 0, "the vDSO has no time");
            out.keep();
        }),
        // SAFETY: as above. A null pointer asks for the result only.
        VdsoFn::Time64(call) => Contender::new(DIRECT, move || keep(unsafe { call(null_mut()) })),
        VdsoFn::Getcpu(call) => Contender::new(DIRECT, move || {
            let mut cpu = 0;
            let mut node = 0;
            // SAFETY: as above. The third pointer may be null.
            let status = unsafe { call(&raw mut cpu, &raw mut node, null_mut()) };
            assert!(status == 0, "no getcpu");
            cpu.keep();
            node.keep();
        }),
        _ => return None,
    })
}

//! The vDSO's function for a read, as a typed pointer.

#![allow(unsafe_code, reason = "the vDSO's functions are called by address")]

use std::ffi::c_void;
use std::mem;
use std::ptr;

use vdso_time::{ClockId, Route, Routes};

use crate::read::Read;

type Time = unsafe extern "C" fn(*mut c_void) -> isize;
type Gettimeofday = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type Clock = unsafe extern "C" fn(i32, *mut c_void) -> i32;
type Getcpu = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> isize;

/// A function of the vDSO and its clock. What it writes has numbers of 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    Time(Time),
    Gettimeofday(Gettimeofday),
    Clock(Clock, ClockId),
    Getcpu(Getcpu),
}

impl Function {
    /// Returns the function that the read's route names.
    pub(crate) fn of(read: Read, routes: &Routes) -> Option<Self> {
        let Route::Vdso { symbol, address, .. } = read.route(routes) else { return None };
        let code = ptr::with_exposed_provenance::<()>(address);
        // If a function has no symbol of its own, clock_gettime answers it, as in vdso-time.
        let clock = match read {
            Read::ClockGettime(clock) | Read::ClockGetres(clock) => clock,
            Read::Time => ClockId::REALTIME_COARSE,
            Read::Gettimeofday | Read::Getcpu => ClockId::REALTIME,
        };
        let name = symbol.trim_start_matches("__vdso_").trim_start_matches("__kernel_");
        Some(match name {
            // SAFETY: vdso-time found the symbol at this address; the kernel fixes its signature.
            "time" => Self::Time(unsafe { mem::transmute::<*const (), Time>(code) }),
            "gettimeofday" => {
                // SAFETY: as for `time`: the symbol's name says its signature.
                Self::Gettimeofday(unsafe { mem::transmute::<*const (), Gettimeofday>(code) })
            }
            // SAFETY: as for `time`: the symbol's name says its signature.
            "getcpu" => Self::Getcpu(unsafe { mem::transmute::<*const (), Getcpu>(code) }),
            _ if name.starts_with("clock_get") => {
                // SAFETY: as for `time`: clock_gettime, clock_getres and their 64-bit forms share
                // one.
                Self::Clock(unsafe { mem::transmute::<*const (), Clock>(code) }, clock)
            }
            _ => return None,
        })
    }

    /// Calls the function, and returns what it does: seconds, 0, or a negated error number.
    #[inline]
    pub(crate) fn call(self) -> isize {
        let (mut first, mut second) = ([0_u64; 2], [0_u64; 2]);
        let (first, second) = ((&raw mut first).cast(), (&raw mut second).cast());
        match self {
            // SAFETY: time(2) writes at most the 16 bytes of `first`.
            Self::Time(time) => unsafe { time(first) },
            // SAFETY: gettimeofday(2) writes at most 16 bytes, and no time zone to null.
            Self::Gettimeofday(gettimeofday) => unsafe { gettimeofday(first, ptr::null_mut()) as isize },
            // SAFETY: clock_gettime(2) and clock_getres(2) write at most the 16 bytes of `first`.
            Self::Clock(read, clock) => unsafe { read(clock.as_raw(), first) as isize },
            // SAFETY: getcpu(2) writes 4 bytes at `first` and at `second`, and ignores the third.
            Self::Getcpu(getcpu) => unsafe { getcpu(first, second, ptr::null_mut()) },
        }
    }
}

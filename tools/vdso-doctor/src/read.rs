//! The reads that are examined, and the vDSO's function for each.

#![allow(unsafe_code, reason = "the vDSO's functions are called by address")]

use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr;

use vdso_time::{ClockId, Errno, Route, Routes};

/// One way to read a clock, or to ask about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Read {
    /// `time()`.
    Time,
    /// `gettimeofday()`.
    Gettimeofday,
    /// `getcpu()`.
    Getcpu,
    /// `clock_gettime()` of a clock.
    ClockGettime(ClockId),
    /// `clock_getres()` of a clock.
    ClockGetres(ClockId),
}

/// The clocks with numbers of their own, and the auxiliary ones.
const CLOCKS: [std::ops::Range<i32>; 2] = [0..12, 16..24];

/// Every read, in the order of the report. Auxiliary clocks only if this kernel has them.
pub(crate) fn all() -> Vec<Read> {
    let is_known = |clock: &ClockId| clock.as_raw() < 12 || vdso_time::clock_gettime(*clock).is_ok();
    let clocks = || CLOCKS.into_iter().flatten().map(ClockId::from_raw).filter(is_known);
    let functions = [Read::Time, Read::Gettimeofday, Read::Getcpu].into_iter();
    functions.chain(clocks().map(Read::ClockGettime)).chain(clocks().map(Read::ClockGetres)).collect()
}

impl Read {
    /// The reads that a verdict is about by default.
    pub const USUAL: [Self; 2] =
        [Self::ClockGettime(ClockId::REALTIME), Self::ClockGettime(ClockId::MONOTONIC)];

    /// The reads of the last timer tick. They need no clock source that user space can read.
    pub(crate) const COARSE: [Self; 2] = [Self::Time, Self::ClockGettime(ClockId::MONOTONIC_COARSE)];

    /// Returns the function's name.
    #[must_use]
    pub fn function(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Gettimeofday => "gettimeofday",
            Self::Getcpu => "getcpu",
            Self::ClockGettime(_) => "clock_gettime",
            Self::ClockGetres(_) => "clock_getres",
        }
    }

    /// Returns the clock that the function is given.
    #[must_use]
    pub fn clock(self) -> Option<ClockId> {
        match self {
            Self::ClockGettime(clock) | Self::ClockGetres(clock) => Some(clock),
            Self::Time | Self::Gettimeofday | Self::Getcpu => None,
        }
    }

    /// Who answers it.
    pub(crate) fn route(self, routes: &Routes) -> Route {
        let mut functions = routes.functions();
        functions.find(|(name, _)| *name == self.function()).map_or(Route::Libc, |(_, route)| route)
    }

    /// Makes the read through the crate: by the vDSO, and by system call if the vDSO refuses.
    pub(crate) fn make(self) -> Result<(), Errno> {
        match self {
            Self::Time => vdso_time::try_time().map(drop),
            Self::Gettimeofday => vdso_time::gettimeofday().map(drop),
            Self::Getcpu => vdso_time::getcpu().map(drop),
            Self::ClockGettime(clock) => vdso_time::clock_gettime(clock).map(drop),
            Self::ClockGetres(clock) => vdso_time::clock_getres(clock).map(drop),
        }
    }

    /// Whether it reads the clock source. The other reads are answered as of the last timer tick,
    /// by the kernel, or without a clock.
    pub(crate) fn reads_clock_source(self) -> bool {
        const PRECISE: [ClockId; 5] =
            [ClockId::REALTIME, ClockId::MONOTONIC, ClockId::MONOTONIC_RAW, ClockId::BOOTTIME, ClockId::TAI];
        match self {
            Self::Gettimeofday => true,
            Self::ClockGettime(clock) => PRECISE.contains(&clock),
            Self::Time | Self::Getcpu | Self::ClockGetres(_) => false,
        }
    }
}

impl From<ClockId> for Read {
    fn from(clock: ClockId) -> Self {
        Self::ClockGettime(clock)
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clock() {
            Some(clock) => f.pad(&format!("{}({clock:?})", self.function())),
            None => f.pad(&format!("{}()", self.function())),
        }
    }
}

type Time = unsafe extern "C" fn(*mut c_void) -> isize;
type Gettimeofday = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type Clock = unsafe extern "C" fn(i32, *mut c_void) -> i32;
type Getcpu = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> isize;

/// A function of the vDSO and its clock. What it writes has numbers of 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry {
    Time(Time),
    Gettimeofday(Gettimeofday),
    Clock(Clock, ClockId),
    Getcpu(Getcpu),
}

impl Entry {
    /// The function that the read's route names.
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

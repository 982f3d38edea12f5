//! The reads that are examined, and the vDSO's own function behind each.

#![allow(unsafe_code, reason = "the vDSO's functions are called by address")]

use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr;

use vdso_time::arch::{Function, NATIVE, Shape};
use vdso_time::{ClockId, Errno, Route, Routes};

/// One way to read a clock, or to ask about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Time,
    Gettimeofday,
    Getcpu,
    ClockGettime(ClockId),
    ClockGetres(ClockId),
}

/// The clocks with a number of their own, and the auxiliary ones.
const CLOCKS: [std::ops::Range<i32>; 2] = [0..12, 16..24];

/// Every read, in the order of the report. Of the clocks that a kernel may lack, those that this one has.
pub(crate) fn all() -> Vec<Read> {
    let known = |clock: &ClockId| clock.as_raw() < 12 || vdso_time::clock_gettime(*clock).is_ok();
    let clocks = || CLOCKS.into_iter().flatten().map(ClockId::from_raw).filter(known);
    let functions = [Read::Time, Read::Gettimeofday, Read::Getcpu].into_iter();
    functions.chain(clocks().map(Read::ClockGettime)).chain(clocks().map(Read::ClockGetres)).collect()
}

impl Read {
    /// The function, as man pages name it.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Gettimeofday => "gettimeofday",
            Self::Getcpu => "getcpu",
            Self::ClockGettime(_) => "clock_gettime",
            Self::ClockGetres(_) => "clock_getres",
        }
    }

    /// The clock that it is given.
    pub(crate) fn clock(self) -> Option<ClockId> {
        match self {
            Self::ClockGettime(clock) | Self::ClockGetres(clock) => Some(clock),
            Self::Time | Self::Gettimeofday | Self::Getcpu => None,
        }
    }

    /// Who answers it.
    pub(crate) fn route(self, routes: &Routes) -> &Route {
        match self {
            Self::Time => &routes.time,
            Self::Gettimeofday => &routes.gettimeofday,
            Self::Getcpu => &routes.getcpu,
            Self::ClockGettime(_) => &routes.clock_gettime,
            Self::ClockGetres(_) => &routes.clock_getres,
        }
    }

    /// Makes the read through the crate: by the vDSO, and by system call if that refuses.
    pub(crate) fn make(self) -> Result<(), Errno> {
        match self {
            Self::Time => vdso_time::try_time().map(drop),
            Self::Gettimeofday => vdso_time::gettimeofday().map(drop),
            Self::Getcpu => vdso_time::getcpu().map(drop),
            Self::ClockGettime(clock) => vdso_time::clock_gettime(clock).map(drop),
            Self::ClockGetres(clock) => vdso_time::clock_getres(clock).map(drop),
        }
    }

    /// What the tables say of the function.
    fn table(self) -> Option<&'static Function> {
        let abi = NATIVE?;
        Some(match self {
            Self::Time => &abi.time,
            Self::Gettimeofday => &abi.gettimeofday,
            Self::Getcpu => &abi.getcpu,
            Self::ClockGettime(_) => &abi.clock_gettime,
            Self::ClockGetres(_) => &abi.clock_getres,
        })
    }

    /// The vDSO's function for it, if a route leads there.
    pub(crate) fn entry(self, routes: &Routes) -> Option<Entry> {
        let Route::Vdso { symbol, address, .. } = *self.route(routes) else { return None };
        let candidate = self.table()?.candidates.iter().find(|candidate| candidate.name == symbol)?;
        // SAFETY: the table of the architecture says what the symbol is, and the route that the image has it there.
        let code = unsafe { Code::at(address, candidate.shape) }?;
        // Where a function has no symbol of its own, clock_gettime answers it, as in the crate.
        let clock = match self {
            Self::ClockGettime(clock) | Self::ClockGetres(clock) => clock,
            Self::Time => ClockId::REALTIME_COARSE,
            Self::Gettimeofday | Self::Getcpu => ClockId::REALTIME,
        };
        Some(Entry { code, clock })
    }

    /// Whether the clock source is read for it: the others are the kernel's, or as of the last timer tick, or no clock.
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

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clock() {
            Some(clock) => f.pad(&format!("{}({clock:?})", self.function())),
            None => f.pad(&format!("{}()", self.function())),
        }
    }
}

/// A function of the vDSO, and the clock that it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    code: Code,
    clock: ClockId,
}

type Time = unsafe extern "C" fn(*mut c_void) -> isize;
type Gettimeofday = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type Clock = unsafe extern "C" fn(i32, *mut c_void) -> i32;
type Getcpu = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> isize;

/// A function of the vDSO, by what it takes and returns. What it writes has 32 or 64 bits.
#[derive(Clone, Copy, Debug)]
enum Code {
    Time(Time),
    Gettimeofday(Gettimeofday),
    Clock(Clock),
    Getcpu(Getcpu),
}

impl Code {
    /// The function at an address.
    ///
    /// # Safety
    /// There must be one of this shape.
    unsafe fn at(address: usize, shape: Shape) -> Option<Self> {
        let code = ptr::with_exposed_provenance::<()>(address);
        Some(match shape {
            // SAFETY: the caller's duty.
            Shape::Time32 | Shape::Time64 => Self::Time(unsafe { mem::transmute::<*const (), Time>(code) }),
            Shape::Timeval32 | Shape::Timeval64 => {
                // SAFETY: the same.
                Self::Gettimeofday(unsafe { mem::transmute::<*const (), Gettimeofday>(code) })
            }
            Shape::Timespec32 | Shape::Timespec64 => {
                // SAFETY: the same.
                Self::Clock(unsafe { mem::transmute::<*const (), Clock>(code) })
            }
            // SAFETY: the same.
            Shape::Getcpu => Self::Getcpu(unsafe { mem::transmute::<*const (), Getcpu>(code) }),
            _ => return None,
        })
    }
}

impl Entry {
    /// Calls the function, and gives what it returned: seconds, 0, or a negated error number.
    #[inline]
    pub(crate) fn call(self) -> isize {
        // Each is as large as the largest of what is written.
        let (mut first, mut second) = ([0_u64; 2], [0_u64; 2]);
        let (first, second) = ((&raw mut first).cast(), (&raw mut second).cast());
        match self.code {
            // SAFETY: it writes at most 8 bytes.
            Code::Time(time) => unsafe { time(first) },
            // SAFETY: it writes at most 16 bytes, and no time zone to a null pointer.
            Code::Gettimeofday(gettimeofday) => unsafe { gettimeofday(first, ptr::null_mut()) as isize },
            // SAFETY: it writes at most 16 bytes.
            Code::Clock(read) => unsafe { read(self.clock.as_raw(), first) as isize },
            // SAFETY: it writes 4 bytes at each of two places, and has no use for the third.
            Code::Getcpu(getcpu) => unsafe { getcpu(first, second, ptr::null_mut()) },
        }
    }
}

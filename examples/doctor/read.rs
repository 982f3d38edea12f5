//! The reads that are examined, and the vDSO's own function behind each.

#![allow(unsafe_code, reason = "the vDSO's functions are called by address")]

use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr;

use vdso_time::arch::{Function, NATIVE, Shape};
use vdso_time::{ClockId, Errno, Route, Routes, syscall};

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
    let known = |clock: &ClockId| clock.as_raw() < 12 || syscall::clock_gettime(*clock).is_ok();
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

    /// Makes the read by system call.
    pub(crate) fn in_kernel(self) -> Result<(), Errno> {
        match self {
            Self::Time => syscall::time().map(drop),
            Self::Gettimeofday => syscall::gettimeofday().map(drop),
            Self::Getcpu => syscall::getcpu().map(drop),
            Self::ClockGettime(clock) => syscall::clock_gettime(clock).map(drop),
            Self::ClockGetres(clock) => syscall::clock_getres(clock).map(drop),
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
        // Where a function has no symbol of its own, clock_gettime answers it, as in the crate.
        let clock = match self {
            Self::ClockGettime(clock) | Self::ClockGetres(clock) => clock,
            Self::Time => ClockId::REALTIME_COARSE,
            Self::Gettimeofday | Self::Getcpu => ClockId::REALTIME,
        };
        Some(Entry { address, shape: candidate.shape, clock })
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
    address: usize,
    shape: Shape,
    clock: ClockId,
}

type Time = unsafe extern "C" fn(*mut c_void) -> isize;
type Timeval = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type Timespec = unsafe extern "C" fn(i32, *mut c_void) -> i32;
type Getcpu = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> isize;

impl Entry {
    /// Calls the function, and gives what it returned: seconds, 0, or a negated error number.
    #[inline]
    pub(crate) fn call(self) -> isize {
        let code = ptr::with_exposed_provenance::<()>(self.address);
        // Each is as large as the largest of the shapes.
        let (mut first, mut second) = ([0_u64; 2], [0_u64; 2]);
        let first = (&raw mut first).cast::<c_void>();
        match self.shape {
            Shape::Time32 | Shape::Time64 => {
                // SAFETY: the table of the architecture says that this symbol, found in the kernel's image, is such a function.
                let time = unsafe { mem::transmute::<*const (), Time>(code) };
                // SAFETY: it writes at most 8 bytes.
                unsafe { time(first) }
            }
            Shape::Timeval32 | Shape::Timeval64 => {
                // SAFETY: as above.
                let gettimeofday = unsafe { mem::transmute::<*const (), Timeval>(code) };
                // SAFETY: it writes at most 16 bytes, and no time zone to a null pointer.
                (unsafe { gettimeofday(first, ptr::null_mut()) }) as isize
            }
            Shape::Timespec32 | Shape::Timespec64 => {
                // SAFETY: as above.
                let clock_gettime = unsafe { mem::transmute::<*const (), Timespec>(code) };
                // SAFETY: it writes at most 16 bytes.
                (unsafe { clock_gettime(self.clock.as_raw(), first) }) as isize
            }
            _ => {
                // SAFETY: as above; the one shape that is left is getcpu's.
                let getcpu = unsafe { mem::transmute::<*const (), Getcpu>(code) };
                // SAFETY: it writes 4 bytes at each of two places, and has no use for the third.
                unsafe { getcpu(first, (&raw mut second).cast(), ptr::null_mut()) }
            }
        }
    }
}

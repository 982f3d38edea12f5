//! Routes: who answers each function, as the slots have it.

use core::fmt;

use super::resolve::{self, CLOCK_GETRES, CLOCK_GETTIME, GETCPU, GETTIMEOFDAY, TIME, choose, unfit};
use super::width;
use crate::arch::native::ABI;
use crate::arch::{Abi, Function, NATIVE, Quirk};
use crate::elf::{Image, Native, Walk};
use crate::error::{LocateError, ParseError};
use crate::sys;
use crate::types::ClockId;
use crate::vdso;

/// Who answers a function.
///
/// ```
/// use vdso_time::Route;
///
/// match vdso_time::routes().clock_gettime {
///     Route::Vdso { symbol, address, .. } => println!("{symbol} at {address:#x}"),
///     Route::Syscall { number, reason, .. } => println!("system call {number}: {reason}"),
///     other => println!("{other}"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// A function of the vDSO. That is no proof that it stays in user space: it enters the kernel itself for a clock, or on
    /// a clock source, that it cannot read.
    #[non_exhaustive]
    Vdso {
        /// The symbol's name.
        symbol: &'static str,
        /// The symbol's version; `None` in an image without versions.
        version: Option<&'static str>,
        /// Where its code is (bit 0 set for Thumb code on arm).
        address: usize,
    },
    /// A system call.
    #[non_exhaustive]
    Syscall {
        /// The system call's number.
        number: u32,
        /// Why it is not the vDSO.
        reason: Reason,
    },
    /// A function of libc: Linux on an architecture that this crate has no table for.
    Libc,
}

/// Why a function is not answered by the vDSO.
///
/// ```
/// use vdso_time::{Reason, Route, routes};
///
/// if let Route::Syscall { reason: Reason::NoVdso(error), .. } = routes().time {
///     println!("{error}");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no vDSO, or none that can be walked.
    NoVdso(LocateError),
    /// The image is of another architecture.
    ForeignImage,
    /// The image has none of the symbols that could answer.
    NoSymbol,
    /// The image has a flaw that makes such a symbol unfit to be called.
    Unfit(Quirk),
    /// The vDSO could not be found at the first call, but now it can: a sandbox was in the way.
    TooLate,
}

/// Who answers each function.
///
/// ```
/// println!("{}", vdso_time::routes());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routes {
    /// Who answers [`time`](crate::time()).
    pub time: Route,
    /// Who answers [`gettimeofday`](crate::gettimeofday()).
    pub gettimeofday: Route,
    /// Who answers [`clock_gettime`](crate::clock_gettime()).
    pub clock_gettime: Route,
    /// Who answers [`clock_getres`](crate::clock_getres()).
    pub clock_getres: Route,
    /// Who answers [`getcpu`](crate::getcpu()).
    pub getcpu: Route,
}

impl Routes {
    /// The routes that a process of an architecture would take if its kernel mapped this image; the addresses are the
    /// symbols' values.
    ///
    /// ```no_run
    /// use vdso_time::{Routes, arch, elf::Image};
    ///
    /// let file = std::fs::read("vdso-arm64.so")?;
    /// let image = Image::parse(&file)?;
    /// for abi in arch::ALL.iter().filter(|abi| abi.machine == image.machine()) {
    ///     println!("{}", Routes::of_image(abi, &image));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_image(abi: &Abi, image: &Image<'_>) -> Self {
        let unfit = |candidate: &_| unfit(&image.walk, candidate, |_| true);
        let route = |function: &Function| match choose(abi, function.candidates.iter(), &image.walk, unfit) {
            Ok((candidate, entry)) => Route::Vdso {
                symbol: candidate.name,
                version: image.walk.has_versions().then_some(abi.version),
                address: entry.value as usize,
            },
            Err(reason) => Route::Syscall {
                number: function.syscalls.first().map_or(u32::MAX, |call| call.number),
                reason,
            },
        };
        Self {
            time: route(&abi.time),
            gettimeofday: route(&abi.gettimeofday),
            clock_gettime: route(&abi.clock_gettime),
            clock_getres: route(&abi.clock_getres),
            getcpu: route(&abi.getcpu),
        }
    }
}

/// Who answers each function in this process, from now on: every function is called once, and then its slot is read.
///
/// ```
/// use vdso_time::Route;
///
/// if let Route::Vdso { symbol, .. } = vdso_time::routes().time {
///     println!("time() is {symbol}");
/// }
/// ```
#[must_use]
pub fn routes() -> Routes {
    let _ = super::time();
    let _ = super::gettimeofday();
    let _ = super::clock_gettime(ClockId::REALTIME_COARSE);
    let _ = super::clock_getres(ClockId::REALTIME_COARSE);
    let _ = super::getcpu();

    let vdso = vdso::find::<Native>().and_then(|(bytes, head)| Ok(Walk::parse(bytes, head)?));
    let route = |function, code: Option<usize>| match (NATIVE, code, &vdso) {
        (None, ..) => Route::Libc,
        (_, Some(address), _) => symbol_route(function, address, &vdso),
        (_, None, Err(LocateError::Malformed(ParseError::Class | ParseError::ByteOrder))) => {
            kernel_route(function, Reason::ForeignImage)
        }
        (_, None, Err(error)) => kernel_route(function, Reason::NoVdso(*error)),
        (_, None, Ok(image)) => {
            let unfit = |candidate: &_| unfit(image, candidate, |_| true);
            let reason = choose(&ABI, function.candidates.iter(), image, unfit).err();
            kernel_route(function, reason.unwrap_or(Reason::TooLate))
        }
    };
    Routes {
        time: route(&ABI.time, time_code()),
        gettimeofday: route(&ABI.gettimeofday, gettimeofday_code()),
        clock_gettime: route(&ABI.clock_gettime, clock_gettime_code()),
        clock_getres: route(&ABI.clock_getres, clock_getres_code()),
        getcpu: route(&ABI.getcpu, getcpu_code()),
    }
}

fn kernel_route(function: &'static Function, reason: Reason) -> Route {
    Route::Syscall { number: sys::number(function), reason }
}

/// The vDSO.
type Found = Result<Walk<'static, Native>, LocateError>;

/// Names the symbol that a slot leads to.
fn symbol_route(function: &'static Function, address: usize, vdso: &Found) -> Route {
    let named = vdso.as_ref().ok().and_then(|image| {
        function.candidates.iter().find_map(|candidate| {
            let entry = image.find(candidate.name, Some(ABI.version))?;
            let version = image.has_versions().then_some(ABI.version);
            (vdso::address(image, entry.value) == address).then_some((candidate.name, version))
        })
    });
    // Somebody unmapped or moved the vDSO after the first call, against the rule: the name is gone with it.
    let (symbol, version) = named.unwrap_or(("?", None));
    Route::Vdso { symbol, version, address }
}

// Where a slot leads: to code of the vDSO, maybe behind an adapter, or to the system call (`None`).

fn time_code() -> Option<usize> {
    if TIME.holds(resolve::kernel_time) {
        None
    } else if TIME.holds(width::time_by_clock) {
        clock_gettime_code()
    } else if TIME.holds(width::time) {
        Some(width::TIME32.address())
    } else {
        Some(TIME.address())
    }
}

fn gettimeofday_code() -> Option<usize> {
    if GETTIMEOFDAY.holds(resolve::kernel_gettimeofday) {
        None
    } else if GETTIMEOFDAY.holds(width::gettimeofday_by_clock) {
        clock_gettime_code()
    } else if GETTIMEOFDAY.holds(width::gettimeofday) {
        Some(width::GETTIMEOFDAY32.address())
    } else {
        Some(GETTIMEOFDAY.address())
    }
}

fn clock_gettime_code() -> Option<usize> {
    if CLOCK_GETTIME.holds(resolve::kernel_clock_gettime) {
        None
    } else if CLOCK_GETTIME.holds(width::clock_gettime) {
        Some(width::CLOCK_GETTIME32.address())
    } else {
        Some(CLOCK_GETTIME.address())
    }
}

fn clock_getres_code() -> Option<usize> {
    if CLOCK_GETRES.holds(resolve::kernel_clock_getres) {
        None
    } else if CLOCK_GETRES.holds(width::clock_getres) {
        Some(width::CLOCK_GETRES32.address())
    } else {
        Some(CLOCK_GETRES.address())
    }
}

fn getcpu_code() -> Option<usize> {
    if GETCPU.holds(resolve::kernel_getcpu) { None } else { Some(GETCPU.address()) }
}

/// Whether the vDSO has clock_gettime.
#[cfg(feature = "counter")]
pub(crate) fn is_clock_gettime_fast() -> bool {
    let _ = super::clock_gettime(ClockId::REALTIME_COARSE); // so that the slot is set
    NATIVE.is_some() && clock_gettime_code().is_some()
}

/// Whether the vDSO has getcpu, if the slot is set.
#[cfg(feature = "counter")]
pub(crate) fn is_getcpu_fast() -> bool {
    NATIVE.is_some() && !GETCPU.holds(resolve::first_getcpu) && getcpu_code().is_some()
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vdso { symbol, version: Some(version), address } => {
                write!(f, "vDSO {symbol}@{version} at {address:#x}")
            }
            Self::Vdso { symbol, version: None, address } => write!(f, "vDSO {symbol} at {address:#x}"),
            Self::Syscall { number, reason } => write!(f, "system call {number} ({reason})"),
            Self::Libc => f.write_str("libc"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVdso(error) => error.fmt(f),
            Self::ForeignImage => f.write_str("the vDSO is of another architecture"),
            Self::NoSymbol => f.write_str("the vDSO has no such function"),
            Self::Unfit(Quirk::BlankedNames) => {
                f.write_str("the kernel blanked the names of the vDSO's functions")
            }
            Self::Unfit(Quirk::Relocated) => {
                f.write_str("the function is not to be trusted in a relocated vDSO")
            }
            Self::TooLate => f.write_str("the vDSO was not to be found at the first call"),
        }
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time           {}", self.time)?;
        writeln!(f, "gettimeofday   {}", self.gettimeofday)?;
        writeln!(f, "clock_gettime  {}", self.clock_gettime)?;
        writeln!(f, "clock_getres   {}", self.clock_getres)?;
        write!(f, "getcpu         {}", self.getcpu)
    }
}

//! Who answers each function, as the first call recorded it.

use core::fmt;

use super::outcome::{FallbackReason, Outcome, RECORDS, Record, outcomes};
use super::resolve::resolve_all;
use crate::arch::{ALL, Abi, Function, NATIVE, Quirk, TIME32_FIRST};
use crate::elf::Image;

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
        reason: FallbackReason,
    },
    /// A function of libc: Linux on an architecture that this crate has no table for.
    Libc,
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
    /// Returns the routes that a process would take if its kernel mapped this image; `None` if the image
    /// is for an architecture that this crate has no table for. The addresses are the symbols' values.
    ///
    /// ```no_run
    /// use vdso_time::{Routes, elf::Image};
    ///
    /// let file = std::fs::read("vdso-arm64.so")?;
    /// let image = Image::parse(&file)?;
    /// if let Some(routes) = Routes::of_image(&image) {
    ///     println!("{routes}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_image(image: &Image<'_>) -> Option<Self> {
        let of_image = |abi: &&&Abi| (abi.machine, abi.class) == (image.machine(), image.class());
        let abi = ALL.iter().find(of_image)?;
        let is_blanked = abi.has_quirk(Quirk::BlankedNames) && image.parsed.has_blanked_names();
        let outcomes = outcomes(abi, &image.parsed, is_blanked);
        Self::new(abi, outcomes.map(|outcome| Some(outcome.with_value(&image.parsed))))
    }

    /// Returns the routes with the names of their functions.
    ///
    /// ```
    /// for (function, route) in vdso_time::routes().functions() {
    ///     println!("{function}: {route}");
    /// }
    /// ```
    #[must_use]
    pub const fn functions(&self) -> [(&'static str, Route); 5] {
        [
            ("time", self.time),
            ("gettimeofday", self.gettimeofday),
            ("clock_gettime", self.clock_gettime),
            ("clock_getres", self.clock_getres),
            ("getcpu", self.getcpu),
        ]
    }

    fn new(abi: &Abi, outcomes: [Option<Outcome>; 5]) -> Option<Self> {
        let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
        Some(Self {
            time: route(abi, &abi.time, time?)?,
            gettimeofday: route(abi, &abi.gettimeofday, gettimeofday?)?,
            clock_gettime: route(abi, &abi.clock_gettime, clock_gettime?)?,
            clock_getres: route(abi, &abi.clock_getres, clock_getres?)?,
            getcpu: route(abi, &abi.getcpu, getcpu?)?,
        })
    }
}

/// Names the symbol or the system call of a function.
fn route(abi: &Abi, function: &Function, outcome: Outcome) -> Option<Route> {
    Some(match outcome.row() {
        Some((row, address)) => Route::Vdso {
            symbol: function.candidates.get(row)?.name,
            version: outcome.is_versioned().then_some(abi.version),
            address,
        },
        None => Route::Syscall {
            number: function.syscalls_in_order(TIME32_FIRST).next()?.number,
            reason: outcome.reason()?,
        },
    })
}

/// Returns who answers each function in this process, after finding out as [`warm_up`] does.
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
    const LIBC: Routes = Routes {
        time: Route::Libc,
        gettimeofday: Route::Libc,
        clock_gettime: Route::Libc,
        clock_getres: Route::Libc,
        getcpu: Route::Libc,
    };
    warm_up();
    match NATIVE {
        // A table has a system call for every function, and the records are stored: there are routes.
        Some(abi) => Routes::new(abi, RECORDS.each_ref().map(Record::load)).unwrap_or(LIBC),
        None => LIBC,
    }
}

/// Does what the first call of any function does: finds the vDSO and its functions.
///
/// Call it before a thread enters a sandbox that kills for the system calls by which the vDSO is found:
/// `rt_sigprocmask` and, without the feature `libc`, `prctl`, `openat`, `read` and `close`.
///
/// ```
/// vdso_time::warm_up();
/// ```
pub fn warm_up() {
    if RECORDS.iter().any(|record| record.load().is_none()) {
        resolve_all();
    }
}

/// Whether a symbol of the vDSO answers clock_gettime and getcpu.
#[cfg(feature = "counter")]
pub(crate) fn are_symbols() -> (bool, bool) {
    warm_up();
    let [_, _, clock_gettime, _, getcpu] = &RECORDS;
    let is_symbol = |record: &Record| record.load().is_some_and(|outcome| outcome.row().is_some());
    (is_symbol(clock_gettime), is_symbol(getcpu))
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

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (function, route)) in self.functions().iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{function:<14} {route}")?;
        }
        Ok(())
    }
}

//! What answers each function, as the first call recorded it.

use core::fmt;

use super::native::ABI;
use super::outcome::{FallbackReason, Outcome, RECORDS, outcomes};
use super::resolve::resolve_all;
use super::rseq;
use crate::arch::{ALL, Abi, Function, NATIVE, Quirk, TIME32_FIRST};
use crate::elf::Image;

/// What answers a function.
///
/// # Examples
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
    /// A function of the vDSO.
    ///
    /// This does not prove that a read stays in user space. The function itself makes the system
    /// call for a clock or a clock source that it cannot read.
    #[non_exhaustive]
    Vdso {
        /// The symbol's name.
        symbol: &'static str,
        /// The symbol's version; `None` in an image without versions.
        version: Option<&'static str>,
        /// The address of its code. On arm, bit 0 is set for Thumb code.
        address: usize,
    },
    /// A system call.
    #[non_exhaustive]
    Syscall {
        /// The system call's number.
        number: u32,
        /// Why the vDSO does not answer.
        reason: FallbackReason,
    },
    /// The thread's rseq area, which the C library registered (rseq(2)). A thread without one asks
    /// the vDSO or the kernel.
    Rseq,
    /// A function of libc, on a Linux architecture without a table in this crate.
    Libc,
}

/// What answers each function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routes {
    /// What answers [`time`](crate::time()).
    pub time: Route,
    /// What answers [`gettimeofday`](crate::gettimeofday()).
    pub gettimeofday: Route,
    /// What answers [`clock_gettime`](crate::clock_gettime()).
    pub clock_gettime: Route,
    /// What answers [`clock_getres`](crate::clock_getres()).
    pub clock_getres: Route,
    /// What answers [`getcpu`](crate::getcpu()).
    pub getcpu: Route,
    /// What answers [`cpu`](crate::cpu()).
    pub cpu: Route,
}

impl Routes {
    /// Returns the routes of a process whose kernel maps this image.
    ///
    /// It is `None` if this crate has no table for the image's architecture. The addresses are the
    /// values of the symbols.
    ///
    /// # Examples
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
        let is_of_image = |abi: &&&Abi| (abi.machine, abi.class) == (image.machine(), image.class());
        let abi = ALL.iter().find(is_of_image)?;
        let is_blanked = abi.has_quirk(Quirk::BlankedNames) && image.parsed.has_blanked_names();
        let outcomes = outcomes(abi, &image.parsed, is_blanked, |value| value as usize);
        Some(Self::new(abi, outcomes.map(Some)))
    }

    /// Returns the routes with the names of their functions.
    #[must_use]
    pub const fn functions(&self) -> [(&'static str, Route); 6] {
        [
            ("time", self.time),
            ("gettimeofday", self.gettimeofday),
            ("clock_gettime", self.clock_gettime),
            ("clock_getres", self.clock_getres),
            ("getcpu", self.getcpu),
            ("cpu", self.cpu),
        ]
    }

    fn new(abi: &Abi, outcomes: [Option<Outcome>; 5]) -> Self {
        let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
        let getcpu = Route::new(abi, &abi.getcpu, getcpu);
        Self {
            time: Route::new(abi, &abi.time, time),
            gettimeofday: Route::new(abi, &abi.gettimeofday, gettimeofday),
            clock_gettime: Route::new(abi, &abi.clock_gettime, clock_gettime),
            clock_getres: Route::new(abi, &abi.clock_getres, clock_getres),
            getcpu,
            cpu: getcpu,
        }
    }
}

impl Route {
    /// Without a table there is no outcome.
    fn new(abi: &Abi, function: &Function, outcome: Option<Outcome>) -> Self {
        let syscall = function.syscalls_in_order(TIME32_FIRST).next();
        match outcome {
            Some(Outcome::Symbol { row, is_versioned, address }) => {
                let version = is_versioned.then_some(abi.version);
                let candidate = function.candidates.get(row);
                candidate.map_or(Self::Libc, |row| Self::Vdso { symbol: row.name, version, address })
            }
            Some(Outcome::Fallback(reason)) => {
                syscall.map_or(Self::Libc, |call| Self::Syscall { number: call.number, reason })
            }
            None => Self::Libc,
        }
    }
}

/// Returns what answers each function in this process. It calls [`warm_up`] first.
#[must_use]
pub fn routes() -> Routes {
    warm_up();
    let is_recorded = NATIVE.is_some();
    let outcomes = RECORDS.each_ref().map(|record| record.load().filter(|_| is_recorded));
    let mut routes = Routes::new(&ABI, outcomes);
    if rseq::has_node() {
        routes.getcpu = Route::Rseq;
    }
    routes.cpu = if rseq::has_cpu() { Route::Rseq } else { routes.getcpu };
    routes
}

/// Finds the vDSO and its functions, as the first call of any function does.
///
/// Call it before a thread enters a sandbox that kills for the system calls of the first call:
/// `rt_sigprocmask` and, without the feature `libc`, `prctl`, `openat`, `read` and `close`.
pub fn warm_up() {
    if RECORDS.iter().any(|record| record.load().is_none()) {
        resolve_all();
    }
}

/// Returns whether clock_gettime, and whether cpu, is answered without a system call.
#[cfg(feature = "counter")]
pub(crate) fn are_in_user_space() -> [bool; 2] {
    warm_up();
    let is_symbol = RECORDS.each_ref().map(|record| matches!(record.load(), Some(Outcome::Symbol { .. })));
    let [_, _, clock_gettime, _, getcpu] = is_symbol;
    [clock_gettime, rseq::has_cpu() || getcpu]
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vdso { symbol, version: Some(version), address } => {
                write!(f, "vDSO {symbol}@{version} at {address:#x}")
            }
            Self::Vdso { symbol, version: None, address } => write!(f, "vDSO {symbol} at {address:#x}"),
            Self::Syscall { number, reason } => write!(f, "system call {number} ({reason})"),
            Self::Rseq => f.write_str("rseq area of the thread"),
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

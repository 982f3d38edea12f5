//! Which symbol of an image answers each function, or why none does.

use core::fmt;

use crate::arch::{ALL, Abi, Candidate, Function, Quirk, TIME32_FIRST};
use crate::elf::{Entry, Format, Image, ParseError, ParsedImage};

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
    /// The clock of Rust's standard library, on another system than Linux.
    Std,
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
        let outcomes = outcomes(abi, &image.parsed, is_blanked, |entry| Ok(entry.value as usize));
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

    /// The same route for each function.
    #[cfg(all(vdso_time_clock, not(vdso_time_linux)))]
    pub(crate) const fn all(route: Route) -> Self {
        Self {
            time: route,
            gettimeofday: route,
            clock_gettime: route,
            clock_getres: route,
            getcpu: route,
            cpu: route,
        }
    }

    pub(crate) fn new(abi: &Abi, outcomes: [Option<Outcome>; 5]) -> Self {
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
            Self::Std => f.write_str("Rust's standard library"),
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

/// Why the vDSO does not answer a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackReason {
    /// The first call found no readable vDSO.
    NoVdso(LocateError),
    /// The image is for another architecture.
    ForeignImage,
    /// The image has no symbol that can answer.
    NoSymbol,
    /// A function of the image has a blank name.
    ///
    /// The kernel found no usable timer at boot and blanked the names of the functions that read it
    /// (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`). Kernels before 5.8 left out
    /// `__vdso_clock_gettime64`, which then returns garbage, so no such image is trusted.
    BlankedNames,
    /// The image has another `p_vaddr` than 0.
    ///
    /// A loader relocated it, as QEMU does with its own image, whose getcpu is wrong.
    RelocatedImage,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoVdso(error) => return error.fmt(f),
            Self::ForeignImage => "the vDSO is for another architecture",
            Self::NoSymbol => "the vDSO has no such function",
            Self::BlankedNames => "the kernel blanked the names of the vDSO's functions",
            Self::RelocatedImage => "this function of a relocated vDSO is not trusted",
        })
    }
}

impl From<LocateError> for FallbackReason {
    fn from(error: LocateError) -> Self {
        match error {
            LocateError::Malformed(ParseError::Class | ParseError::ByteOrder) => Self::ForeignImage,
            error => Self::NoVdso(error),
        }
    }
}

/// How one function is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The symbol of this row of the function's table, at this address.
    Symbol { row: usize, is_versioned: bool, address: usize },
    /// The system call.
    Fallback(FallbackReason),
}

/// Decides how an image answers each of [`Abi::functions`]. The best candidate that the image has
/// answers. `code` returns the address of an entry's code.
#[inline(never)]
pub(crate) fn outcomes<F: Format>(
    abi: &Abi,
    image: &ParsedImage<'_, F>,
    is_blanked: bool,
    code: impl Fn(&Entry) -> Result<usize, LocateError>,
) -> [Outcome; 5] {
    let is_relocated = image.load_address() != 0;
    let flaw = |candidate: &Candidate| match candidate.unless {
        Some(Quirk::BlankedNames) if is_blanked => Some(FallbackReason::BlankedNames),
        Some(Quirk::Relocated) if is_relocated => Some(FallbackReason::RelocatedImage),
        _ => None,
    };
    let mut outcomes = [Outcome::Fallback(FallbackReason::NoSymbol); 5];
    for (outcome, (_, function)) in outcomes.iter_mut().zip(abi.functions()) {
        if let Some(flaw) = function.candidates.iter().find_map(flaw) {
            *outcome = Outcome::Fallback(flaw);
        }
        let ranks: &[bool] = const { if TIME32_FIRST { &[true, false] } else { &[false] } };
        'found: for is_first in ranks {
            for (row, candidate) in function.candidates.iter().enumerate() {
                if is_first_choice(candidate) != *is_first || flaw(candidate).is_some() {
                    continue;
                }
                if let Some(entry) = image.find(candidate.name, Some(abi.version)) {
                    *outcome = match code(&entry) {
                        Ok(address) => Outcome::Symbol { row, is_versioned: image.has_versions(), address },
                        Err(error) => Outcome::Fallback(FallbackReason::NoVdso(error)),
                    };
                    break 'found;
                }
            }
        }
    }
    outcomes
}

/// Returns whether a symbol is preferred to those of the function for which this is false.
///
/// The 64-bit symbols of a 32-bit vDSO make the 64-bit system call for the clocks that they cannot
/// read, and Android may kill for that call. So the 32-bit symbols come first there, as in bionic.
const fn is_first_choice(candidate: &Candidate) -> bool {
    TIME32_FIRST && candidate.shape.is_time32()
}

/// Why this process has no usable vDSO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocateError {
    /// The auxiliary vector has no `AT_SYSINFO_EHDR`, or its value is 0.
    Absent,
    /// `AT_SYSINFO_EHDR` points to unreadable memory: the vDSO was unmapped or moved.
    Unmapped,
    /// A sandbox denied the check that the memory is readable, and the address is not getauxval's.
    Unchecked,
    /// `AT_SYSINFO_EHDR` does not point to a well-formed image.
    Malformed(ParseError),
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("no vDSO: AT_SYSINFO_EHDR is missing or 0"),
            Self::Unmapped => f.write_str("no vDSO: AT_SYSINFO_EHDR points to unreadable memory"),
            Self::Unchecked => f.write_str(
                "no vDSO: a sandbox denied the check of its address (call warm_up() before the sandbox)",
            ),
            Self::Malformed(error) => write!(f, "malformed vDSO: {error}"),
        }
    }
}

impl core::error::Error for LocateError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ParseError> for LocateError {
    fn from(error: ParseError) -> Self {
        Self::Malformed(error)
    }
}

//! The route of each function: what answers it, as the public API reports it.

#![forbid(unsafe_code)]

use core::fmt;

use crate::arch::{ALL, Abi, Entry};
use crate::choice::{Choice, FallbackReason, Outcome, can_call, decide};
use crate::elf::Image;

/// The code that answers a function: the vDSO, a system call, libc or std.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// A function of the vDSO.
    ///
    /// This route does not prove that a read stays in user space. If the vDSO's function cannot
    /// read a clock, or cannot read the kernel's clock source, the function makes the system call
    /// itself.
    #[non_exhaustive]
    Vdso {
        /// The symbol's name.
        symbol: &'static str,
        /// The symbol's version; `None` in an image without versions.
        version: Option<&'static str>,
        /// The address of the symbol's code. On arm, bit 0 is set for Thumb code. The address is a
        /// number and not a pointer, because a pointer is not `Send`, and because
        /// `Routes::of_image` returns addresses that do not belong to this process.
        address: usize,
    },
    /// A system call.
    #[non_exhaustive]
    Syscall {
        /// The number of the system call that is tried first. On a 32-bit architecture, another one
        /// may answer.
        number: u32,
        /// Why the vDSO does not answer.
        reason: FallbackReason,
    },
    /// A function of libc, on Linux where this crate does not call the vDSO ([`ARCH`](crate::ARCH)
    /// is `None`).
    Libc,
    /// The clock of Rust's standard library, on a system other than Linux.
    Std,
}

/// The route of each public function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Routes {
    /// The route of [`time`](crate::time()).
    pub time: Route,
    /// The route of [`gettimeofday`](crate::gettimeofday()).
    pub gettimeofday: Route,
    /// The route of [`clock_gettime`](crate::clock_gettime()).
    pub clock_gettime: Route,
    /// The route of [`clock_getres`](crate::clock_getres()).
    pub clock_getres: Route,
    /// The route of [`getcpu`](crate::getcpu()).
    pub getcpu: Route,
}

impl Routes {
    /// Returns the routes of a process whose kernel maps this image.
    ///
    /// Returns `None` if this crate calls libc in every process with this image: on big-endian
    /// powerpc64, and on an architecture whose vDSO this crate never calls. The addresses are the
    /// values of the symbols; a 32-bit program gets only their lower 32 bits. In a program that is
    /// built for Android, the routes of a 32-bit image name only symbols with 32-bit times, because
    /// 32-bit programs on Android use no others.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let file = std::fs::read("vdso-arm64.so")?;
    /// let image = vdso_time::elf::Image::parse(&file)?;
    /// println!("{}", vdso_time::Routes::of_image(&image).ok_or("by libc")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of_image(image: &Image<'_>) -> Option<Self> {
        let abi = ALL.iter().find(|abi| can_call(abi, image))?;
        // With this base, the address of each symbol equals the symbol's value.
        let base = image.origin() as usize;
        let outcomes = decide(abi, image, base);
        Some(Self::new(abi, outcomes, image.has_versions()))
    }

    /// Returns the name and the route of each function.
    #[must_use]
    pub fn functions(self) -> impl ExactSizeIterator<Item = (&'static str, Route)> {
        [
            ("time", self.time),
            ("gettimeofday", self.gettimeofday),
            ("clock_gettime", self.clock_gettime),
            ("clock_getres", self.clock_getres),
            ("getcpu", self.getcpu),
        ]
        .into_iter()
    }

    /// Creates routes that are the same for each function.
    #[cfg(any(vdso_time_libc_fallback, not(vdso_time_linux)))]
    pub(crate) const fn all(route: Route) -> Self {
        Self {
            time: route,
            gettimeofday: route,
            clock_gettime: route,
            clock_getres: route,
            getcpu: route,
        }
    }

    /// Creates the routes from the outcomes for the five functions. If the image has versions, the
    /// symbols that were found have the version that the table names.
    pub(crate) fn new(abi: &Abi, outcomes: [Outcome; 5], has_versions: bool) -> Self {
        let route = |entry: &Entry, outcome: Outcome| match outcome {
            Ok(Choice { candidate, address }) => {
                let version = has_versions.then_some(abi.version);
                Route::Vdso {
                    symbol: candidate.name,
                    version,
                    address,
                }
            }
            // Every table has a system call for each function, so the default number 0 is never
            // used.
            Err(reason) => Route::Syscall {
                number: entry.syscalls.first().map_or(0, |call| call.number),
                reason,
            },
        };
        let [time, gettimeofday, clock_gettime, clock_getres, getcpu] = outcomes;
        Self {
            time: route(&abi.time, time),
            gettimeofday: route(&abi.gettimeofday, gettimeofday),
            clock_gettime: route(&abi.clock_gettime, clock_gettime),
            clock_getres: route(&abi.clock_getres, clock_getres),
            getcpu: route(&abi.getcpu, getcpu),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vdso {
                symbol,
                version: Some(version),
                address,
            } => {
                write!(f, "vDSO {symbol}@{version} at {address:#x}")
            }
            Self::Vdso {
                symbol,
                version: None,
                address,
            } => write!(f, "vDSO {symbol} at {address:#x}"),
            Self::Syscall { number, reason } => write!(f, "system call {number} ({reason})"),
            Self::Libc => f.write_str("libc"),
            Self::Std => f.write_str("Rust's standard library"),
        }
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (function, route)) in self.functions().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{function:<14} {route}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;
    use std::vec;

    use super::*;
    use crate::LocateError;
    use crate::elf::ParseError;

    /// The C interface says that a buffer of 1000 bytes is enough for `Display` and a NUL.
    #[test]
    fn all_routes_fit_in_the_buffer_of_a_c_program() {
        let vdso = |symbol| Route::Vdso {
            symbol,
            version: Some("LINUX_2.6.39"),
            address: usize::MAX,
        };
        let mut routes = vec![
            vdso("__vdso_clock_gettime64"),
            vdso("__kernel_clock_gettime"),
        ];
        for reason in [
            FallbackReason::NoVdso(LocateError::Absent),
            FallbackReason::NoVdso(LocateError::Unmapped),
            FallbackReason::NoVdso(LocateError::Unchecked),
            FallbackReason::NoVdso(LocateError::Malformed(ParseError::LoadSegment)),
            FallbackReason::ForeignImage,
            FallbackReason::NoSymbol,
            FallbackReason::BlankedNames,
            FallbackReason::NonzeroLoadAddress,
        ] {
            let number = u32::MAX;
            routes.push(Route::Syscall { number, reason });
        }
        for route in routes {
            let text = Routes {
                time: route,
                gettimeofday: route,
                clock_gettime: route,
                clock_getres: route,
                getcpu: route,
            }
            .to_string();
            assert!(text.len() < 1000, "{} bytes: {text}", text.len());
        }
    }
}

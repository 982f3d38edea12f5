//! Whether a read stays in user space, and how that is known.
//!
//! A route through the vDSO proves nothing: its functions make a system call themselves if they
//! cannot read the clock. So each function is called, and its system calls are caught.

mod dispatch;
mod seccomp;

use std::io;

use serde::Serialize;
use vdso_time::{ClockId, FallbackReason, Route, Routes, Timespec, clock_getres};

use crate::cpus::Cpus;
use crate::read::{Entry, Read};
use crate::timing;

/// How a system call is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Syscall User Dispatch, since Linux 5.11 on x86: a signal instead of the call.
    Dispatch,
    /// A seccomp filter for a thread, in which every clock call fails with an error number of its own.
    Seccomp,
    /// The cost of a read compared with a system call. No proof.
    Timing,
}

impl Method {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Dispatch, Self::Seccomp, Self::Timing];

    /// Returns its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Seccomp => "seccomp",
            Self::Timing => "timing",
        }
    }

    /// The method that was asked for, or the best one, if it detects a known system call here.
    pub(crate) fn chosen(asked: Option<Self>) -> io::Result<Self> {
        let check = |method: Self| match method {
            Self::Dispatch => dispatch::check(),
            Self::Seccomp => seccomp::check(),
            Self::Timing => Ok(()),
        };
        let Some(method) = asked else {
            return Ok(Self::ALL.into_iter().find(|method| check(*method).is_ok()).unwrap_or(Self::Timing));
        };
        let fails =
            |error| io::Error::other(format!("--method={} does not work here: {error}", method.name()));
        check(method).map(|()| method).map_err(fails)
    }
}

/// Where a read is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In user space.
    UserSpace,
    /// In the kernel: it makes a system call.
    Kernel,
    /// That is not known.
    #[default]
    Unknown,
}

impl Place {
    /// Returns its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserSpace => "user space",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        }
    }
}

/// How the place is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Evidence {
    /// Reads were made and their system calls were counted.
    Proved,
    /// The crate calls no function of the vDSO: it makes the system call itself.
    Routed,
    /// The kernel or a sandbox refuses the read.
    Refused,
    /// The read costs as much as such reads do.
    Likely,
    /// libc answers: vdso-time has no table for this architecture.
    Libc,
    /// Nothing is known.
    #[default]
    None,
}

/// One read, and what was found out about it.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Reading {
    /// The read.
    #[serde(skip)]
    pub read: Read,
    /// The function's name.
    pub function: &'static str,
    /// The clock's name.
    pub clock: Option<String>,
    /// The clock's number.
    pub clock_id: Option<i32>,
    /// Where the read is answered.
    pub place: Place,
    /// How that is known.
    pub evidence: Evidence,
    /// How many reads were made for the proof.
    pub reads: Option<u32>,
    /// How many of them entered the kernel.
    pub entered: Option<u32>,
    /// How many of those made the system call outside the vDSO, as far as the method can detect it.
    pub outside: Option<u32>,
    /// The number of the last system call, if the method can detect it.
    pub syscall: Option<i32>,
    /// Why the read was refused.
    pub error: Option<String>,
    /// The clock's resolution.
    pub resolution_ns: Option<i64>,
    /// The cost of a read through the crate.
    pub ns: Option<f64>,
    /// The cost of the system call.
    pub syscall_ns: Option<f64>,
    /// `ns / syscall_ns`.
    pub ratio: Option<f64>,
    /// Why the crate makes the system call itself.
    #[serde(skip)]
    pub(crate) reason: Option<FallbackReason>,
}

impl Reading {
    pub(crate) fn new(read: Read) -> Self {
        Self {
            read,
            function: read.function(),
            clock: read.clock().map(|clock| format!("{clock:?}")),
            clock_id: read.clock().map(ClockId::as_raw),
            ..Self::default()
        }
    }
}

/// Reads, and the system calls that they made.
#[derive(Clone, Copy, Default)]
struct Count {
    reads: u32,
    entered: u32,
    outside: u32,
    syscall: Option<i32>,
}

/// Reads on each CPU.
pub(crate) const READS: u32 = 1000;

/// What is needed to examine a read.
pub(crate) struct Prover<'a> {
    /// None without a vDSO.
    pub(crate) method: Option<Method>,
    pub(crate) routes: &'a Routes,
    /// None if this thread cannot be moved.
    pub(crate) cpus: Option<Cpus>,
    /// Whether reads can be timed.
    pub(crate) has_watch: bool,
    /// Nanoseconds of the cheapest way into the kernel; none in an emulator, where time is
    /// meaningless.
    pub(crate) kernel_entry: Option<f64>,
}

impl Prover<'_> {
    /// Finds out where a read is answered and what it costs.
    pub(crate) fn examine(&self, read: Read) -> Reading {
        let mut seen = Reading::new(read);
        let route = read.route(self.routes);
        let speed = if self.has_watch { timing::speed(read) } else { None };
        let rounded = |value: f64, unit: f64| (value * unit).round() / unit;
        seen.ns = speed.map(|speed| rounded(speed.here, 1e2));
        // If libc answers, there is no system call of vdso-time to compare with.
        let call = speed.and_then(|speed| speed.system_call).filter(|_| route != Route::Libc);
        seen.syscall_ns = call.map(|call| rounded(call, 1e2));
        seen.ratio = speed.zip(call).map(|(speed, call)| rounded(speed.here / call, 1e4));
        let answer = read.make();
        if let (Read::ClockGettime(clock), Ok(())) = (read, answer) {
            seen.resolution_ns = clock_getres(clock).ok().map(Timespec::as_nanos);
        }
        (seen.place, seen.evidence) = match (route, answer) {
            (Route::Libc, _) => (Place::Unknown, Evidence::Libc),
            (_, Err(error)) => {
                seen.error = Some(error.to_string());
                (Place::Kernel, Evidence::Refused)
            }
            (Route::Syscall { reason, .. }, Ok(())) => {
                seen.reason = Some(reason);
                (Place::Kernel, Evidence::Routed)
            }
            _ => self.prove(&mut seen),
        };
        seen
    }

    /// Counts system calls. If no method works, judges by the cost.
    fn prove(&self, seen: &mut Reading) -> (Place, Evidence) {
        let count = Entry::of(seen.read, self.routes).and_then(|entry| match self.method {
            Some(Method::Dispatch) => dispatch::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Seccomp) => seccomp::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Timing) | None => None,
        });
        if let Some(count) = count {
            seen.reads = Some(count.reads);
            seen.entered = Some(count.entered);
            seen.outside = Some(count.outside);
            seen.syscall = count.syscall;
            let place = if count.entered == 0 { Place::UserSpace } else { Place::Kernel };
            return (place, Evidence::Proved);
        }
        // A vDSO that enters the kernel costs as much as another way into it, or more.
        match (seen.ns, self.kernel_entry) {
            (Some(ns), Some(entry)) if ns < 0.4 * entry => (Place::UserSpace, Evidence::Likely),
            (Some(ns), Some(entry)) if ns > 0.8 * entry => (Place::Kernel, Evidence::Likely),
            _ => (Place::Unknown, Evidence::None),
        }
    }
}

/// Makes the reads on each CPU, or wherever the thread is if it cannot be moved. `entered` makes
/// one and returns whether it entered the kernel.
fn count_reads(cpus: Option<&Cpus>, mut entered: impl FnMut() -> bool) -> io::Result<Count> {
    let mut count = Count::default();
    let mut here = || {
        for _ in 0..READS {
            count.reads += 1;
            count.entered += u32::from(entered());
        }
    };
    match cpus {
        None => here(),
        Some(cpus) => cpus.on_each(here),
    }
    if count.reads == 0 { Err(io::ErrorKind::NotFound.into()) } else { Ok(count) }
}

//! Whether a read stays in user space, and how that is known.
//!
//! A route through the vDSO proves nothing: its functions make a system call themselves if they
//! cannot read the clock. So each function is called, and its system calls are detected.

mod seccomp;

use serde::Serialize;
use vdso_time::{ClockId, FallbackReason, Route, Routes, Timespec, clock_getres};

use crate::cpus::Cpus;
use crate::read::{Entry, Read};
use crate::timing;

/// How a system call is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// A seccomp filter for a thread, in which every clock call fails with an error number of its own.
    Seccomp,
    /// The cost of a read compared with a system call. No proof.
    Timing,
}

impl Method {
    /// The best one that detects a known system call here.
    pub(crate) fn best() -> Self {
        if seccomp::check().is_ok() { Self::Seccomp } else { Self::Timing }
    }
}

/// Where a read is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Place {
    /// In user space.
    #[serde(rename = "user space")]
    UserSpace,
    /// In the kernel: it makes a system call.
    Kernel,
    /// That is not known.
    #[default]
    Unknown,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
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
    /// The route says it: the crate makes the system call itself, or reads the thread's rseq area.
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
    /// Why the read was refused.
    pub error: Option<String>,
    /// The clock's resolution.
    pub resolution_ns: Option<i64>,
    /// The cost of a read through the crate.
    pub ns: Option<f64>,
    /// The cost of the system call.
    pub syscall_ns: Option<f64>,
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

    /// The cost of a read as a share of the system call's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.ns.zip(self.syscall_ns).map(|(ns, syscall_ns)| ns / syscall_ns)
    }
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
        let rounded = |value: f64| (value * 1e2).round() / 1e2;
        seen.ns = speed.map(|speed| rounded(speed.here));
        // If libc answers, there is no system call of vdso-time to compare with.
        let call = speed.and_then(|speed| speed.system_call).filter(|_| route != Route::Libc);
        seen.syscall_ns = call.map(rounded);
        let answer = read.make();
        if let (Read::ClockGettime(clock), Ok(())) = (read, answer) {
            seen.resolution_ns = clock_getres(clock).ok().map(Timespec::as_nanos);
        }
        (seen.place, seen.evidence) = match (route, answer) {
            (Route::Libc, _) => (Place::Unknown, Evidence::Libc),
            (Route::Rseq, Ok(())) => (Place::UserSpace, Evidence::Routed),
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

    /// Counts system calls. If that is not possible, judges by the cost.
    fn prove(&self, seen: &mut Reading) -> (Place, Evidence) {
        let entry = Entry::of(seen.read, self.routes).filter(|_| self.method == Some(Method::Seccomp));
        if let Some(Ok(count)) = entry.map(|entry| seccomp::count(entry, self.cpus.as_ref())) {
            seen.reads = Some(count.reads);
            seen.entered = Some(count.entered);
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

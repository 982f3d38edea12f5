//! Proves whether this process reads its clocks in user space, through the vDSO, or in the kernel.
//!
//! This is the library of the program `vdso-doctor`, which reports that for a machine, checks it in
//! scripts and health probes, and looks at other processes: `cargo install vdso-doctor`. Its page
//! on [crates.io](https://crates.io/crates/vdso-doctor) shows what it prints.
//!
//! A vDSO that cannot read the kernel's clock source makes a system call itself, so its address
//! proves nothing. [`diagnose`] calls each function, detects the system calls, measures the costs,
//! and says why a read enters the kernel and what to do.
//!
//! ```
//! let diagnosis = vdso_doctor::diagnose()?;
//! println!("{:?}: {}", diagnosis.cause, diagnosis.verdict);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Diagnosis`] implements `serde::Serialize`, with the fields of `vdso-doctor --json`, and
//! `Display`, as the report of `vdso-doctor`.
//!
//! # In a server
//!
//! [`check`] is the proof alone, for a start-up check or a health endpoint:
//!
//! ```
//! use vdso_time::ClockId;
//!
//! if let Err(finding) = vdso_doctor::check(&[ClockId::REALTIME, ClockId::MONOTONIC]) {
//!     eprintln!("slow clock: {finding}");
//! }
//! ```
//!
//! The reads are made in a thread of their own, which ends with the call. That thread has a seccomp
//! filter, moves to each CPU in turn, and blocks signals. No other thread changes.
//!
//! A sandbox that kills for `prctl`, `sched_setaffinity` or a clock call kills the process.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("vdso-doctor is for Linux and Android");

mod call;
mod json;
mod own_vdso;
mod platform;
mod process;
mod process_report;
mod proof;
mod report;
mod seccomp;
#[cfg(test)]
mod tests;
mod timing;
mod vdso_call;
mod verdict;

use std::time::Duration;
use std::{fmt, io, mem, thread};

use vdso_time::LocateError;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

pub use call::Call;
use json::json;
pub use own_vdso::OwnVdso;
pub use platform::{ClockSource, Platform, Supervisor};
pub use process::{ProcessError, ProcessSymbol, ProcessVdso};
pub use process_report::ProcessDiagnosis;
use proof::{Check, worst_location};
pub use proof::{Evidence, Location, Measurement};
pub use verdict::Cause;

/// What [`diagnose`] found out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The version of this format.
    pub format: u32,
    /// The kernel and its clock source.
    pub platform: Platform,
    /// The vDSO, or why there is none.
    pub vdso: Result<OwnVdso, LocateError>,
    /// Who answers each function.
    pub routes: Routes,
    /// Why not every read could be proved.
    pub unproved: Option<String>,
    /// The CPUs on which the reads were made; empty if the thread could not be moved.
    pub cpus: Vec<usize>,
    /// The calls, and what was found out about each.
    pub measurements: Vec<Measurement>,
    /// Why the reads are answered where they are.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub verdict: String,
    /// The reads that the verdict is about.
    pub(crate) about: Vec<Call>,
}

json!(Diagnosis, |this|
    format, kernel: this.platform.kernel, architecture: this.platform.architecture,
    supervisor: this.platform.supervisor, clock_source: this.platform.clock_source,
    vdso: json::Located(&this.vdso), routes: json::Functions(&this.routes), unproved, cpus,
    measurements, cause, verdict
);

impl Diagnosis {
    /// Returns where these reads are answered.
    ///
    /// It is [`Location::UserSpace`] only if proof or the route shows it for each of them, and
    /// [`Location::Kernel`] if that is known for one. A system call that an emulator or valgrind makes
    /// is [`Location::Unknown`].
    #[must_use]
    pub fn location(&self, reads: &[Call]) -> Location {
        worst_location(&self.measurements, self.platform.supervisor, reads)
    }
}

/// Why [`check`] does not confirm that reads stay in user space.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// [`Location::Kernel`] if a read enters the kernel, [`Location::Unknown`] if nothing can be proved.
    pub location: Location,
    /// Why.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub message: String,
}

json!(Finding, |finding| location, cause, message);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Finding {}

/// Calls on each CPU: in a check, and for a diagnosis.
const CALLS: [u32; 2] = [32, 1000];

/// Checks that these reads stay in user space, now, on every CPU that the calling thread may use.
///
/// It starts a thread, which makes 32 calls of each read on each CPU, one CPU after the other. So
/// it takes longer the more CPUs there are, and waits for its turn on those that are busy. In the
/// first five seconds of a gVisor sandbox it takes 1.5 s, because its kernel still measures the
/// CPU's counter. In the first five seconds of a Linux kernel it can take as long. The
/// [crate](crate#in-a-server) says what it does to the process.
///
/// # Errors
/// A [`Finding`] if a read enters the kernel, or if nothing can be proved.
pub fn check<R: Copy + Into<Call>>(reads: &[R]) -> Result<(), Finding> {
    let about: Vec<Call> = reads.iter().map(|read| (*read).into()).collect();
    let mut reads = about.clone();
    // The advice depends on these.
    include(&mut reads, &[Call::COARSE, Call::USUAL].concat());
    if !platform::is_counter_fatal() && !platform::may_be_new() {
        let seen = Check::of(&reads, CALLS[0], false);
        // A read in user space is that in an emulator, too.
        if worst_location(&seen.measurements, None, &about) == Location::UserSpace {
            return Ok(());
        }
    }
    let Verdict {
        location,
        cause,
        verdict,
        ..
    } = Verdict::of(&reads, &about, CALLS[0], false);
    if location == Location::UserSpace {
        Ok(())
    } else {
        Err(Finding {
            location,
            cause,
            message: verdict,
        })
    }
}

/// How long a kernel gets to choose its clock source. gVisor takes 0.9 to 1.2 s.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Reads that were examined, and what that means for those that the verdict is about.
struct Verdict {
    platform: Platform,
    seen: Check,
    location: Location,
    cause: Cause,
    verdict: String,
}

impl Verdict {
    /// Examines reads once the clock source is settled: later if the kernel has just started, and
    /// again if it changed meanwhile. A proof holds for one moment only.
    fn of(reads: &[Call], about: &[Call], calls: u32, is_timed: bool) -> Self {
        let mut platform = Platform::look();
        if platform::is_counter_fatal() {
            let (seen, location, cause) = (Check::default(), Location::Unknown, Cause::Refused);
            return Self {
                platform,
                seen,
                location,
                cause,
                verdict: FATAL_COUNTER.into(),
            };
        }
        if platform.is_settling() {
            thread::sleep(PATIENCE);
        }
        let mut seen = Check::of(reads, calls, is_timed);
        let before = mem::replace(&mut platform, Platform::look())
            .clock_source
            .current;
        if seen.is_of_two_states() || platform.clock_source.current != before {
            seen = Check::of(reads, calls, is_timed);
        }
        let location = worst_location(&seen.measurements, platform.supervisor, about);
        let (cause, verdict) = verdict::verdict(&platform, &seen, about);
        Self {
            platform,
            seen,
            location,
            cause,
            verdict,
        }
    }
}

fn include(reads: &mut Vec<Call>, more: &[Call]) {
    for read in more {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
}

const FATAL_COUNTER: &str = "cannot read the clocks: reading the CPU's counter ends this process \
                             (PR_SET_TSC); use time() and the coarse clocks";

/// Diagnoses this process. The verdict is about [`Call::USUAL`].
///
/// It makes 1000 calls of each read on each CPU, and then times each read for some milliseconds.
/// After the start of a kernel it takes 1.5 s more, as [`check`] does.
///
/// # Errors
/// If reading the CPU's counter ends this process (`PR_SET_TSC`).
pub fn diagnose() -> io::Result<Diagnosis> {
    diagnose_calls(&Call::USUAL)
}

/// Diagnoses this process. The verdict is about these reads.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_calls(about: &[Call]) -> io::Result<Diagnosis> {
    if platform::is_counter_fatal() {
        return Err(io::Error::other(FATAL_COUNTER));
    }
    let mut reads = call::all();
    include(&mut reads, about);
    let Verdict {
        platform,
        seen,
        cause,
        verdict,
        ..
    } = Verdict::of(&reads, about, CALLS[1], true);
    let vdso = Vdso::locate()
        .as_ref()
        .map(OwnVdso::of)
        .map_err(|error| *error);
    let (
        routes,
        Check {
            measurements,
            cpus,
            unproved,
        },
    ) = (routes(), seen);
    let about = about.to_vec();
    Ok(Diagnosis {
        format: 1,
        platform,
        vdso,
        routes,
        unproved,
        cpus,
        measurements,
        cause,
        verdict,
        about,
    })
}

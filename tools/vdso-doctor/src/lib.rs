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

mod function;
mod json;
mod own_vdso;
mod platform;
mod process;
mod process_report;
mod proof;
mod read;
mod report;
mod seccomp;
#[cfg(test)]
mod tests;
mod timing;
mod verdict;

use std::time::Duration;
use std::{fmt, io, mem, thread};

use vdso_time::LocateError;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

use json::json;
pub use own_vdso::OwnVdso;
pub use platform::{ClockSource, Platform, Supervisor};
pub use process::{ProcessError, ProcessSymbol, ProcessVdso};
pub use process_report::ProcessDiagnosis;
pub use proof::{Evidence, Place, Reading};
use proof::{Examination, worst_place};
pub use read::Read;
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
    /// The reads.
    pub reads: Vec<Reading>,
    /// Why the reads are answered where they are.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub verdict: String,
    /// The reads that the verdict is about.
    pub(crate) about: Vec<Read>,
}

json!(Diagnosis, |this|
    format, kernel: this.platform.kernel, architecture: this.platform.architecture,
    supervisor: this.platform.supervisor, clock_source: this.platform.clock_source,
    vdso: json::Located(&this.vdso), routes: json::Functions(&this.routes), unproved, cpus,
    reads, cause, verdict
);

impl Diagnosis {
    /// Returns where these reads are answered.
    ///
    /// It is [`Place::UserSpace`] only if proof or the route shows it for each of them, and
    /// [`Place::Kernel`] if that is known for one. A system call that an emulator or valgrind makes
    /// is [`Place::Unknown`].
    #[must_use]
    pub fn place(&self, reads: &[Read]) -> Place {
        worst_place(&self.reads, self.platform.supervisor, reads)
    }
}

/// Why [`check`] does not confirm that reads stay in user space.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// [`Place::Kernel`] if a read enters the kernel, [`Place::Unknown`] if nothing can be proved.
    pub place: Place,
    /// Why.
    pub cause: Cause,
    /// The cause as a sentence that says what to do.
    pub message: String,
}

json!(Finding, |finding| place, cause, message);

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
pub fn check<R: Copy + Into<Read>>(reads: &[R]) -> Result<(), Finding> {
    let about: Vec<Read> = reads.iter().map(|read| (*read).into()).collect();
    let mut reads = about.clone();
    // The advice depends on these.
    include(&mut reads, &[Read::COARSE, Read::USUAL].concat());
    if !platform::is_counter_fatal() && !platform::may_be_new() {
        let seen = Examination::of(&reads, CALLS[0], false);
        // A read in user space is that in an emulator, too.
        if worst_place(&seen.readings, None, &about) == Place::UserSpace {
            return Ok(());
        }
    }
    let Judgement {
        place,
        cause,
        verdict,
        ..
    } = Judgement::of(&reads, &about, CALLS[0], false);
    if place == Place::UserSpace {
        Ok(())
    } else {
        Err(Finding {
            place,
            cause,
            message: verdict,
        })
    }
}

/// How long a kernel gets to choose its clock source. gVisor takes 0.9 to 1.2 s.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Reads that were examined, and what that means for those that the verdict is about.
struct Judgement {
    platform: Platform,
    seen: Examination,
    place: Place,
    cause: Cause,
    verdict: String,
}

impl Judgement {
    /// Examines reads once the clock source is settled: later if the kernel has just started, and
    /// again if it changed meanwhile. A proof holds for one moment only.
    fn of(reads: &[Read], about: &[Read], calls: u32, is_timed: bool) -> Self {
        let mut platform = Platform::look();
        if platform::is_counter_fatal() {
            let (seen, place, cause) = (Examination::default(), Place::Unknown, Cause::Refused);
            return Self {
                platform,
                seen,
                place,
                cause,
                verdict: FATAL_COUNTER.into(),
            };
        }
        if platform.is_settling() {
            thread::sleep(PATIENCE);
        }
        let mut seen = Examination::of(reads, calls, is_timed);
        let before = mem::replace(&mut platform, Platform::look())
            .clock_source
            .current;
        if seen.is_of_two_states() || platform.clock_source.current != before {
            seen = Examination::of(reads, calls, is_timed);
        }
        let place = worst_place(&seen.readings, platform.supervisor, about);
        let (cause, verdict) = verdict::verdict(&platform, &seen, about);
        Self {
            platform,
            seen,
            place,
            cause,
            verdict,
        }
    }
}

fn include(reads: &mut Vec<Read>, more: &[Read]) {
    for read in more {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
}

const FATAL_COUNTER: &str = "cannot read the clocks: reading the CPU's counter ends this process \
                             (PR_SET_TSC); use time() and the coarse clocks";

/// Diagnoses this process. The verdict is about [`Read::USUAL`].
///
/// It makes 1000 calls of each read on each CPU, and then times each read for some milliseconds.
/// After the start of a kernel it takes 1.5 s more, as [`check`] does.
///
/// # Errors
/// If reading the CPU's counter ends this process (`PR_SET_TSC`).
pub fn diagnose() -> io::Result<Diagnosis> {
    diagnose_reads(&Read::USUAL)
}

/// Diagnoses this process. The verdict is about these reads.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_reads(about: &[Read]) -> io::Result<Diagnosis> {
    if platform::is_counter_fatal() {
        return Err(io::Error::other(FATAL_COUNTER));
    }
    let mut reads = read::all();
    include(&mut reads, about);
    let Judgement {
        platform,
        seen,
        cause,
        verdict,
        ..
    } = Judgement::of(&reads, about, CALLS[1], true);
    let vdso = Vdso::locate()
        .as_ref()
        .map(OwnVdso::of)
        .map_err(|error| *error);
    let (
        routes,
        Examination {
            readings: reads,
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
        reads,
        cause,
        verdict,
        about,
    })
}

//! Whether a read stays in user space, and how that is known.
//!
//! An address in the vDSO proves nothing: its functions make a system call themselves where they cannot read the clock.
//! So each is called, and every system call that comes of it is caught.

mod dispatch;
pub(crate) mod filter;
mod seccomp;

use std::io;

use vdso_time::{Errno, Reason, Route, Routes};

use super::cpus::Cpus;
use super::read::{Entry, Read};
use super::timing::Speed;

/// How a system call is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Syscall User Dispatch, of Linux 5.11 on x86: a signal before the call is made.
    Dispatch,
    /// A seccomp filter in a child process, where every clock call fails with an error number of its own.
    Seccomp,
    /// The time that a read takes, against a system call's. No proof.
    Timing,
}

impl Method {
    pub(crate) const ALL: [Self; 3] = [Self::Dispatch, Self::Seccomp, Self::Timing];

    /// The best that there is here.
    pub(crate) fn best() -> Self {
        Self::ALL.into_iter().find(|method| method.check().is_ok()).unwrap_or(Self::Timing)
    }

    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Seccomp => "seccomp",
            Self::Timing => "timing",
        }
    }

    /// Whether the method notices a system call that is known to be made.
    pub(crate) fn check(self) -> io::Result<()> {
        match self {
            Self::Dispatch => dispatch::check(),
            Self::Seccomp => seccomp::check(),
            Self::Timing => Ok(()),
        }
    }
}

/// Where a read is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    UserSpace,
    Kernel,
    Unknown,
}

/// How sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// So many reads were made, and so many of them entered the kernel.
    Proved(Count),
    /// No function of the vDSO is called: the crate makes the system call itself, and why.
    Routed(Reason),
    /// The kernel does not answer this read at all.
    Refused(Errno),
    /// It takes as long as such reads do.
    Likely,
    /// Nothing tells.
    None,
}

/// Reads, and system calls that came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) reads: u32,
    pub(crate) entered: u32,
    /// Those of them that were made elsewhere than in the vDSO, as far as the method can tell.
    pub(crate) outside: u32,
}

/// Reads on each CPU.
pub(crate) const READS: u32 = 1000;

/// After so many that entered the kernel a CPU has said what it has to say.
const ENOUGH: u32 = 100;

/// Where a read is answered, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: Place,
    pub(crate) evidence: Evidence,
}

/// What it takes to find out.
pub(crate) struct Prover<'a> {
    /// None if there is nothing to find out.
    pub(crate) method: Option<Method>,
    pub(crate) routes: &'a Routes,
    /// None if the kernel does not tell which there are.
    pub(crate) cpus: Option<Cpus>,
    /// Nanoseconds of a call that is known to enter the kernel; none where time says nothing, under an emulator.
    pub(crate) system_call: Option<f64>,
}

impl Prover<'_> {
    /// Finds out where a read is answered. What it costs says it where nothing better does.
    pub(crate) fn prove(&self, read: Read, speed: Option<Speed>) -> Finding {
        if let Err(error) = read.in_kernel() {
            return Finding { place: Place::Kernel, evidence: Evidence::Refused(error) };
        }
        if let Route::Syscall { reason, .. } = *read.route(self.routes) {
            return Finding { place: Place::Kernel, evidence: Evidence::Routed(reason) };
        }
        let count = read.entry(self.routes).and_then(|entry| match self.method {
            Some(Method::Dispatch) => dispatch::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Seccomp) => seccomp::count(entry, self.cpus.as_ref()).ok(),
            Some(Method::Timing) | None => None,
        });
        match count {
            Some(count) => {
                let place = if count.entered == 0 { Place::UserSpace } else { Place::Kernel };
                Finding { place, evidence: Evidence::Proved(count) }
            }
            None => self.guess(speed),
        }
    }

    /// A vDSO that enters the kernel costs as much as another way into it, or more.
    fn guess(&self, speed: Option<Speed>) -> Finding {
        match (speed, self.system_call) {
            (Some(speed), Some(system_call)) => {
                let much = 0.6 * speed.system_call.min(system_call);
                let place = if speed.here < much { Place::UserSpace } else { Place::Kernel };
                Finding { place, evidence: Evidence::Likely }
            }
            _ => Finding { place: Place::Unknown, evidence: Evidence::None },
        }
    }
}

/// Makes the reads on each CPU in turn, or where it is if there is no telling which there are. `entered` makes one, and
/// says whether it entered the kernel.
fn on_each_cpu(
    entry: Entry,
    cpus: Option<&Cpus>,
    mut entered: impl FnMut(Entry) -> bool,
) -> io::Result<Count> {
    let mut count = Count::default();
    let mut on_this = || {
        let before = count.entered;
        for _ in 0..READS {
            count.reads += 1;
            count.entered += u32::from(entered(entry));
            if count.entered - before == ENOUGH {
                break;
            }
        }
    };
    match cpus {
        None => on_this(),
        Some(cpus) => {
            for cpu in cpus.numbers() {
                cpus.pin(cpu)?;
                on_this();
            }
        }
    }
    Ok(count)
}

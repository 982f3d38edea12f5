//! Why the reads are answered where they are.

use vdso_time::vdso::LocateError;
use vdso_time::{ClockId, Errno, FallbackReason};

use super::machine::{Machine, Reader, Supervisor, clock_source};
use super::proof::{Evidence, Finding, Place};
use super::read::Read;
use super::report::Row;

/// Why the reads are answered where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// All of them stay in user space.
    Fine,
    /// They take no longer than reads that do.
    LikelyFine,
    /// They stay in user space, and cost as much as a system call.
    Slow,
    /// Nothing proves either.
    CannotTell,
    HiddenByValgrind,
    Emulated,
    NoVdso(LocateError),
    /// The kernel found no timer that user space can read (arm).
    BlankedNames,
    /// The vDSO's function is missing, or unfit.
    NoFunction(FallbackReason),
    /// The kernel has no such clock, or a sandbox denies it.
    Refused(Errno),
    /// No vDSO has the clock, or not this kernel's.
    ClockNotServed,
    /// The clock source is one that only the kernel can read.
    ClockSource,
    /// And it is that because the kernel dropped the time-stamp counter.
    TscDropped,
    /// The hypervisor does not say that the counter is the same on all CPUs.
    UnstableHypervisorClock,
    /// The generic timer needs a workaround that the vDSO does not have.
    TimerErratum,
    /// The clock source can be read in user space, and is not.
    Unexplained,
    /// Some of the reads of a clock entered the kernel, and some did not.
    Sometimes,
    /// It is not the vDSO that entered the kernel.
    Elsewhere,
    /// This architecture's clocks are libc's affair.
    Libc,
}

impl Cause {
    /// As the JSON has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::LikelyFine => "likely-fine",
            Self::Slow => "slow",
            Self::CannotTell => "cannot-tell",
            Self::HiddenByValgrind => "hidden-by-valgrind",
            Self::Emulated => "emulated",
            Self::NoVdso(_) => "no-vdso",
            Self::BlankedNames => "blanked-names",
            Self::NoFunction(_) => "no-function",
            Self::Refused(_) => "refused",
            Self::ClockNotServed => "clock-not-served",
            Self::ClockSource => "clock-source",
            Self::TscDropped => "tsc-dropped",
            Self::UnstableHypervisorClock => "unstable-hypervisor-clock",
            Self::TimerErratum => "timer-erratum",
            Self::Unexplained => "unexplained",
            Self::Sometimes => "sometimes",
            Self::Elsewhere => "elsewhere",
            Self::Libc => "libc",
        }
    }
}

const MONOTONIC: Read = Read::ClockGettime(ClockId::MONOTONIC);

/// What the verdict is reached from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) rows: &'a [Row],
}

impl Facts<'_> {
    fn row(&self, read: Read) -> Option<&Row> {
        self.rows.iter().find(|row| row.read == read)
    }

    fn finding(&self, read: Read) -> Option<Finding> {
        self.row(read).map(|row| row.finding)
    }

    /// Whether a read costs so much of a system call that it might as well be one.
    fn is_slow(&self, read: Read) -> bool {
        self.row(read).and_then(|row| row.speed?.ratio()).is_some_and(|ratio| ratio > 0.8)
    }

    pub(crate) fn in_user_space(&self, read: Read) -> bool {
        self.finding(read).is_some_and(|finding| finding.place == Place::UserSpace)
    }

    /// The first of the reads that is not known to stay in user space: one that enters the kernel before one of
    /// which nothing is known.
    fn worst(&self, reads: &[Read]) -> Option<(Read, Finding)> {
        let found = |place| {
            let mut all = reads.iter().filter_map(|read| Some((*read, self.finding(*read)?)));
            all.find(|(_, finding)| finding.place == place)
        };
        found(Place::Kernel).or_else(|| found(Place::Unknown))
    }

    /// Why one read enters the kernel, or is not known not to.
    fn why(&self, read: Read, finding: Finding) -> Cause {
        let supervised_by = |supervisor| self.machine.supervisor == Some(supervisor);
        match finding.evidence {
            Evidence::Refused(error) => Cause::Refused(error),
            _ if supervised_by(Supervisor::Valgrind) => Cause::HiddenByValgrind,
            _ if supervised_by(Supervisor::Qemu) || supervised_by(Supervisor::Emulator) => Cause::Emulated,
            Evidence::Routed(FallbackReason::BlankedNames) => Cause::BlankedNames,
            Evidence::Routed(FallbackReason::NoVdso(error)) => Cause::NoVdso(error),
            Evidence::Routed(reason) => Cause::NoFunction(reason),
            Evidence::Libc => Cause::Libc,
            Evidence::None => Cause::CannotTell,
            Evidence::Proved(count) if count.entered < count.reads => Cause::Sometimes,
            Evidence::Proved(count) if count.outside > 0 => Cause::Elsewhere,
            // Whatever else the vDSO can do, it does not do this.
            _ if !read.reads_clock_source() => Cause::ClockNotServed,
            _ if self.in_user_space(MONOTONIC) && read != MONOTONIC => Cause::ClockNotServed,
            _ => self.of_clock_source(),
        }
    }

    /// Why the vDSO, asked for the time by the clock source, asks the kernel.
    fn of_clock_source(&self) -> Cause {
        let Some(current) = &self.machine.clock_source else { return Cause::Unexplained };
        match clock_source(current).0 {
            Reader::AnyoneIfStable => Cause::UnstableHypervisorClock,
            Reader::Anyone if current == "arch_sys_counter" => Cause::TimerErratum,
            Reader::Anyone => Cause::Unexplained,
            Reader::Kernel | Reader::Unknown if self.machine.steady_tsc && !self.offers("tsc") => {
                Cause::TscDropped
            }
            Reader::Kernel | Reader::Unknown => Cause::ClockSource,
        }
    }

    fn offers(&self, source: &str) -> bool {
        self.machine.available.iter().any(|available| available == source)
    }
}

/// Why the reads are answered where they are, and a sentence that says what to do.
pub(crate) fn verdict(facts: &Facts<'_>, reads: &[Read]) -> (Cause, String) {
    let (subject, stays) = match reads {
        [] => return (Cause::Fine, "nothing was asked for.".into()),
        [one] => (one.to_string(), "stays"),
        [others @ .., last] => {
            let others: Vec<_> = others.iter().map(ToString::to_string).collect();
            (format!("{} and {last}", others.join(", ")), "stay")
        }
    };
    let proved = |read: &Read| {
        facts.finding(*read).is_some_and(|finding| matches!(finding.evidence, Evidence::Proved(_)))
    };
    match facts.worst(reads) {
        Some((read, finding)) => {
            let cause = facts.why(read, finding);
            (cause, facts.sentence(cause, read))
        }
        None if !reads.iter().all(proved) => {
            let sentence =
                format!("{subject} likely {stays} in user space: the timing says so, which is no proof.");
            (Cause::LikelyFine, sentence)
        }
        None => match reads.iter().find(|read| facts.is_slow(**read)) {
            Some(slow) => (Cause::Slow, facts.sentence(Cause::Slow, *slow)),
            None => (Cause::Fine, format!("{subject} {stays} in user space: nothing to do.")),
        },
    }
}

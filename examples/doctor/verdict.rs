//! One sentence that a person can act on.

use std::env::consts::ARCH;

use vdso_time::arch::Quirk;
use vdso_time::vdso::LocateError;
use vdso_time::{ClockId, Errno, Reason};

use super::machine::{CLOCK_SOURCE_FOLDER, Machine, Reader, Supervisor, clock_source};
use super::proof::{Evidence, Finding, Place};
use super::read::Read;

/// Why the reads are answered where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// All of them stay in user space.
    Fine,
    /// They take no longer than reads that do.
    LikelyFine,
    /// Nothing proves either.
    CannotTell,
    HiddenByValgrind,
    Emulated,
    NoVdso(LocateError),
    /// The kernel found no timer that user space can read (arm).
    BlankedNames,
    /// The vDSO's function is missing, or unfit.
    NoFunction(Reason),
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
}

impl Cause {
    /// As the JSON has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::LikelyFine => "likely-fine",
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
        }
    }
}

const MONOTONIC: Read = Read::ClockGettime(ClockId::MONOTONIC);

/// What the verdict is reached from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) findings: &'a [(Read, Finding)],
}

impl Facts<'_> {
    fn finding(&self, read: Read) -> Option<Finding> {
        self.findings.iter().find(|(found, _)| *found == read).map(|(_, finding)| *finding)
    }

    fn in_user_space(&self, read: Read) -> bool {
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
            _ if supervised_by(Supervisor::Qemu) => Cause::Emulated,
            Evidence::Routed(Reason::Unfit(Quirk::BlankedNames)) => Cause::BlankedNames,
            Evidence::Routed(Reason::NoVdso(error)) => Cause::NoVdso(error),
            Evidence::Routed(reason) => Cause::NoFunction(reason),
            Evidence::None => Cause::CannotTell,
            // Whatever else the vDSO can do, it does not do this.
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

    /// What to do about the clock source.
    fn remedy(&self) -> String {
        let readable = |source: &&String| clock_source(source).0 == Reader::Anyone;
        match self.machine.available.iter().find(readable) {
            Some(better) => format!(
                "as root, `echo {better} > {CLOCK_SOURCE_FOLDER}/current_clocksource`, \
                 and for good the kernel parameter clocksource={better}"
            ),
            None => self.meanwhile(),
        }
    }

    /// What is cheap all the same.
    fn meanwhile(&self) -> String {
        let coarse = self.in_user_space(Read::ClockGettime(ClockId::MONOTONIC_COARSE));
        match (self.in_user_space(Read::Time), coarse) {
            (true, true) => {
                "time() and the coarse clocks stay in user space, where a timer tick is exact enough"
            }
            (true, false) => "time() stays in user space",
            (false, true) => "the coarse clocks stay in user space, where a timer tick is exact enough",
            (false, false) => "read the clock less often",
        }
        .into()
    }
}

/// Why the reads are answered where they are, and a sentence that says what to do.
pub(crate) fn verdict(facts: &Facts<'_>, reads: &[Read]) -> (Cause, String) {
    let (subject, stays) = match reads {
        [one] => (one.to_string(), "stays"),
        _ => (reads.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "), "stay"),
    };
    let proved = |read: &Read| {
        facts.finding(*read).is_some_and(|finding| matches!(finding.evidence, Evidence::Proved(_)))
    };
    match facts.worst(reads) {
        Some((read, finding)) => {
            let cause = facts.why(read, finding);
            (cause, facts.sentence(cause, read))
        }
        None if reads.iter().all(proved) => {
            (Cause::Fine, format!("{subject} {stays} in user space: nothing to do."))
        }
        None => (
            Cause::LikelyFine,
            format!(
                "{subject} likely {stays} in user space, by the time taken; nothing here can catch a system call."
            ),
        ),
    }
}

impl Facts<'_> {
    /// What is to be said of a read that does not, or may not, stay in user space.
    fn sentence(&self, cause: Cause, read: Read) -> String {
        let source = self.machine.clock_source.as_deref().unwrap_or("unknown");
        let (_, what) = clock_source(source);
        match cause {
            Cause::HiddenByValgrind => {
                "valgrind hides the vDSO, so every read is a system call here: run this without valgrind."
                    .into()
            }
            Cause::Emulated => {
                "QEMU's user-mode emulation answers, not a kernel's vDSO: where the clock is read, \
                                and what that costs, is to be seen on the machine itself."
                    .into()
            }
            Cause::NoVdso(error) => {
                format!("every read is a system call, for there is {error}: {}.", self.who_took_it(error))
            }
            Cause::BlankedNames => format!(
                "every read is a system call, for the kernel found no timer that user space can read (its clock \
                 source is {source}) and blanked the names in its vDSO: have the device tree offer the generic timer, as \
                 arm,armv7-timer without arm,cpu-registers-not-fw-configured."
            ),
            Cause::NoFunction(reason) => {
                let release = &self.machine.release;
                format!(
                    "{read} is a system call, for {reason} (Linux {release}): a newer kernel may have it."
                )
            }
            Cause::Refused(error) => {
                format!("{read} cannot be read: the kernel, or a sandbox, says {error}.")
            }
            Cause::CannotTell => {
                format!("there is no telling where {read} is answered: nothing here can catch a system call.")
            }
            Cause::ClockNotServed => format!(
                "{read} enters the kernel, for this kernel's vDSO does not have that clock: {}.",
                substitute(read)
            ),
            Cause::ClockSource => format!(
                "{read} enters the kernel, for the clock source is {source} ({what}), which the vDSO cannot read: {}.",
                self.remedy()
            ),
            Cause::TscDropped => format!(
                "{read} enters the kernel, which does not trust this CPU's TSC and reads {source} ({what}) instead: `dmesg | \
                 grep -i -e tsc -e clocksource` says why; until that is mended, {}.",
                self.meanwhile()
            ),
            Cause::UnstableHypervisorClock => format!(
                "{read} enters the kernel, for the clock source is {source} and the hypervisor does not say that the TSC is the \
                 same on all CPUs: {}.",
                self.remedy()
            ),
            Cause::TimerErratum => format!(
                "{read} enters the kernel, which works around an erratum of the timer behind {source} (`dmesg | grep -i \
                 arch_timer` names it): {}.",
                self.meanwhile()
            ),
            Cause::Unexplained if self.machine.supervisor.is_some() => {
                let supervisor = self.machine.supervisor.map_or("", Supervisor::name);
                format!(
                    "{read} enters the kernel, for so does the vDSO of {supervisor}: {}.",
                    self.meanwhile()
                )
            }
            Cause::Unexplained | Cause::Fine | Cause::LikelyFine => format!(
                "{read} enters the kernel, and the clock source ({source}) does not say why: {}.",
                self.meanwhile()
            ),
        }
    }

    /// Where to look for the vDSO.
    fn who_took_it(&self, error: LocateError) -> String {
        let mut told = self.machine.command_line.split_whitespace();
        match told.find(|parameter| parameter.starts_with("vdso=") || parameter.starts_with("vdso32=")) {
            _ if error != LocateError::Absent => "see what this process was started by".into(),
            Some(parameter) => format!("boot without {parameter}"),
            None => match ARCH {
                "x86" => "see the sysctls vm.vdso_enabled and abi.vsyscall32",
                "arm" => "see the kernel's CONFIG_VDSO, or CONFIG_COMPAT_VDSO if it is a 64-bit one",
                _ => "see how the kernel was built, and what runs this process",
            }
            .into(),
        }
    }
}

/// A clock that does as well, for most.
fn substitute(read: Read) -> &'static str {
    match read.clock() {
        Some(ClockId::REALTIME_ALARM) => "CLOCK_REALTIME says the same",
        Some(ClockId::BOOTTIME_ALARM) => "CLOCK_BOOTTIME says the same",
        Some(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) => "no vDSO has CPU times",
        _ => "CLOCK_MONOTONIC stays in user space",
    }
}

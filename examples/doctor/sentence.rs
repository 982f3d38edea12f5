//! What the verdict says: one sentence that a person can act on.

use std::env::consts::ARCH;

use vdso_time::ClockId;
use vdso_time::vdso::LocateError;

use super::machine::{CLOCK_SOURCE_FOLDER, Reader, Supervisor, clock_source};
use super::proof::Evidence;
use super::read::Read;
use super::verdict::{Cause, Facts};

impl Facts<'_> {
    /// What is to be said of a read that does not, or may not, stay in user space.
    pub(crate) fn sentence(&self, cause: Cause, read: Read) -> String {
        let source = self.machine.clock_source.as_deref().unwrap_or("unknown");
        let (_, what) = clock_source(source);
        let enters = if self.likely(read) { "likely enters the kernel" } else { "enters the kernel" };
        match cause {
            Cause::HiddenByValgrind => {
                "valgrind hides the vDSO, so every read is a system call here: run this without valgrind."
                    .into()
            }
            Cause::Emulated => "an emulator answers, not a kernel's vDSO: where the clock is read, \
                                and what that costs, is to be seen on the machine itself."
                .into(),
            Cause::NoVdso(error) => {
                format!("every read is a system call ({error}): {}.", self.who_took_it(error))
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
                format!("{read} is not answered: the kernel, or a sandbox, says {error}.")
            }
            Cause::CannotTell => {
                format!(
                    "there is no telling where {read} is answered: no system call was caught, and time does not say."
                )
            }
            Cause::Libc => {
                format!("{read} is libc's affair on {ARCH}, for which this crate has no table of the vDSO.")
            }
            Cause::Sometimes => format!(
                "{read} enters the kernel at times: the clock source changed meanwhile, or serves not every CPU; look again."
            ),
            Cause::Elsewhere => {
                format!("{read} enters the kernel, but not by the vDSO: another's code stands in its place.")
            }
            Cause::Slow => format!(
                "{read} stays in user space, yet costs as much as a system call: a hypervisor that traps the reading of the \
                 counter, perhaps; {}.",
                self.meanwhile()
            ),
            Cause::ClockNotServed => format!(
                "{read} {enters}, for this kernel's vDSO asks the kernel for it: {}.",
                substitute(read)
            ),
            Cause::ClockSource => format!(
                "{read} {enters}, for the clock source is {source} ({what}), which the vDSO cannot read: {}.",
                self.remedy()
            ),
            Cause::TscDropped => format!(
                "{read} {enters}, which does not trust this CPU's TSC and reads {source} ({what}) instead: `dmesg | \
                 grep -i -e tsc -e clocksource` says why; until that is mended, {}.",
                self.meanwhile()
            ),
            Cause::UnstableHypervisorClock => format!(
                "{read} {enters}, for the clock source is {source} and the hypervisor does not say that the TSC is the \
                 same on all CPUs: {}.",
                self.remedy()
            ),
            Cause::TimerErratum => format!(
                "{read} {enters}, which works around an erratum of the timer behind {source} (`dmesg | grep -i \
                 arch_timer` names it): {}.",
                self.meanwhile()
            ),
            Cause::Unexplained if self.machine.supervisor.is_some() => {
                let supervisor = self.machine.supervisor.map_or("", Supervisor::name);
                format!("{read} {enters}, for so does the vDSO of {supervisor}: {}.", self.meanwhile())
            }
            Cause::Unexplained | Cause::Fine | Cause::LikelyFine => format!(
                "{read} {enters}, and the clock source ({source}) does not say why: {}.",
                self.meanwhile()
            ),
        }
    }

    /// Whether nothing but time says where a read is answered.
    fn likely(&self, read: Read) -> bool {
        self.rows.iter().any(|row| row.read == read && row.finding.evidence == Evidence::Likely)
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

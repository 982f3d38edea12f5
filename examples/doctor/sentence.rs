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
            Cause::Emulated => "an emulator answers these reads, not a kernel's vDSO: run the doctor on the \
                                machine itself to see where the clock is read, and what that costs."
                .into(),
            Cause::NoVdso(error) => {
                format!("every read is a system call ({error}): {}.", self.who_took_it(error))
            }
            Cause::BlankedNames => format!(
                "every read is a system call, because the kernel found no timer that user space can read (its \
                 clock source is {source}) and blanked the names in its vDSO: let the device tree describe the \
                 generic timer, as arm,armv7-timer without arm,cpu-registers-not-fw-configured."
            ),
            Cause::NoFunction(reason) => {
                let release = &self.machine.release;
                format!(
                    "{read} is a system call ({reason}; Linux {release}): a newer kernel may have the function."
                )
            }
            Cause::Refused(error) => {
                format!("{read} is not answered: the kernel or a sandbox returns {error}.")
            }
            Cause::CannotTell => format!(
                "it is unknown where {read} is answered: no system call was caught, and timing is inconclusive."
            ),
            Cause::Libc => {
                format!("libc answers {read} on {ARCH}: this crate has no table of that architecture's vDSO.")
            }
            Cause::Sometimes => format!(
                "{read} sometimes enters the kernel: the clock source changed meanwhile, or not every CPU can \
                 read it; run the doctor again."
            ),
            Cause::Elsewhere => {
                format!("{read} enters the kernel, but not through the vDSO: other code stands in its place.")
            }
            Cause::Slow => format!(
                "{read} stays in user space but costs as much as a system call, perhaps because a hypervisor \
                 traps reads of the counter: {}.",
                self.meanwhile()
            ),
            Cause::ClockNotServed => format!(
                "{read} {enters}, because this kernel's vDSO asks the kernel for it: {}.",
                substitute(read)
            ),
            Cause::ClockSource => format!(
                "{read} {enters}, because the vDSO cannot read the clock source {source} ({what}): {}.",
                self.remedy()
            ),
            Cause::TscDropped => format!(
                "{read} {enters}, which does not trust this CPU's TSC and reads {source} ({what}) instead: \
                 `dmesg | grep -i -e tsc -e clocksource` shows why; until that is fixed, {}.",
                self.meanwhile()
            ),
            Cause::UnstableHypervisorClock => format!(
                "{read} {enters}, because the clock source is {source} and the hypervisor does not say that \
                 the TSC is the same on all CPUs: {}.",
                self.remedy()
            ),
            Cause::TimerErratum => format!(
                "{read} {enters}, which works around an erratum of the timer behind {source} (`dmesg | grep \
                 -i arch_timer` names it): {}.",
                self.meanwhile()
            ),
            Cause::Unexplained if self.machine.supervisor.is_some() => {
                let supervisor = self.machine.supervisor.map_or("", Supervisor::name);
                format!("{read} {enters}, because the vDSO of {supervisor} does: {}.", self.meanwhile())
            }
            Cause::Unexplained | Cause::Fine | Cause::LikelyFine => format!(
                "{read} {enters}, and the clock source ({source}) does not explain it: {}.",
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
                "run `echo {better} > {CLOCK_SOURCE_FOLDER}/current_clocksource` as root, and boot with \
                 clocksource={better} to keep it"
            ),
            None => self.meanwhile(),
        }
    }

    /// What is cheap all the same.
    fn meanwhile(&self) -> String {
        let coarse = self.in_user_space(Read::ClockGettime(ClockId::MONOTONIC_COARSE));
        match (self.in_user_space(Read::Time), coarse) {
            (true, true) => {
                "where a timer tick is exact enough, use time() or the coarse clocks, which stay in user space"
            }
            (true, false) => "where a second is exact enough, use time(), which stays in user space",
            (false, true) => {
                "where a timer tick is exact enough, use the coarse clocks, which stay in user space"
            }
            (false, false) => "read the clock less often",
        }
        .into()
    }

    /// Where to look for the vDSO.
    fn who_took_it(&self, error: LocateError) -> String {
        let mut told = self.machine.command_line.split_whitespace();
        match told.find(|parameter| parameter.starts_with("vdso=") || parameter.starts_with("vdso32=")) {
            _ if error != LocateError::Absent => "see which program started this process".into(),
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

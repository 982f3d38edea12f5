//! Why the reads are answered where they are, and a sentence that says what to do.

use std::env::consts::ARCH;

use vdso_time::LocateError;
use vdso_time::{ClockId, FallbackReason};

use crate::call::Call;
use crate::json::{json, kebab_case};
use crate::platform::{CLOCK_SOURCE_FOLDER, Platform, Reader, Supervisor, clock_source, is_name};
use crate::proof::{Check, Evidence, Location, Measurement};

#[cfg(test)]
mod tests;

/// Why the reads are answered where they are. What to do differs from cause to cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// All reads stay in user space.
    Fine,
    /// They stay in user space but cost as much as a system call.
    Slow,
    /// Nothing is known: nothing can be proved here, or libc answers on this architecture.
    CannotTell,
    /// An emulator answers, or valgrind, which hides the vDSO.
    Emulated,
    /// The process has no vDSO.
    NoVdso,
    /// The kernel found no timer that user space can read (arm).
    BlankedNames,
    /// The vDSO's function is missing, or must not be called.
    NoFunction,
    /// The kernel has no such clock, or a sandbox denies it.
    Refused,
    /// No vDSO answers for this clock, or this kernel's does not.
    ClockNotServed,
    /// Only the kernel can read the clock source.
    ClockSource,
    /// The kernel does not trust the CPU's counter.
    CounterDistrusted,
    /// The kernel started a moment ago, and still measures the CPU's counter.
    NotYet,
    /// The vDSO of gVisor, WSL 1 or user-mode Linux makes the system call.
    GuestKernel,
    /// User space can read the clock source, but the vDSO does not.
    Unexplained,
    /// Some reads of a clock entered the kernel, and some did not.
    Sometimes,
}

json!(Cause, |cause| kebab_case(cause));

const MONOTONIC: Call = Call::ClockGettime(ClockId::MONOTONIC);

/// A read that costs more than this share of a system call is slow.
const SLOW: f64 = 0.8;

/// Returns the cause and the sentence for these reads.
pub(crate) fn verdict(platform: &Platform, check: &Check, reads: &[Call]) -> (Cause, String) {
    let facts = Facts {
        platform,
        seen: check,
    };
    let (subject, stays) = match reads {
        [] => return (Cause::Fine, "no read was named.".into()),
        [one] => (one.to_string(), "stays"),
        [others @ .., last] => {
            let others: Vec<_> = others.iter().map(ToString::to_string).collect();
            (format!("{} and {last}", others.join(", ")), "stay")
        }
    };
    let all: Vec<_> = reads
        .iter()
        .filter_map(|read| facts.measurement(*read))
        .collect();
    let at = |location| {
        all.iter()
            .filter(move |measurement| measurement.location == location)
    };
    // A refused read says nothing about the others.
    let entering =
        at(Location::Kernel).find(|measurement| measurement.evidence != Evidence::Refused);
    if let Some(worst) =
        entering.or_else(|| at(Location::Kernel).chain(at(Location::Unknown)).next())
    {
        let cause = facts.cause(worst);
        return (cause, facts.sentence(cause, worst));
    }
    match all
        .iter()
        .find(|measurement| measurement.ratio().is_some_and(|ratio| ratio > SLOW))
    {
        Some(slow) => (Cause::Slow, facts.sentence(Cause::Slow, slow)),
        None => (
            Cause::Fine,
            format!("{subject} {stays} in user space: nothing to do."),
        ),
    }
}

#[derive(Clone, Copy)]
struct Facts<'a> {
    platform: &'a Platform,
    seen: &'a Check,
}

impl<'a> Facts<'a> {
    fn measurement(self, read: Call) -> Option<&'a Measurement> {
        self.seen
            .measurements
            .iter()
            .find(|measurement| measurement.call == read)
    }

    fn is_in_user_space(self, read: Call) -> bool {
        self.measurement(read)
            .is_some_and(|measurement| measurement.location == Location::UserSpace)
    }

    /// Returns why one read enters the kernel, or may.
    fn cause(self, measurement: &Measurement) -> Cause {
        let supervisor = self.platform.supervisor;
        match (measurement.evidence, measurement.reason) {
            (Evidence::Refused, _) => Cause::Refused,
            _ if supervisor.is_some_and(Supervisor::emulates) => Cause::Emulated,
            (_, Some(FallbackReason::BlankedNames)) => Cause::BlankedNames,
            (_, Some(FallbackReason::NoVdso(_))) => Cause::NoVdso,
            (_, Some(_)) => Cause::NoFunction,
            (Evidence::Libc | Evidence::None, _) => Cause::CannotTell,
            _ if is_in_no_vdso(measurement.call) => Cause::ClockNotServed,
            _ if self.platform.is_settling() => Cause::NotYet,
            (Evidence::Proved, _) if measurement.entered < measurement.calls => Cause::Sometimes,
            // The vDSO reads other clocks, so it does not have this one.
            _ if self.is_in_user_space(MONOTONIC) => Cause::ClockNotServed,
            // Its clock source and flags are those of the kernel below, or mean something else.
            _ if supervisor.is_some() => Cause::GuestKernel,
            _ if !measurement.call.reads_clock_source() => Cause::ClockNotServed,
            _ => self.cause_in_clock_source(),
        }
    }

    /// Returns why the vDSO asks the kernel for the time of the clock source.
    fn cause_in_clock_source(self) -> Cause {
        let Some(current) = &self.platform.clock_source.current else {
            return Cause::Unexplained;
        };
        match clock_source(current).0 {
            Reader::VdsoIfStable => Cause::ClockSource,
            // The vDSO has no workaround for an erratum of the timer.
            Reader::Vdso if current == "arch_sys_counter" => Cause::CounterDistrusted,
            Reader::Vdso => Cause::Unexplained,
            _ if self.better().is_some() || current == HYPERV_MSR => Cause::ClockSource,
            // Every x86 CPU has a counter. The kernel offers it unless it found that it is wrong.
            _ if ["x86", "x86_64"].contains(&self.platform.architecture) => {
                Cause::CounterDistrusted
            }
            _ => Cause::ClockSource,
        }
    }

    fn sentence(self, cause: Cause, measurement: &Measurement) -> String {
        let read = measurement.call;
        let source = self
            .platform
            .clock_source
            .current
            .as_deref()
            .unwrap_or("unknown");
        let what = clock_source(source).1;
        let reason = measurement
            .reason
            .map_or(String::new(), |reason| reason.to_string());
        let supervisor = self.platform.supervisor.map_or("", Supervisor::name);
        let meanwhile = self.meanwhile();
        let text = match cause {
            Cause::Emulated => format!(
                "{supervisor} answers these reads, not the kernel's vDSO: run the doctor without {supervisor}"
            ),
            Cause::NoVdso => {
                format!(
                    "every read is a system call ({reason}): {}",
                    self.where_to_look(measurement.reason)
                )
            }
            Cause::BlankedNames => format!(
                "every read is a system call, because the kernel found no timer that user space can read (its \
                 clock source is {source}) and blanked the names in its vDSO: describe the generic timer in the \
                 device tree as arm,armv7-timer, and remove arm,cpu-registers-not-fw-configured only if the \
                 firmware sets the timer's registers on every CPU"
            ),
            Cause::NoFunction => format!(
                "{read} is a system call ({reason}; Linux {}): a newer kernel may have the function",
                self.platform.kernel
            ),
            Cause::Refused => format!(
                "{read} fails: the kernel or a sandbox returns {}",
                measurement.error.as_deref().unwrap_or_default()
            ),
            Cause::CannotTell if measurement.evidence == Evidence::Libc => {
                format!("libc answers {read}: vdso-time has no table for the vDSO of {ARCH}")
            }
            Cause::CannotTell => {
                let why = self
                    .seen
                    .unproved
                    .as_deref()
                    .unwrap_or("no function of the vDSO can be called");
                format!("it is unknown where {read} is answered: {why}")
            }
            Cause::Sometimes => format!(
                "{read} sometimes enters the kernel: the clock source changed, or not every CPU can read it: \
                 run the doctor again"
            ),
            Cause::Slow => format!(
                "{read} stays in user space but costs as much as a system call, perhaps because a hypervisor \
                 traps reads of the counter: {meanwhile}"
            ),
            Cause::ClockNotServed => {
                format!(
                    "{read} enters the kernel, because this kernel's vDSO does not have it: {}",
                    self.substitute(read)
                )
            }
            Cause::ClockSource => format!(
                "{read} enters the kernel, because the vDSO cannot read the clock source {source} ({what}): {}",
                self.remedy()
            ),
            Cause::CounterDistrusted => {
                format!(
                    "{read} enters the kernel, because the kernel {}",
                    self.distrust(&format!("{source} ({what})"))
                )
            }
            Cause::NotYet => format!(
                "{read} enters the kernel, perhaps not for long: this kernel started less than five seconds ago and may \
                 still be measuring the CPU's counter. Run the doctor again in some seconds"
            ),
            Cause::GuestKernel => {
                format!(
                    "{read} enters the kernel, because the vDSO of {supervisor} does: {meanwhile}"
                )
            }
            Cause::Unexplained | Cause::Fine => {
                format!(
                    "{read} enters the kernel, and the clock source ({source}) does not explain it: {meanwhile}"
                )
            }
        };
        text + "."
    }

    /// Returns why the kernel reads `source` in place of the CPU's counter, and what to do.
    fn distrust(self, source: &str) -> String {
        let exclusions: Vec<_> = self
            .parameters()
            .filter(|word| EXCLUSIONS.contains(word))
            .collect();
        let choices: Vec<_> = self.parameters().filter(is_choice).collect();
        if !exclusions.is_empty() {
            // A choice acts only where the counter can be chosen, so it comes second.
            let (why, all) = (
                exclusions.join(" and "),
                [exclusions, choices].concat().join(" and "),
            );
            return format!(
                "was booted with {why} and reads {source}: boot without {all}, unless that was set because the \
                 counter is wrong; in that case, {}",
                self.meanwhile()
            );
        }
        let host = match self.platform {
            Platform {
                is_virtual: true,
                has_steady_tsc: false,
                ..
            } => self.host_must(),
            _ => String::new(),
        };
        let until = if choices.is_empty() {
            "until that is fixed".into()
        } else {
            // The kernel could not obey it. It will, when the counter is on offer.
            let choices = choices.join(" and ");
            format!(
                "when that is fixed, also boot without {choices}, which is not the reason; until then"
            )
        };
        format!(
            "does not trust this CPU's counter and reads {source}: {SHOW_WHY} shows why{host}; {until}, {}",
            self.meanwhile()
        )
    }

    /// Returns what only the operator of the host can change.
    fn host_must(self) -> String {
        let settings = match self.platform.clock_source.current.as_deref() {
            Some("xen") => "Xen: `nomigrate=1`",
            _ => {
                "QEMU, and args of Proxmox VE: `-cpu host,+invtsc`; libvirt: \
                 `<feature policy='require' name='invtsc'/>`; a cloud: another instance type"
            }
        };
        format!(
            "; this is a virtual machine, and its host does not offer an invariant counter ({settings})"
        )
    }

    /// Returns what to do about the clock source.
    fn remedy(self) -> String {
        let current = self.platform.clock_source.current.as_deref();
        let choice = self.parameters().find(is_choice);
        match (current, self.better()) {
            (Some("kvm-clock"), _)
                if self.parameters().any(|word| word == NO_KVMCLOCK_VSYSCALL) =>
            {
                format!("boot without {NO_KVMCLOCK_VSYSCALL}")
            }
            // KVM scales the same counter, so the guest's `tsc` is no better.
            (Some("kvm-clock"), _) => format!(
                "the host does not promise a stable counter, and only the host can change that: repair its clock \
                 source; `tsc` in this guest may be wrong, too; until then, {}",
                self.meanwhile()
            ),
            (_, Some(better)) => {
                let unless = match choice {
                    // Another host may have another counter.
                    _ if current == Some("xen") => "unless this guest migrates, ".into(),
                    Some(choice) => {
                        format!("unless {choice} was set because the counter is wrong, ")
                    }
                    None => String::new(),
                };
                let instead =
                    choice.map_or(String::new(), |choice| format!(" instead of {choice}"));
                // Two commands, because each has to fit in a line.
                format!(
                    "{unless}run `cd {CLOCK_SOURCE_FOLDER}` and `echo {better} | sudo tee current_clocksource` outside \
                     of any container, and reboot with clocksource={better}{instead} to keep it"
                )
            }
            (Some(HYPERV_MSR), None) => format!(
                "Hyper-V does not offer its page with the scale of the counter, and only the host can change \
                 that (QEMU: `hv-time`); until then, {}",
                self.meanwhile()
            ),
            (Some("xen"), None) => format!(
                "{SHOW_WHY} shows why the counter is not on offer{}; until then, {}",
                self.host_must(),
                self.meanwhile()
            ),
            (_, None) => self.meanwhile().into(),
        }
    }

    /// Returns the clock source on offer that the vDSO can read, or else may be able to read.
    fn better(self) -> Option<&'a str> {
        let sources = &self.platform.clock_source;
        let others = || {
            sources
                .available
                .iter()
                .filter(|source| Some(*source) != sources.current.as_ref())
        };
        // The kernel drops this one when it has measured `tsc`.
        let mut lasting = others().filter(|source| *source != "tsc-early");
        let readable = others().find(|source| clock_source(source).0 == Reader::Vdso);
        readable
            .or_else(|| lasting.find(|source| clock_source(source).0 == Reader::VdsoIfStable))
            .map(|name| &**name)
    }

    /// Returns the kernel's parameters (kernel-parameters.txt), without those that a terminal would
    /// obey.
    fn parameters(self) -> impl Iterator<Item = &'a str> {
        self.platform
            .command_line
            .split_whitespace()
            .filter(|word| is_name(word))
    }

    /// Returns which reads are cheap all the same.
    fn meanwhile(self) -> &'static str {
        if Call::COARSE
            .into_iter()
            .all(|read| self.is_in_user_space(read))
        {
            "if the timer tick is precise enough, use time() or the coarse clocks, which stay in user space"
        } else {
            "read the clock less often"
        }
    }

    /// Returns where to look for the missing vDSO.
    fn where_to_look(self, reason: Option<FallbackReason>) -> String {
        let architecture = self.platform.architecture;
        // vdso32 is about 32-bit programs (arch/x86/entry/vdso/vdso32-setup.c).
        let removes =
            |word: &&str| *word == "vdso=0" || (*word == "vdso32=0" && architecture == "x86");
        match self.parameters().find(removes) {
            _ if reason != Some(FallbackReason::NoVdso(LocateError::Absent)) => {
                "check which program started this process".into()
            }
            Some(parameter) => format!("boot without {parameter}"),
            None => match architecture {
                "x86" => "check the sysctls vm.vdso_enabled and abi.vsyscall32",
                "arm" => "check the kernel's CONFIG_VDSO, or CONFIG_COMPAT_VDSO of a 64-bit kernel",
                _ => "check how the kernel was built, and what runs this process",
            }
            .into(),
        }
    }

    /// Returns what to use in place of a clock that the vDSO does not have.
    fn substitute(self, read: Call) -> &'static str {
        match read.clock() {
            Some(ClockId::REALTIME_ALARM | ClockId::BOOTTIME_ALARM) => {
                "use the clock without _ALARM, which has the same time"
            }
            Some(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) => "no vDSO has CPU times",
            Some(ClockId::BOOTTIME) if self.is_in_user_space(MONOTONIC) => {
                "if suspended time need not count, use CLOCK_MONOTONIC, which stays in user space"
            }
            Some(ClockId::MONOTONIC_RAW) if self.is_in_user_space(MONOTONIC) => {
                "if NTP may change the rate, use CLOCK_MONOTONIC, which stays in user space"
            }
            _ => "a newer kernel's vDSO may have it",
        }
    }
}

/// Returns whether no kernel's vDSO answers a read.
fn is_in_no_vdso(read: Call) -> bool {
    let clocks = [
        ClockId::PROCESS_CPUTIME,
        ClockId::THREAD_CPUTIME,
        ClockId::REALTIME_ALARM,
        ClockId::BOOTTIME_ALARM,
    ];
    read.clock().is_some_and(|clock| clocks.contains(&clock))
}

/// Returns whether a parameter chooses a clock source that the vDSO cannot read.
fn is_choice(parameter: &&str) -> bool {
    let source = parameter.strip_prefix("clocksource=");
    source.is_some_and(|source| clock_source(source).0 != Reader::Vdso)
}

/// The parameters that exclude the CPU's counter, or kvm-clock, which is the same counter
/// (arch/x86/kernel/tsc.c, kvmclock.c and cpu/hypervisor.c).
const EXCLUSIONS: [&str; 4] = ["notsc", "tsc=unstable", "no-kvmclock", "nopv"];

/// Keeps the guest's vDSO from measurement kvm-clock (arch/x86/kernel/kvmclock.c).
const NO_KVMCLOCK_VSYSCALL: &str = "no-kvmclock-vsyscall";

const HYPERV_MSR: &str = "hyperv_clocksource_msr";

/// The command whose lines say why the kernel rejected a counter.
const SHOW_WHY: &str = "`sudo dmesg | grep -i -e tsc -e arch_timer -e clocksource`";

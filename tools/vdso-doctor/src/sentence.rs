//! The sentences of a verdict: the reason, and one sentence for each thing to do.

use std::env::consts::ARCH;

use vdso_time::{Cause, ClockId, FallbackReason, LocateError};

use crate::call::Call;
use crate::platform::{
    CLOCK_SOURCE_DIRECTORY, Platform, Reader, Supervisor, clock_source, is_name,
};
use crate::proof::{Evidence, Measurement};
use crate::verdict::Facts;

/// The boot parameters that keep the kernel from using the CPU's counter or `kvm-clock` as its
/// clock source (arch/x86/kernel/tsc.c, kvmclock.c and cpu/hypervisor.c). `kvm-clock` reads the
/// same counter, and scales it.
const EXCLUSIONS: [&str; 4] = ["notsc", "tsc=unstable", "no-kvmclock", "nopv"];

/// Keeps the guest's vDSO from reading kvm-clock (arch/x86/kernel/kvmclock.c).
const NO_KVMCLOCK_VSYSCALL: &str = "no-kvmclock-vsyscall";

impl<'a> Facts<'a> {
    /// Returns what a cause means for a call, and what to do.
    pub(crate) fn sentences(self, cause: Cause, measurement: &Measurement) -> String {
        let call = measurement.call;
        let reason = cause.reason();
        let supervisor = self.platform.supervisor.map_or("", Supervisor::name);
        let meanwhile = self.meanwhile();
        match cause {
            Cause::Emulated => format!(
                "{supervisor} answers {call}, not the kernel's vDSO. Run the doctor without {supervisor}."
            ),
            Cause::NoVdso | Cause::BlankedNames => self.without_function(cause, measurement),
            Cause::NoFunction => {
                let why = measurement
                    .reason
                    .map_or(String::new(), |why| why.to_string());
                let kernel = &self.platform.kernel;
                let advice = cause.advice();
                format!("{call} is a system call ({why}; Linux {kernel}). {advice}")
            }
            Cause::Refused => {
                let error = measurement.error.as_deref().unwrap_or("an error");
                let advice = cause.advice();
                format!("{call} fails with {error}, because {reason}. {advice}")
            }
            Cause::CannotTell => self.unknown(measurement),
            Cause::Sometimes => {
                format!(
                    "{call} sometimes enters the kernel, because {reason}. Run the doctor again."
                )
            }
            Cause::Slow => format!(
                "{call} stays in user space but costs as much as a system call, perhaps because {reason}. \
                 Meanwhile, {meanwhile}."
            ),
            Cause::ClockNotServed => self.not_served(call),
            Cause::ClockSource => {
                let source = self.source();
                let what = clock_source(source).1;
                let advice = self.remedy();
                format!("{call} enters the kernel, because {reason}, {source} ({what}). {advice}")
            }
            Cause::CounterDistrusted => {
                let why = self.distrust(reason);
                format!("{call} enters the kernel, because {why}")
            }
            Cause::NotYet => format!(
                "{call} enters the kernel, perhaps only for a few seconds, because {reason}. Run the doctor \
                 again after that."
            ),
            Cause::GuestKernel => format!(
                "{call} enters the kernel, because the vDSO of {supervisor} makes a system call. Meanwhile, \
                 {meanwhile}."
            ),
            Cause::Unexplained | Cause::Fine => {
                let source = self.source();
                format!(
                    "{call} enters the kernel, and the clock source ({source}) does not explain it. \
                     Meanwhile, {meanwhile}."
                )
            }
            // A later version of vdso-time may add causes. `Display` explains them.
            _ => format!("{call}: {cause}"),
        }
    }

    /// Returns why the vDSO has no function for any read.
    fn without_function(self, cause: Cause, measurement: &Measurement) -> String {
        if cause == Cause::BlankedNames {
            let source = self.source();
            let reason = cause.reason();
            let advice = cause.advice();
            return format!(
                "every read is a system call, because {reason} (its clock source is {source}). {advice}"
            );
        }
        let why = measurement
            .reason
            .map_or(String::new(), |why| why.to_string());
        let advice = self.where_to_look(measurement.reason);
        format!("every read is a system call, because {why}. {advice}.")
    }

    fn source(self) -> &'a str {
        let current = self.platform.clock_source.current.as_deref();
        current.unwrap_or("unknown")
    }

    fn unknown(self, measurement: &Measurement) -> String {
        let call = measurement.call;
        if measurement.evidence == Evidence::Libc {
            return format!("libc answers {call}: vdso-time has no table for the vDSO of {ARCH}.");
        }
        let why = self.check.unproved.as_deref();
        let why = why.unwrap_or("no function of the vDSO can be called");
        format!("it is unknown where {call} is answered: {why}.")
    }

    /// Returns why the vDSO does not answer for a clock, and what to use instead.
    fn not_served(self, call: Call) -> String {
        let has_monotonic = self.is_in_user_space(Call::ClockGettime(ClockId::MONOTONIC));
        let advice = match call.clock() {
            Some(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) => {
                return format!(
                    "{call} enters the kernel, because no vDSO implements the CPU-time clocks."
                );
            }
            Some(ClockId::REALTIME_ALARM | ClockId::BOOTTIME_ALARM) => {
                "Use the clock without _ALARM, which has the same time"
            }
            Some(ClockId::BOOTTIME) if has_monotonic => {
                "If suspended time need not count, use CLOCK_MONOTONIC, which stays in user space"
            }
            Some(ClockId::MONOTONIC_RAW) if has_monotonic => {
                "If NTP may change the rate, use CLOCK_MONOTONIC, which stays in user space"
            }
            _ => "A newer kernel's vDSO may have it",
        };
        let what = if call.clock().is_some() {
            "this clock"
        } else {
            "it"
        };
        format!(
            "{call} enters the kernel, because this kernel's vDSO does not implement {what}. {advice}."
        )
    }

    /// Returns why the kernel reads a clock source other than the CPU's counter, and what to do.
    fn distrust(self, reason: &str) -> String {
        let source = self.source();
        let what = clock_source(source).1;
        let meanwhile = self.meanwhile();
        if source == "arch_sys_counter" {
            return format!(
                "its timer, {source}, has an erratum for which the vDSO has no workaround. {SHOW_WHY} names \
                 it. There is no safe way around it: {meanwhile}."
            );
        }
        let exclusions: Vec<&str> = self
            .parameters()
            .filter(|word| EXCLUSIONS.contains(word))
            .collect();
        let choices: Vec<&str> = self.parameters().filter(|word| is_choice(word)).collect();
        if !exclusions.is_empty() {
            let why = exclusions.join(" and ");
            // A parameter that chooses another clock source matters only once the counter is no
            // longer excluded. So the sentence lists it after the parameters that exclude the
            // counter.
            let all = [exclusions, choices].concat().join(" and ");
            return format!(
                "it was booted with {why} and uses {source} ({what}). Remove {all} from the kernel's \
                 parameters, unless this machine's counter is faulty. If it is, {meanwhile}."
            );
        }
        let mut sentences = vec![format!(
            "{reason} and uses {source} ({what}). {SHOW_WHY} shows why."
        )];
        if self.platform.is_virtual && !self.platform.has_steady_tsc {
            sentences.push(self.host_must());
        }
        if !choices.is_empty() {
            // A parameter that chooses another clock source has no effect while the counter is
            // unavailable. But once the counter is available, the parameter would keep the kernel
            // from using the counter.
            let choices = choices.join(" and ");
            sentences.push(format!(
                "When that is fixed, also remove {choices} from the kernel's parameters, although it is not \
                 the reason."
            ));
        }
        sentences.push(format!("Until then, {meanwhile}."));
        sentences.join(" ")
    }

    /// Returns the settings that only the operator of the host can change.
    fn host_must(self) -> String {
        let settings = if self.source() == "xen" {
            "Xen: `nomigrate=1`"
        } else {
            "QEMU, and args of Proxmox VE: `-cpu host,+invtsc`; libvirt: \
             `<feature policy='require' name='invtsc'/>`; a cloud: another instance type"
        };
        format!(
            "This is a virtual machine, and its host does not offer an invariant counter ({settings})."
        )
    }

    /// Returns what to do about the clock source.
    fn remedy(self) -> String {
        let source = self.source();
        let meanwhile = self.meanwhile();
        if source == "kvm-clock" {
            if self.parameters().any(|word| word == NO_KVMCLOCK_VSYSCALL) {
                return format!("Remove {NO_KVMCLOCK_VSYSCALL} from the kernel's parameters.");
            }
            // KVM computes `kvm-clock` from the counter that the guest's `tsc` also reads, so `tsc`
            // is not better.
            return format!(
                "The host does not guarantee a stable counter, and only the host can change that: repair its \
                 clock source. `tsc` in this guest may be wrong as well. Until then, {meanwhile}."
            );
        }
        if let Some(better) = self.better() {
            return self.change_to(better);
        }
        match source {
            "hyperv_clocksource_msr" => format!(
                "Hyper-V does not provide its reference TSC page, and only the host can change that (QEMU: \
                 `hv-time`). Until then, {meanwhile}."
            ),
            "xen" => {
                let host_must = self.host_must();
                format!(
                    "{SHOW_WHY} shows why the counter is not available. {host_must} Until then, {meanwhile}."
                )
            }
            _ => format!("Until it can, {meanwhile}."),
        }
    }

    /// Returns how to change to a better clock source, now and at each boot.
    fn change_to(self, better: &str) -> String {
        let source = self.source();
        let machine = if self.platform.is_virtual {
            "in this virtual machine, outside of any container"
        } else {
            "on the host"
        };
        let choice = self.parameters().find(|word| is_choice(word));
        let keep = match choice {
            Some(choice) => format!("replace {choice} with clocksource={better} in"),
            None => format!("add clocksource={better} to"),
        };
        // Another host may have another counter.
        let unless = if source == "xen" && !self.platform.has_steady_tsc {
            " Do either only if your provider recommends tsc, as AWS does for its Xen instances, and not \
             if this guest migrates."
                .into()
        } else if source == "xen" {
            " Do neither if this guest migrates.".into()
        } else if choice.is_some() {
            format!(" Do neither if {source} was chosen because this machine's counter is faulty.")
        } else {
            String::new()
        };
        // There are two commands, because each has to fit on a line.
        format!(
            "To fix it now, run {machine}: `cd {CLOCK_SOURCE_DIRECTORY}` and \
             `echo {better} | sudo tee current_clocksource`. To keep it, {keep} the kernel's \
             parameters.{unless}"
        )
    }

    /// Returns an available clock source that the vDSO can read or, if there is none, one that it
    /// may be able to read.
    fn better(self) -> Option<&'a str> {
        let sources = &self.platform.clock_source;
        let mut if_stable = None;
        for name in &sources.available {
            // The kernel drops `tsc-early` when it has measured `tsc`.
            if Some(name) == sources.current.as_ref() || name == "tsc-early" {
                continue;
            }
            match clock_source(name).0 {
                Reader::Vdso => return Some(name),
                Reader::VdsoIfStable if if_stable.is_none() => if_stable = Some(&**name),
                _ => {}
            }
        }
        if_stable
    }

    /// Returns the kernel's parameters (kernel-parameters.txt), except those with control
    /// characters, because a terminal would obey these characters.
    fn parameters(self) -> impl Iterator<Item = &'a str> {
        let words = self.platform.command_line.split_whitespace();
        words.filter(|word| is_name(word))
    }

    /// Returns what a program can do until the cause is removed: use the calls that are cheap
    /// nevertheless, or read less often.
    fn meanwhile(self) -> &'static str {
        let mut coarse = Call::COARSE.into_iter();
        if coarse.all(|call| self.is_in_user_space(call)) {
            "use time() or the coarse clocks, which stay in user space, if the timer tick is precise enough"
        } else {
            "read the clock less often"
        }
    }

    /// Returns where to look for the missing vDSO.
    fn where_to_look(self, reason: Option<FallbackReason>) -> String {
        let Platform { architecture, .. } = *self.platform;
        if reason != Some(FallbackReason::NoVdso(LocateError::Absent)) {
            return "Check which program started this process".into();
        }
        for word in self.parameters() {
            // vdso32 affects only 32-bit programs (arch/x86/entry/vdso/vdso32-setup.c).
            if word == "vdso=0" || (word == "vdso32=0" && architecture == "x86") {
                return format!("Remove {word} from the kernel's parameters");
            }
        }
        let advice = match architecture {
            "x86" => "Check the sysctls vm.vdso_enabled and abi.vsyscall32",
            "arm" => "Check the kernel's CONFIG_VDSO, or CONFIG_COMPAT_VDSO of a 64-bit kernel",
            _ => "Check how the kernel was built, and what runs this process",
        };
        advice.into()
    }
}

/// Returns whether a parameter chooses a clock source other than those that the vDSO can always
/// read.
fn is_choice(parameter: &str) -> bool {
    match parameter.strip_prefix("clocksource=") {
        Some(source) => clock_source(source).0 != Reader::Vdso,
        None => false,
    }
}

/// The command whose lines say why the kernel rejected a counter.
const SHOW_WHY: &str = "`sudo dmesg | grep -i -e tsc -e arch_timer -e clocksource`";

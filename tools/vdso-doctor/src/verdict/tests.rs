//! The verdict on machines other than this one.

use vdso_time::LocateError;
use vdso_time::{ClockId, FallbackReason};

use super::{Cause, MONOTONIC, verdict};
use crate::platform::{ClockSource, Platform, Supervisor};
use crate::proof::{Evidence, Examination, Place, Reading};
use crate::read::Read;
use crate::report::wrapped;

/// What a test says about a read.
#[derive(Clone, Copy)]
enum Found {
    /// How many of 200 reads entered the kernel.
    Proved(u32),
    Routed(FallbackReason),
    Other(Place, Evidence),
}

const USER_SPACE: Found = Found::Proved(0);
const KERNEL: Found = Found::Proved(200);
const NOTHING: Found = Found::Other(Place::Unknown, Evidence::None);
const ABSENT: FallbackReason = FallbackReason::NoVdso(LocateError::Absent);

fn reading(read: Read, found: Found) -> Reading {
    let seen = Reading::new(read);
    match found {
        Found::Proved(entered) => Reading {
            place: if entered == 0 { Place::UserSpace } else { Place::Kernel },
            evidence: Evidence::Proved,
            reads: Some(200),
            entered: Some(entered),
            ..seen
        },
        Found::Routed(reason) => {
            Reading { place: Place::Kernel, evidence: Evidence::Routed, reason: Some(reason), ..seen }
        }
        Found::Other(place, evidence) => Reading { place, evidence, error: Some("EINVAL".into()), ..seen },
    }
}

/// Makes the readings of a clock source that is read in one place and coarse clocks in another.
fn readings(precise: Found, coarse: Found) -> Vec<Reading> {
    let clocks = [ClockId::MONOTONIC_COARSE, ClockId::REALTIME_COARSE].map(Read::ClockGettime);
    let cheap = clocks.into_iter().chain([Read::Time]).map(|read| reading(read, coarse));
    Read::USUAL
        .into_iter()
        .chain([Read::Gettimeofday])
        .map(|read| reading(read, precise))
        .chain(cheap)
        .collect()
}

/// Makes a platform with these clock sources; the first is in use.
fn platform(available: &[&str]) -> Platform {
    let available: Vec<String> = available.iter().map(|&name| name.into()).collect();
    let clock_source = ClockSource { current: available.first().cloned(), available };
    Platform {
        kernel: "6.12.0".into(),
        architecture: "x86_64",
        supervisor: None,
        clock_source,
        command_line: String::new(),
        has_steady_tsc: false,
        is_virtual: false,
        is_new: false,
    }
}

/// Asserts the cause, and that the sentence has these words.
#[track_caller]
fn judge(platform: &Platform, seen: &[Reading], reads: &[Read], cause: Cause, words: &[&str]) {
    let unproved = Some("seccomp is denied".into());
    let seen = Examination { readings: seen.to_vec(), unproved, ..Examination::default() };
    let (found, sentence) = verdict(platform, &seen, reads);
    assert_eq!(found, cause, "{sentence}");
    for word in words {
        assert!(sentence.contains(word), "{word} in: {sentence}");
    }
    assert!(sentence.ends_with('.') && !sentence.contains("  ") && !sentence.contains('\n'), "{sentence:?}");
    assert!(wrapped("", &sentence).lines().all(|line| line.chars().count() <= 80), "{sentence}");
}

/// Judges the usual reads.
#[track_caller]
fn judge_usual(platform: &Platform, precise: Found, coarse: Found, cause: Cause, words: &[&str]) {
    judge(platform, &readings(precise, coarse), &Read::USUAL, cause, words);
}

#[test]
fn evidence_decides_the_cause() {
    let tsc = platform(&["tsc", "hpet"]);
    let hpet = platform(&["hpet", "tsc"]);
    let [likely_user, likely_kernel] =
        [Place::UserSpace, Place::Kernel].map(|place| Found::Other(place, Evidence::Likely));
    let libc = Found::Other(Place::Unknown, Evidence::Libc);
    for (platform, precise, cause, words) in [
        (&tsc, USER_SPACE, Cause::Fine, &["CLOCK_MONOTONIC", "nothing to do"][..]),
        (&tsc, likely_user, Cause::LikelyFine, &["likely", "user space"]),
        (&tsc, NOTHING, Cause::CannotTell, &["it is unknown where", "seccomp is denied"]),
        (&tsc, libc, Cause::CannotTell, &["libc answers"]),
        (&hpet, likely_kernel, Cause::ClockSource, &["likely enters the kernel"]),
        (&hpet, Found::Proved(3), Cause::Sometimes, &["sometimes"]),
    ] {
        judge_usual(platform, precise, USER_SPACE, cause, words);
    }
    judge(&tsc, &readings(KERNEL, USER_SPACE), &[Read::Time], Cause::Fine, &["time() stays in user space"]);
    // A known failure comes before an unknown and a refused one.
    for other in [NOTHING, Found::Other(Place::Kernel, Evidence::Refused)] {
        let mixed = [reading(Read::USUAL[0], other), reading(MONOTONIC, KERNEL)];
        for reads in [[Read::USUAL[0], MONOTONIC], [MONOTONIC, Read::USUAL[0]]] {
            judge(&hpet, &mixed, &reads, Cause::ClockSource, &["CLOCK_MONOTONIC"]);
        }
    }
    let refused = Found::Other(Place::Kernel, Evidence::Refused);
    let mixed = [reading(Read::USUAL[0], NOTHING), reading(MONOTONIC, refused)];
    judge(&hpet, &mixed, &Read::USUAL, Cause::Refused, &["CLOCK_MONOTONIC"]);
}

#[test]
fn a_trapped_counter_is_slow() {
    let mut seen = readings(USER_SPACE, USER_SPACE);
    (seen[1].ns, seen[1].syscall_ns) = (Some(94.0), Some(100.0));
    let words = ["CLOCK_MONOTONIC", "hypervisor", "time()"];
    judge(&platform(&["tsc"]), &seen, &Read::USUAL, Cause::Slow, &words);
    seen[1].ns = Some(19.0);
    judge(&platform(&["tsc"]), &seen, &Read::USUAL, Cause::Fine, &[]);
}

/// CPUs, by their flags.
const STEADY: &str = "constant_tsc nonstop_tsc";
const STEADY_GUEST: &str = "constant_tsc nonstop_tsc hypervisor";
const GUEST: &str = "constant_tsc hypervisor";

/// Makes a platform whose CPU has these flags, booted with these parameters.
fn booted(flags: &str, parameters: &str, available: &[&str]) -> Platform {
    Platform {
        command_line: format!("quiet {parameters} ro"),
        has_steady_tsc: flags.contains(STEADY),
        is_virtual: flags.contains("hypervisor"),
        ..platform(available)
    }
}

#[test]
fn the_report_names_the_invariant_bit_under_kvm_clock_and_nowhere_else() {
    for (flags, source, ends_with) in [
        (STEADY_GUEST, "kvm-clock", "may read it; the CPU states an invariant counter"),
        (GUEST, "kvm-clock", "no invariant counter (vdso-time-counter needs trust_hypervisor())"),
        (STEADY_GUEST, "tsc", "the vDSO can read it"),
        (GUEST, "hpet", "only the kernel can read it"),
    ] {
        let text = booted(flags, "", &[source]).described_source();
        assert!(text.starts_with(source) && text.ends_with(ends_with), "{text}");
    }
}

const SWITCH: &str =
    "`cd /sys/devices/system/clocksource/clocksource0` and `echo tsc | sudo tee current_clocksource`";

/// Tries the machines of public reports. Where a report does not list the clock sources, they are
/// those of such a machine.
#[test]
fn a_public_report_gets_the_advice_that_helped_its_author() {
    const HOST: &str = "its host does not offer an invariant counter";
    for (report, flags, available, words) in [
        // The watchdog rejected the counter, or its values on the CPUs differ; the log says so.
        ("sozu-proxy/sozu#500", STEADY, &["hpet", "acpi_pm"][..], &["`sudo dmesg"][..]),
        ("facebookincubator/below#8125", STEADY, &["hpet", "acpi_pm"], &["`sudo dmesg"]),
        ("ksahlin/strobealign#573", STEADY, &["hpet", "acpi_pm"], &["`sudo dmesg"]),
        ("RPCS3/rpcs3#16382", STEADY, &["hpet", "acpi_pm"], &["`sudo dmesg"]),
        // VMware, bhyve, nested QEMU, macOS, Windows, KVM without kvm-clock.
        ("fbelavenuto/arpl#244", GUEST, &["acpi_pm"], &["`sudo dmesg", HOST]),
        ("oxidecomputer/propolis#328", GUEST, &["acpi_pm"], &["`sudo dmesg", HOST]),
        ("Mellanox/mkt#74", GUEST, &["hpet", "acpi_pm"], &["`sudo dmesg", "`-cpu host,+invtsc`"]),
        ("oomol-lab/ovm#21", GUEST, &["hpet", "acpi_pm"], &["`sudo dmesg", HOST]),
        ("Flux159/nebula v0.2.5", GUEST, &["refined-jiffies", "jiffies"], &["`sudo dmesg", HOST]),
        ("yunionio/cloudpods#16956", GUEST, &["hpet", "acpi_pm"], &["`sudo dmesg", "name='invtsc'"]),
        // Xen's default, on EC2 and in Qubes OS.
        ("redis/redis#10604", STEADY_GUEST, &["xen", "tsc", "hpet", "acpi_pm"], &[SWITCH]),
        ("heap.io: clocksource-aws-ec2-vdso", GUEST, &["xen", "tsc", "hpet", "acpi_pm"], &[SWITCH]),
        ("QubesOS/qubes-issues#7404", STEADY_GUEST, &["xen", "tsc"], &["unless this guest migrates", SWITCH]),
        // The command line had `clocksource=hpet`, which is tested below.
        ("projectacrn/acrn-hypervisor#517", STEADY_GUEST, &["hpet", "tsc"], &[SWITCH]),
        ("zalando-stups/taupage#478", GUEST, &["xen", "tsc", "hpet", "acpi_pm"], &[SWITCH]),
    ] {
        println!("{report}");
        let is_distrusted = words[0].contains("dmesg");
        let cause = if is_distrusted { Cause::CounterDistrusted } else { Cause::ClockSource };
        judge_usual(&booted(flags, "", available), KERNEL, USER_SPACE, cause, words);
    }
    // Where ClickHouse#41111 and redpanda#15609 were made, the clock was not slow.
    for available in [["kvm-clock", "tsc"], ["hyperv_clocksource_tsc_page", "acpi_pm"]] {
        judge_usual(&booted(GUEST, "", &available), USER_SPACE, USER_SPACE, Cause::Fine, &["nothing to do"]);
    }
}

#[test]
fn a_clock_source_that_only_the_kernel_reads_is_replaced_or_avoided() {
    for source in ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"] {
        for flags in [STEADY, STEADY_GUEST, GUEST, ""] {
            let words = [source, SWITCH, "clocksource=tsc"];
            judge_usual(&booted(flags, "", &[source, "tsc"]), KERNEL, USER_SPACE, Cause::ClockSource, &words);
        }
    }
    for source in ["hpet", "acpi_pm", "jiffies", "refined-jiffies"] {
        let words = ["does not trust", source, "`sudo dmesg", "the coarse clocks, which stay in user space"];
        judge_usual(&booted("", "", &[source]), KERNEL, USER_SPACE, Cause::CounterDistrusted, &words);
    }
    let arm = Platform { architecture: "arm", ..platform(&["dmtimer"]) };
    judge_usual(&arm, KERNEL, USER_SPACE, Cause::ClockSource, &["dmtimer (of another driver)"]);
    judge_usual(&platform(&["jiffies"]), KERNEL, KERNEL, Cause::CounterDistrusted, &["less often"]);
    // There is no host, or it offers an invariant counter.
    let seen = Examination { readings: readings(KERNEL, USER_SPACE), ..Examination::default() };
    for flags in [STEADY_GUEST, STEADY, ""] {
        let (_, sentence) = verdict(&booted(flags, "", &["hpet"]), &seen, &Read::USUAL);
        assert!(!sentence.contains("invtsc"), "{sentence}");
    }
}

/// Tries parameters of the kernel. We booted the rows with two parameters, and a rejected counter,
/// in QEMU, followed the advice, and booted again.
#[test]
fn every_parameter_that_acts_is_named_and_exclusions_come_first() {
    let [distrusted, source] = [Cause::CounterDistrusted, Cause::ClockSource];
    let unless = "unless clocksource=hpet was set because the counter is wrong, run";
    for (parameters, available, cause, words) in [
        ("clocksource=hpet", &["hpet", "tsc"][..], source, &[unless, "=tsc instead of clocksource=hpet"][..]),
        ("clocksource=xen", &["xen"], source, &["sudo dmesg", "nomigrate=1"]),
        ("tsc=unstable", &["hpet"], distrusted, &["boot without tsc=unstable, unless that was set because"]),
        ("notsc", &["acpi_pm"], distrusted, &["boot without notsc, unless that was set because"]),
        ("no-kvmclock", &["hpet"], distrusted, &["boot without no-kvmclock, unless"]),
        (
            "clocksource=hpet notsc",
            &["hpet"],
            distrusted,
            &["boot without notsc and clocksource=hpet, unless"],
        ),
        ("clocksource=hpet notsc", &["hpet"], distrusted, &["was booted with notsc and reads hpet"]),
        (
            "clocksource=acpi_pm tsc=unstable",
            &["acpi_pm"],
            distrusted,
            &["=unstable and clocksource=acpi_pm, un"],
        ),
        ("clocksource=xen", &["xen", "tsc"], source, &["unless this guest migrates, run"]),
        // The counter is not on offer, so the choice is not the reason.
        ("clocksource=hpet", &["hpet"], distrusted, &["`sudo dmesg", "hpet, which is not the reason"]),
        (
            "clocksource=hpet",
            &["hpet", "tsc-early", "kvm-clock"],
            source,
            &["echo kvm-clock |", "instead of"],
        ),
        ("no-kvmclock-vsyscall", &["kvm-clock"], source, &["boot without no-kvmclock-vsyscall."]),
        ("tsc=reliable", &["hpet"], distrusted, &["dmesg"]),
        ("clocksource=tsc", &["hpet"], distrusted, &["dmesg"]),
    ] {
        judge_usual(&booted(STEADY_GUEST, parameters, available), KERNEL, USER_SPACE, cause, words);
    }
    // A terminal obeys control characters, so such a word is not shown.
    for word in ["clocksource=\x1b[31mhpet", "clocksource=hp\u{9b}31met"] {
        let hpet = booted("", word, &["hpet", "tsc"]);
        let words = ["(the chip set's event timer): run `cd"];
        judge_usual(&hpet, KERNEL, USER_SPACE, Cause::ClockSource, &words);
    }
}

#[test]
fn a_clock_source_that_the_vdso_could_read_has_another_cause() {
    for (available, cause, words) in [
        (&["kvm-clock", "tsc"][..], Cause::ClockSource, &["same on all CPUs", "only the host", "time()"][..]),
        (&["kvm-clock"], Cause::ClockSource, &["only the host", "`tsc` in this guest may be wrong"]),
        (&["xen", "tsc"], Cause::ClockSource, &["unless this guest migrates", "echo tsc"]),
        (&["xen", "hpet"], Cause::ClockSource, &["xen", "timer tick is precise enough"]),
        (&["hyperv_clocksource_msr", "acpi_pm"], Cause::ClockSource, &["only the host can change that"]),
        (&["tsc-early"], Cause::ClockSource, &["the CPU's time-stamp counter"]),
        // The kernel drops tsc-early soon after boot.
        (&["hpet", "tsc-early"], Cause::CounterDistrusted, &["hpet", "timer tick is precise enough"]),
        (&["arch_sys_counter"], Cause::CounterDistrusted, &["does not trust", "arch_timer"]),
        (&["tsc"], Cause::Unexplained, &["(tsc)"]),
        (&[], Cause::Unexplained, &["(unknown)"]),
    ] {
        judge_usual(&booted(STEADY, "", available), KERNEL, USER_SPACE, cause, words);
    }
}

/// Tries kernels in their first seconds, when they read a clock source that they leave.
#[test]
fn a_kernel_that_just_started_is_not_judged_for_ever() {
    let sandbox = Platform { supervisor: Some(Supervisor::GuestKernel), ..platform(&[]) };
    for (now, cause) in [
        (sandbox.clone(), Cause::GuestKernel),
        (platform(&["jiffies"]), Cause::CounterDistrusted),
        (platform(&["refined-jiffies", "tsc-early"]), Cause::CounterDistrusted),
    ] {
        judge_usual(&now, KERNEL, USER_SPACE, cause, &["enters the kernel, because"]);
        let new = Platform { is_new: true, ..now };
        for found in [KERNEL, Found::Proved(3)] {
            judge_usual(
                &new,
                found,
                USER_SPACE,
                Cause::NotYet,
                &["perhaps not for long", "again in some seconds"],
            );
        }
        judge_usual(&new, USER_SPACE, USER_SPACE, Cause::Fine, &[]);
        judge(&new, &readings(KERNEL, KERNEL), &[Read::Time], Cause::NotYet, &["time() enters the kernel"]);
        let read = Read::ClockGettime(ClockId::THREAD_CPUTIME);
        judge(&new, &[reading(read, KERNEL)], &[read], Cause::ClockNotServed, &["no vDSO has CPU times"]);
    }
    // This one the kernel keeps.
    let hpet = Platform { is_new: true, ..platform(&["hpet", "tsc"]) };
    judge_usual(&hpet, KERNEL, USER_SPACE, Cause::ClockSource, &[SWITCH]);
}

#[test]
fn a_clock_that_no_vdso_has_is_not_the_clock_sources_fault() {
    for (read, word) in [
        (Read::ClockGettime(ClockId::THREAD_CPUTIME), "no vDSO has CPU times"),
        (Read::ClockGettime(ClockId::BOOTTIME_ALARM), "without _ALARM"),
        (Read::ClockGettime(ClockId::BOOTTIME), "use CLOCK_MONOTONIC, which stays in user space"),
        (Read::ClockGettime(ClockId::TAI), "a newer kernel's vDSO may have it"),
        (Read::Getcpu, "a newer kernel's vDSO may have it"),
    ] {
        let mut seen = readings(USER_SPACE, USER_SPACE);
        seen.push(reading(read, KERNEL));
        let reads = [Read::USUAL[0], read];
        judge(&platform(&["tsc"]), &seen, &reads, Cause::ClockNotServed, &[&read.to_string(), word]);
    }
    let read = Read::ClockGettime(ClockId::from_raw(10));
    let refused = [reading(read, Found::Other(Place::Kernel, Evidence::Refused))];
    judge(&platform(&["tsc"]), &refused, &[read], Cause::Refused, &["EINVAL"]);
}

#[test]
fn a_missing_vdso_or_function_is_explained() {
    let unmapped = FallbackReason::NoVdso(LocateError::Unmapped);
    for (architecture, line, reason, words) in [
        ("x86_64", "quiet vdso=0 ro", ABSENT, &["no vDSO", "boot without vdso=0."][..]),
        ("x86", "vdso32=0", ABSENT, &["boot without vdso32=0."]),
        // It is about 32-bit programs.
        ("x86_64", "vdso32=0", ABSENT, &["every read is a system call", "check how the kernel was built"]),
        ("x86_64", "vdso32=0 vdso=0", ABSENT, &["boot without vdso=0."]),
        ("x86_64", "vdso=1", ABSENT, &["check how the kernel was built"]),
        ("x86", "vdso=1 vdso32=1", ABSENT, &["check the sysctls"]),
        ("x86_64", "vdso=0", unmapped, &["check which program started this process"]),
    ] {
        let gone = Found::Routed(reason);
        let booted = Platform { architecture, command_line: line.into(), ..platform(&["tsc"]) };
        judge_usual(&booted, gone, gone, Cause::NoVdso, words);
    }
    let [blanked, missing] = [FallbackReason::BlankedNames, FallbackReason::NoSymbol].map(Found::Routed);
    let words = ["blanked", "dmtimer", "device tree"];
    judge_usual(&platform(&["dmtimer"]), blanked, missing, Cause::BlankedNames, &words);
    let old = Platform { kernel: "3.10.0".into(), ..platform(&["tsc"]) };
    let seen = [reading(Read::Getcpu, missing)];
    let words = ["getcpu()", "no function that can answer", "3.10.0"];
    judge(&old, &seen, &[Read::Getcpu], Cause::NoFunction, &words);
}

#[test]
fn a_supervisor_is_named() {
    let under = |supervisor| Platform { supervisor: Some(supervisor), ..platform(&["tsc"]) };
    let gone = Found::Routed(ABSENT);
    for (supervisor, found, cause, words) in [
        (Supervisor::Valgrind, gone, Cause::Emulated, &["without valgrind"][..]),
        (Supervisor::Emulator, NOTHING, Cause::Emulated, &["without an emulator"]),
        // These have a vDSO of their own, which can work.
        (Supervisor::GuestKernel, USER_SPACE, Cause::Fine, &[]),
        (Supervisor::GuestKernel, KERNEL, Cause::GuestKernel, &["the vDSO of gVisor, WSL 1 or UML does"]),
    ] {
        judge_usual(&under(supervisor), found, found, cause, words);
    }
    // User-mode Linux shows the flags of the CPU, and a clock source of its own.
    let uml =
        Platform { supervisor: Some(Supervisor::GuestKernel), ..booted(STEADY, "", &["timer", "jiffies"]) };
    judge_usual(
        &uml,
        KERNEL,
        KERNEL,
        Cause::GuestKernel,
        &["gVisor, WSL 1 or UML does: read the clock less"],
    );
}

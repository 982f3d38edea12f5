//! The doctor's verdict on machines that this one is not: each known cause is told from the others, and says what to do.

#![cfg(any(target_os = "linux", target_os = "android"))]

#[path = "../examples/doctor/main.rs"]
#[allow(dead_code, reason = "it is a program, of which one part is tested here")]
mod doctor;

use doctor::arguments::USUAL;
use doctor::machine::{Machine, Supervisor};
use doctor::proof::{Count, Evidence, Finding, Place};
use doctor::read::Read;
use doctor::report::Row;
use doctor::timing::Speed;
use doctor::verdict::{Cause, Facts, verdict};
use vdso_time::vdso::LocateError;
use vdso_time::{ClockId, Errno, FallbackReason};

const USER_SPACE: Finding = proved(0);
const KERNEL: Finding = proved(200);

const fn proved(entered: u32) -> Finding {
    let place = if entered == 0 { Place::UserSpace } else { Place::Kernel };
    Finding { place, evidence: Evidence::Proved(Count { reads: 200, entered, outside: 0, syscall: None }) }
}

const fn routed(reason: FallbackReason) -> Finding {
    Finding { place: Place::Kernel, evidence: Evidence::Routed(reason) }
}

/// A machine with this clock source, among these.
fn machine(available: &[&str]) -> Machine {
    Machine {
        clock_source: available.first().map(|&name| name.into()),
        available: available.iter().map(|&name| name.into()).collect(),
        ..Machine::default()
    }
}

/// A row of the report, without a speed.
fn row(read: Read, finding: Finding) -> Row {
    Row { read, finding, speed: None, resolution: None }
}

/// The rows where the clock source is read in one place and the coarse clocks in another.
fn findings(precise: Finding, coarse: Finding) -> Vec<Row> {
    let clocks = [ClockId::MONOTONIC_COARSE, ClockId::REALTIME_COARSE].map(Read::ClockGettime);
    let cheap = clocks.into_iter().chain([Read::Time]).map(|read| row(read, coarse));
    USUAL.into_iter().chain([Read::Gettimeofday]).map(|read| row(read, precise)).chain(cheap).collect()
}

/// The cause that the verdict names must be this, and its sentence must have these words.
#[track_caller]
fn judge(machine: &Machine, rows: &[Row], reads: &[Read], expected: Cause, words: &[&str]) {
    let (cause, sentence) = verdict(&Facts { machine, rows }, reads);
    assert_eq!(cause, expected, "{sentence}");
    for word in words {
        assert!(sentence.contains(word), "{word} in: {sentence}");
    }
    assert!(sentence.ends_with('.') && !sentence.contains("  ") && !sentence.contains('\n'), "{sentence:?}");
}

#[test]
fn nothing_to_do() {
    let tsc = machine(&["tsc", "hpet", "acpi_pm"]);
    judge(
        &tsc,
        &findings(USER_SPACE, USER_SPACE),
        &USUAL,
        Cause::Fine,
        &["CLOCK_MONOTONIC", "nothing to do"],
    );
    let one = [Read::Time];
    judge(&tsc, &findings(KERNEL, USER_SPACE), &one, Cause::Fine, &["time() stays in user space"]);
}

#[test]
fn no_proof() {
    let likely = |place| Finding { place, evidence: Evidence::Likely };
    let none = Finding { place: Place::Unknown, evidence: Evidence::None };
    let tsc = machine(&["tsc"]);
    let user_space = likely(Place::UserSpace);
    judge(&tsc, &findings(user_space, user_space), &USUAL, Cause::LikelyFine, &["likely", "user space"]);
    judge(&tsc, &findings(none, none), &USUAL, Cause::CannotTell, &["inconclusive"]);
    // What is known to be wrong goes before what is not known.
    let mixed = [row(USUAL[0], none), row(USUAL[1], KERNEL)];
    judge(&machine(&["hpet"]), &mixed, &USUAL, Cause::ClockSource, &["CLOCK_MONOTONIC"]);
}

/// It stays in user space, and yet is no cheaper than a system call.
#[test]
fn a_counter_that_is_trapped() {
    let tsc = machine(&["tsc"]);
    let mut found = findings(USER_SPACE, USER_SPACE);
    found[1].speed = Some(Speed { here: 1500.0, system_call: Some(1600.0) });
    judge(&tsc, &found, &USUAL, Cause::Slow, &["CLOCK_MONOTONIC", "hypervisor", "time()"]);
    found[1].speed = Some(Speed { here: 1500.0, system_call: None });
    judge(&tsc, &found, &USUAL, Cause::Fine, &[]);
}

/// What only some reads do, or do elsewhere, is not the clock source's fault; nor is what no clock source has a part in.
#[test]
fn what_is_not_the_clock_sources_fault() {
    let hpet = machine(&["hpet", "tsc"]);
    judge(&hpet, &findings(proved(3), USER_SPACE), &USUAL, Cause::Sometimes, &["sometimes"]);
    let count = Count { reads: 200, entered: 200, outside: 200, syscall: Some(228) };
    let elsewhere = Finding { place: Place::Kernel, evidence: Evidence::Proved(count) };
    judge(&hpet, &findings(elsewhere, USER_SPACE), &USUAL, Cause::Elsewhere, &["not through the vDSO"]);
    for read in [Read::Getcpu, Read::ClockGettime(ClockId::THREAD_CPUTIME)] {
        let mut found = findings(KERNEL, USER_SPACE);
        found.push(row(read, KERNEL));
        judge(&hpet, &found, &[read], Cause::ClockNotServed, &[&read.to_string()]);
    }
    let likely = Finding { place: Place::Kernel, evidence: Evidence::Likely };
    judge(&hpet, &findings(likely, USER_SPACE), &USUAL, Cause::ClockSource, &["likely enters the kernel"]);
    let libc = Finding { place: Place::Unknown, evidence: Evidence::Libc };
    judge(&hpet, &findings(libc, libc), &USUAL, Cause::Libc, &["libc answers"]);
}

#[test]
fn clock_sources_that_only_the_kernel_reads() {
    let found = findings(KERNEL, USER_SPACE);
    for source in ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"] {
        // The better one is there to be chosen.
        let choice = machine(&[source, "tsc"]);
        let remedy = "`echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource`";
        judge(&choice, &found, &USUAL, Cause::ClockSource, &[source, remedy, "clocksource=tsc"]);
        let trusted = Machine { steady_tsc: true, ..choice };
        judge(&trusted, &found, &USUAL, Cause::ClockSource, &[remedy]);
        // There is none.
        let none = machine(&[source]);
        judge(
            &none,
            &found,
            &USUAL,
            Cause::ClockSource,
            &[source, "the coarse clocks, which stay in user space"],
        );
        // The CPU has one, and the kernel has dropped it.
        let dropped = Machine { steady_tsc: true, ..none };
        judge(&dropped, &found, &USUAL, Cause::TscDropped, &["does not trust", source, "dmesg", "time()"]);
    }
    judge(&machine(&["dmtimer"]), &found, &USUAL, Cause::ClockSource, &["dmtimer (of some driver)"]);
    judge(&machine(&["jiffies"]), &findings(KERNEL, KERNEL), &USUAL, Cause::ClockSource, &["less often"]);
}

#[test]
fn clock_sources_that_the_vdso_reads_and_yet_does_not() {
    let found = findings(KERNEL, USER_SPACE);
    for source in ["kvm-clock", "xen"] {
        let choice = machine(&[source, "tsc"]);
        judge(&choice, &found, &USUAL, Cause::UnstableHypervisorClock, &[source, "hypervisor", "echo tsc"]);
        let none = machine(&[source, "hpet"]);
        judge(
            &none,
            &found,
            &USUAL,
            Cause::UnstableHypervisorClock,
            &[source, "a timer tick is exact enough"],
        );
        let dropped = Machine { steady_tsc: true, ..none };
        judge(&dropped, &found, &USUAL, Cause::UnstableHypervisorClock, &[source]);
    }
    judge(&machine(&["arch_sys_counter"]), &found, &USUAL, Cause::TimerErratum, &["erratum", "arch_timer"]);
    judge(&machine(&["tsc"]), &found, &USUAL, Cause::Unexplained, &["(tsc)"]);
    judge(&machine(&[]), &found, &USUAL, Cause::Unexplained, &["(unknown)"]);
}

#[test]
fn clocks_that_no_vdso_has() {
    let tsc = machine(&["tsc"]);
    for (clock, word) in [
        (ClockId::THREAD_CPUTIME, "no vDSO has CPU times"),
        (ClockId::REALTIME_ALARM, "CLOCK_REALTIME says the same"),
        (ClockId::BOOTTIME_ALARM, "CLOCK_BOOTTIME says the same"),
        (ClockId::TAI, "CLOCK_MONOTONIC stays in user space"),
    ] {
        let read = Read::ClockGettime(clock);
        let mut found = findings(USER_SPACE, USER_SPACE);
        found.push(row(read, KERNEL));
        judge(&tsc, &found, &[USUAL[0], read], Cause::ClockNotServed, &[&read.to_string(), word]);
    }
    let refused = Finding { place: Place::Kernel, evidence: Evidence::Refused(Errno::EINVAL) };
    let read = Read::ClockGettime(ClockId::from_raw(10));
    judge(&tsc, &[row(read, refused)], &[read], Cause::Refused(Errno::EINVAL), &["EINVAL"]);
}

#[test]
fn without_a_vdso() {
    let all = |finding| findings(finding, finding);
    let told = |line: &str| Machine { command_line: line.into(), ..machine(&["tsc"]) };
    let absent = Cause::NoVdso(LocateError::Absent);
    let gone = |error| all(routed(FallbackReason::NoVdso(error)));
    judge(
        &told("quiet vdso=0 ro"),
        &gone(LocateError::Absent),
        &USUAL,
        absent,
        &["no vDSO", "without vdso=0"],
    );
    judge(&told("vdso32=0"), &gone(LocateError::Absent), &USUAL, absent, &["without vdso32=0"]);
    judge(
        &told("quiet"),
        &gone(LocateError::Absent),
        &USUAL,
        absent,
        &["every read is a system call", "see "],
    );
    let unmapped = Cause::NoVdso(LocateError::Unmapped);
    let words = ["see which program started this process"];
    judge(&told("vdso=1"), &gone(LocateError::Unmapped), &USUAL, unmapped, &words);
}

#[test]
fn functions_that_the_vdso_lacks() {
    let timer = machine(&["dmtimer"]);
    let blanked = findings(routed(FallbackReason::BlankedNames), routed(FallbackReason::NoSymbol));
    judge(&timer, &blanked, &USUAL, Cause::BlankedNames, &["blanked", "dmtimer", "device tree"]);
    let old = Machine { release: "3.10.0".into(), ..machine(&["tsc"]) };
    let found = [row(Read::Getcpu, routed(FallbackReason::NoSymbol))];
    let words = ["getcpu()", "no such function", "3.10.0"];
    judge(&old, &found, &[Read::Getcpu], Cause::NoFunction(FallbackReason::NoSymbol), &words);
}

#[test]
fn who_stands_between() {
    let absent = routed(FallbackReason::NoVdso(LocateError::Absent));
    let under = |supervisor| Machine { supervisor: Some(supervisor), ..machine(&["tsc"]) };
    let gone = findings(absent, absent);
    judge(
        &under(Supervisor::Valgrind),
        &gone,
        &USUAL,
        Cause::HiddenByValgrind,
        &["hides", "without valgrind"],
    );
    judge(&under(Supervisor::Qemu), &gone, &USUAL, Cause::Emulated, &["an emulator"]);
    let none = Finding { place: Place::Unknown, evidence: Evidence::None };
    judge(&under(Supervisor::Qemu), &findings(none, none), &USUAL, Cause::Emulated, &["the machine itself"]);
    // These have a vDSO of their own, which is seen to work, or not.
    judge(&under(Supervisor::Gvisor), &findings(USER_SPACE, USER_SPACE), &USUAL, Cause::Fine, &[]);
    judge(&under(Supervisor::Wsl1), &findings(KERNEL, KERNEL), &USUAL, Cause::Unexplained, &["WSL 1"]);
}

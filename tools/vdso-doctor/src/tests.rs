//! The words of the JSON, proofs on busy CPUs, and diagnoses of processes that must not read the
//! clock. Each of those processes is forked before this process reads a clock.

use std::env::consts::ARCH;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use test_support::nix::sys::pthread::{pthread_kill, pthread_self};
use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::{child, filter, has_proc, not_run_here, signals};
use vdso_time::__private::NATIVE;
use vdso_time::vdso::{Functions, VdsoFn};

use crate::count::{Count, NO_TIME, PATIENCE, count, less};
use crate::cpus;
use crate::platform::{Addresses, is_name, read, supervisor};
use crate::process_report::is_emulator;
use crate::vdso_call::VdsoCall;
use crate::{Call, Cause, Evidence, Location, Platform, Supervisor, check, diagnose};

/// Programs that read the JSON compare these words, so README.md lists them.
#[test]
fn the_words_of_the_json_are_those_of_the_page() {
    let locations = [Location::UserSpace, Location::Kernel, Location::Unknown];
    let evidences = [
        Evidence::Proved,
        Evidence::Routed,
        Evidence::Refused,
        Evidence::Libc,
        Evidence::None,
    ];
    let supervisors = [
        Supervisor::Valgrind,
        Supervisor::Emulator,
        Supervisor::GuestKernel,
    ];
    let causes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
    for (field, words) in [
        ("location", serde_json::to_value(locations)),
        ("evidence", serde_json::to_value(evidences)),
        ("supervisor", serde_json::to_value(supervisors)),
        ("cause", serde_json::to_value(causes)),
    ] {
        let words = words.unwrap();
        let words: Vec<&str> = words
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(documented_words(field), words, "{field}");
    }
}

/// Returns the words that README.md lists for a field of the JSON.
fn documented_words(field: &str) -> Vec<&'static str> {
    let start = format!("| `{field}` is | ");
    let mut lines = include_str!("../README.md").lines();
    let row = lines.find_map(|line| line.strip_prefix(&*start));
    let row = row.expect("a row of the table");
    row.split('`').skip(1).step_by(2).collect()
}

#[test]
fn a_wall_clock_54_seconds_after_the_epoch_is_no_system_call() {
    extern "C" fn time(_: *mut i64) -> i64 {
        libc::EXFULL.into()
    }
    match count(&[answered_by(time)], 1, PATIENCE) {
        Ok(count) => assert_eq!(count.entered, [0]),
        Err(why) => not_run_here(why),
    }
}

/// Returns the call that this function answers.
fn answered_by(time: extern "C" fn(*mut i64) -> i64) -> VdsoCall {
    let mut functions = Functions::default();
    functions.time = Some(VdsoFn::Time64(time));
    VdsoCall::of(Call::Time, &functions).expect("a function")
}

/// Waits as long as the calling thread may run on the last CPU. To the doctor this looks as if a
/// thread of real-time priority occupied that CPU: a thread that waits for an occupied CPU stays
/// there as long as its CPUs include that one.
extern "C" fn waits_on_the_last_cpu(_: *mut i64) -> i64 {
    let last = LAST_CPU.load(Ordering::Relaxed);
    while cpus::allowed().contains(&last) {
        thread::yield_now();
    }
    0
}

/// Halves the time for a CPU twenty times, as after twenty occupied CPUs.
#[test]
fn the_time_for_a_cpu_has_a_minimum() {
    assert_eq!(less(PATIENCE), PATIENCE / 2);
    let mut patience = PATIENCE;
    for _ in 0..20 {
        patience = less(patience);
    }
    assert_eq!(patience, Duration::from_millis(50));
}

/// The first CPUs that were tested can be used for certain. The others may be occupied as well.
#[test]
fn a_thread_leaves_an_occupied_cpu_for_one_that_was_tested() {
    for (tested, busy, expected) in [
        (&[][..], &[][..], &[1, 2, 3][..]),
        (&[], &[1], &[2, 3]),
        (&[1, 3], &[2], &[1, 3]),
        (&[], &[1, 2, 3], &[]),
    ] {
        let count = Count {
            cpus: tested.to_vec(),
            busy: busy.to_vec(),
            ..Count::default()
        };
        assert_eq!(count.elsewhere(&[0, 1, 2, 3], 0), expected);
    }
}

static LAST_CPU: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_cpu_that_is_not_given_away_is_left_out_after_some_time() {
    let allowed = cpus::allowed();
    let [others @ .., last] = &*allowed else {
        return not_run_here("sched_getaffinity(2) is denied");
    };
    if others.is_empty() {
        return not_run_here("one CPU");
    }
    if !cpus::restrict(nix::unistd::gettid(), &allowed) {
        return not_run_here("sched_setaffinity(2) is denied");
    }
    LAST_CPU.store(*last, Ordering::Relaxed);
    let function = answered_by(waits_on_the_last_cpu);
    // If this machine is busy, the thread may be moved from another CPU to the last one, and would
    // wait there as well.
    let mut counted = count(&[function], 1, Duration::from_millis(200));
    for _ in 0..3 {
        if counted.is_err() {
            counted = count(&[function], 1, Duration::from_secs(2));
        }
    }
    match counted {
        // If this machine is busy, the count may have left out other CPUs as well as the last one.
        Ok(count) => {
            assert!(count.busy.contains(last), "{:?}", count.busy);
            assert!(!count.cpus.contains(last), "{:?}", count.cpus);
            assert_eq!(count.cpus.len() + count.busy.len(), allowed.len());
        }
        Err(why) => {
            assert_ne!(why, NO_TIME);
            not_run_here(why);
        }
    }
}

extern "C" fn waits_for_the_end(_: *mut i64) -> i64 {
    while !IS_OVER.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    0
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn do_nothing(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Interrupts the wait every millisecond, as the signals of a profiler do.
#[test]
fn a_thread_that_never_answers_is_not_waited_for() {
    signals::handle(Signal::SIGUSR1, SaFlags::SA_RESTART, do_nothing);
    let this_thread = pthread_self();
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            while !IS_OVER.load(Ordering::Relaxed) {
                pthread_kill(this_thread, Signal::SIGUSR1).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let function = answered_by(waits_for_the_end);
        let seen = count(&[function], 1, Duration::from_millis(20));
        IS_OVER.store(true, Ordering::Relaxed);
        seen
    });
    assert!(seen.is_err(), "{:?}", seen.map(|count| count.cpus));
}

#[test]
fn a_clock_source_has_no_empty_name_and_no_control_characters() {
    let seen = ["tsc", "ARC Timer1", "", "\x1b[31mtsc", "tsc\nhpet"].map(is_name);
    assert_eq!(seen, [true, true, false, false, false]);
}

#[test]
fn a_pipe_and_a_file_without_an_end_do_not_hang_the_doctor() {
    let (pipe, _writer) = nix::unistd::pipe().unwrap();
    assert_eq!(
        read(&format!("/proc/self/fd/{}", pipe.as_raw_fd())).unwrap_or_default(),
        ""
    );
    assert!(read("/dev/zero").is_some_and(|text| !is_name(&text)));
}

#[test]
fn a_supervisor_is_known_by_its_vdso() {
    const PRELINKED: u64 = 0xffff_ffff_ff70_0000;
    const MAPPED: u64 = 0x7fff_0000_0000;
    let guest = Some(Supervisor::GuestKernel);
    let vdso = |linked_for| {
        Some(Addresses {
            linked_for,
            mapped_at: MAPPED,
        })
    };
    for (linked_for, release, expected) in [
        // gVisor's vDSO, WSL 1's, and one of UML's.
        (PRELINKED, "4.4.0", guest),
        (PRELINKED, "4.4.0-19041-Microsoft", guest),
        (PRELINKED, "6.12.0", guest),
        (PRELINKED, "3.18-rc1", None),
        (PRELINKED, "3.18.0", guest),
        // Red Hat's 6 and 7.
        (PRELINKED, "2.6.32-754.el6.x86_64", None),
        (PRELINKED, "3.10.0-1160.el7.x86_64", None),
        (PRELINKED, "", None),
        (0, "6.12.0", None),
        // QEMU's.
        (MAPPED, "6.12.0", Some(Supervisor::Emulator)),
    ] {
        let seen = supervisor(vdso(linked_for), release, |_| None);
        assert_eq!(seen, expected, "{linked_for:#x} {release}");
    }
    // Valgrind hides the vDSO. So a process that has a vDSO does not run under valgrind, even if a
    // path in its maps contains the word valgrind.
    let maps = |path: &str| {
        (path == "/proc/self/maps").then(|| "/usr/libexec/valgrind/vgpreload_core.so".into())
    };
    assert_eq!(supervisor(None, "6.12.0", maps), Some(Supervisor::Valgrind));
    assert_eq!(supervisor(vdso(0), "6.12.0", maps), None);
    assert_eq!(supervisor(None, "6.12.0", |_| None), None);
}

#[test]
fn a_platform_is_what_its_files_say() {
    for (flags, uptime, [is_steady, is_virtual, is_new]) in [
        (
            "fpu constant_tsc nonstop_tsc",
            "4.99 3.00",
            [true, false, true],
        ),
        (
            "constant_tsc nonstop_tsc hypervisor",
            "5.00 3.00",
            [true, true, false],
        ),
        ("constant_tsc hypervisor", "0.08 0.00", [false, true, true]),
        (
            "nonstop_tsc constant_tsc_x",
            "86400.10 3.00",
            [false, false, false],
        ),
        ("", "", [false; 3]),
    ] {
        let read = |path: &str| {
            let name = path.rsplit('/').next().unwrap();
            let text = match name {
                "cpuinfo" => {
                    format!(
                        "model name\t: nonstop_tsc hypervisor\nflags\t\t: {flags}\nbugs\t: none"
                    )
                }
                "uptime" => uptime.into(),
                "current_clocksource" => "hpet".into(),
                "available_clocksource" => "hpet acpi_pm".into(),
                _ => return None,
            };
            Some(text)
        };
        let seen = Platform::described("6.12.0".into(), read);
        let found = [seen.has_steady_tsc, seen.is_virtual, seen.is_new];
        assert_eq!(found, [is_steady, is_virtual, is_new], "{flags} {uptime}");
        assert_eq!(seen.clock_source.current.as_deref(), Some("hpet"));
        assert_eq!(seen.clock_source.available, ["hpet", "acpi_pm"]);
    }
}

#[test]
fn an_emulator_and_valgrind_have_a_vdso_that_says_nothing_about_the_program_in_them() {
    for (program, expected) in [
        ("/usr/bin/qemu-aarch64", true),
        ("/usr/bin/qemu-x86_64-static", true),
        ("/usr/libexec/valgrind/memcheck-amd64-linux", true),
        ("/usr/bin/qemu-system-x86_64", false),
        ("/usr/bin/qemu-ga", false),
        ("/usr/bin/qemu-storage-daemon", false),
        ("/home/valgrind/server", false),
        ("/usr/bin/valgrind", false),
        ("/usr/share/valgrind/doc/sleep", false),
        ("/usr/bin/sleep", false),
        ("", false),
    ] {
        assert_eq!(is_emulator(Path::new(program)), expected, "{program}");
    }
}

/// Runs in a child process without a vDSO. It makes a check. Then it denies its own clock calls, as
/// a sandbox would, and makes a diagnosis.
#[test]
#[allow(unsafe_code, reason = "init is called here")]
fn a_process_whose_sandbox_denies_every_read_gets_a_diagnosis() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc answers here");
    };
    if !has_proc() {
        return;
    }
    child::forked(|| {
        // SAFETY: null is always allowed.
        unsafe { vdso_time::vdso::set_address(std::ptr::null()) }.expect("the first call");
        let finding = check(&Call::USUAL).unwrap_err();
        // Nothing is known about the calls of an emulator itself.
        let is_emulated = finding.cause == Cause::Emulated;
        let expected = if is_emulated {
            Location::Unknown
        } else {
            Location::Kernel
        };
        assert_eq!(finding.location, expected, "{finding}");
        assert!(is_emulated || finding.cause == Cause::NoVdso, "{finding}");
        if !filter::deny(&filter::clock_calls(abi), libc::EPERM) {
            return;
        }
        let diagnosis = diagnose().unwrap();
        assert!(diagnosis.vdso.is_err(), "{diagnosis}");
        assert_eq!(diagnosis.cause, Cause::Refused, "{diagnosis}");
        assert_eq!(
            diagnosis.location(&Call::USUAL),
            Location::Unknown,
            "{diagnosis}"
        );
        assert!(diagnosis.verdict.contains("EPERM"), "{diagnosis}");
        // CLOCK_MONOTONIC cannot time the reads.
        assert!(
            diagnosis
                .measurements
                .iter()
                .all(|measurement| measurement.ns.is_none()),
            "{diagnosis}"
        );
        assert!(
            diagnosis.to_string().contains("The reads are not timed"),
            "{diagnosis}"
        );
    });
}

#[test]
#[allow(unsafe_code, reason = "prctl(2) is called here")]
fn a_process_that_a_read_of_the_counter_would_end_gets_an_error() {
    if !["x86", "x86_64"].contains(&ARCH) {
        return not_run_here("this test denies the counter of x86 only");
    }
    child::forked(|| {
        // SAFETY: `PR_SET_TSC` takes a mode. This child does not read the counter afterwards.
        if unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) } != 0 {
            return not_run_here("PR_SET_TSC");
        }
        let error = diagnose().unwrap_err().to_string();
        let finding = check(&Call::USUAL).unwrap_err();
        assert!(
            error.contains("PR_SET_TSC") && finding.message == error,
            "{error} {finding}"
        );
        assert_eq!(finding.location, Location::Unknown);
    });
}

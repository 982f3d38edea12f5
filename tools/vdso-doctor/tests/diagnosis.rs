//! Compares the diagnosis with what follows from the clock source and the kernel's version.

use std::env::consts::ARCH;
use std::mem::offset_of;
use std::time::Duration;
use std::{fs, thread};

use test_support::{child, cpus, filter, has_proc, not_run_here, oracle};
use vdso_doctor::{Call, Evidence, Location, Measurement, check, diagnose};
use vdso_time::__private::NATIVE;
use vdso_time::ClockId;

/// Returns where a read is answered according to Linux's lib/vdso/gettimeofday.c, which kernels
/// have used since Linux 5.3 (arm: 5.5). Returns `None` for older kernels, and for clocks that only
/// some kernels have.
fn expected(read: Call, counter: bool) -> Option<Location> {
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    let is_new = oracle::kernel_is(5, 5);
    let in_user_space = match read {
        Call::Getcpu if ["x86_64", "s390x", "loongarch64", "powerpc64"].contains(&ARCH) => has_vdso,
        Call::Getcpu if ARCH == "riscv64" => false,
        Call::Time | Call::ClockGettime(ClockId::REALTIME_COARSE | ClockId::MONOTONIC_COARSE) => {
            has_vdso
        }
        Call::Gettimeofday | Call::ClockGettime(ClockId::REALTIME | ClockId::MONOTONIC) => counter,
        Call::ClockGettime(ClockId::MONOTONIC_RAW | ClockId::BOOTTIME | ClockId::TAI) if is_new => {
            counter
        }
        Call::ClockGettime(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) => false,
        // A resolution is a constant of the kernel, whatever the clock source.
        Call::ClockGetres(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) if is_new => false,
        Call::ClockGetres(clock) if is_new && has_vdso && clock.as_raw() < 8 => true,
        _ => return None,
    };
    Some(if in_user_space {
        Location::UserSpace
    } else {
        Location::Kernel
    })
}

#[test]
fn each_read_is_where_the_clock_source_is_read() {
    let Some(counter) = oracle::counter_is_in_user_space() else {
        return;
    };
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    let diagnosis = diagnose().unwrap();
    assert_eq!(diagnosis.vdso.is_ok(), has_vdso);
    if has_vdso && diagnosis.unproved.is_some() {
        return not_run_here("nothing can be proved");
    }
    if has_vdso {
        if let Some(cpus) = cpus::allowed() {
            assert_eq!(diagnosis.cpus, cpus, "{diagnosis}");
        }
    }
    let mut seen = 0;
    for measurement in &diagnosis.measurements {
        let Some(expected) = expected(measurement.call, counter) else {
            continue;
        };
        seen += 1;
        assert_eq!(measurement.location, expected, "{measurement:?}");
        let location = check(&[measurement.call])
            .map_or_else(|finding| finding.location, |()| Location::UserSpace);
        assert_eq!(location, expected, "{measurement:?}");
        if has_vdso {
            let Measurement {
                evidence,
                calls,
                entered,
                ..
            } = measurement;
            assert_eq!(*evidence, Evidence::Proved, "{measurement:?}");
            assert_eq!(
                *entered,
                if expected == Location::Kernel {
                    *calls
                } else {
                    Some(0)
                },
                "{measurement:?}"
            );
            assert!(*calls >= Some(1000), "{measurement:?}");
        }
    }
    assert!(seen >= 8, "{diagnosis}");
}

/// Diagnoses a thread whose sandbox denies the clock calls, or denies the doctor its filter.
#[test]
#[expect(clippy::too_many_lines, reason = "a table, and what all its rows have")]
fn a_thread_in_a_sandbox_gets_a_diagnosis() {
    let Some(counter) = oracle::counter_is_in_user_space() else {
        return;
    };
    if oracle::sysinfo_ehdr() == 0 {
        return not_run_here("there is no vDSO");
    }
    let Some(abi) = NATIVE else {
        return not_run_here("there is no table");
    };
    // If the vDSO makes the system call, the sandbox denies it, so nothing answers.
    let location = if counter {
        Location::UserSpace
    } else {
        Location::Unknown
    };
    // A count on one of several CPUs does not prove user space.
    let anywhere = if counter {
        Location::Unknown
    } else {
        Location::Kernel
    };
    let cpus = cpus::allowed().map_or(1, |cpus| cpus.len());
    let here = if counter && cpus == 1 {
        Location::UserSpace
    } else {
        anywhere
    };
    for (denied, expected, why) in [
        (filter::clock_calls(abi), location, ""),
        (
            vec![libc::SYS_prctl as u32],
            Location::Unknown,
            "denies seccomp filters (EPERM",
        ),
        (
            vec![libc::SYS_sched_setaffinity as u32],
            here,
            "sched_setaffinity",
        ),
        (
            vec![libc::SYS_sched_getaffinity as u32],
            anywhere,
            "sched_getaffinity",
        ),
    ] {
        println!("denied: {denied:?}");
        let diagnose = || {
            if !filter::deny(&denied, libc::EPERM) {
                return None;
            }
            Some((diagnose().unwrap(), check(&Call::USUAL)))
        };
        let seen = thread::scope(|scope| scope.spawn(diagnose).join().unwrap());
        let Some((diagnosis, checked)) = seen else {
            return;
        };
        assert_eq!(diagnosis.platform.supervisor, None, "{diagnosis}");
        // The costs prove nothing, so they do not change the location.
        assert_eq!(diagnosis.location(&Call::USUAL), expected, "{diagnosis}");
        let report = diagnosis.to_string();
        let words: Vec<&str> = report.split_whitespace().collect();
        let is_proof_shown = words.join(" ").contains("evidence proof: 1000");
        assert_eq!(is_proof_shown, diagnosis.unproved.is_none(), "{diagnosis}");
        let Err(finding) = checked else {
            assert_eq!(expected, Location::UserSpace);
            continue;
        };
        assert_eq!(finding.location, expected, "{finding}");
        assert!(!counter || finding.message.contains(why), "{finding}");
    }
}

/// Runs under a filter that rejects small masks. A kernel for more than 1024 CPUs rejects a mask
/// with room for 1024.
#[test]
fn more_cpus_than_libcs_masks_have_room_for_are_no_obstacle() {
    let location =
        || check(&Call::USUAL).map_or_else(|finding| finding.location, |()| Location::UserSpace);
    let refuses_small_masks = || {
        let load = |offset: usize| {
            (
                libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
                0,
                0,
                offset as u32,
            )
        };
        let low = if cfg!(target_endian = "big") { 4 } else { 0 };
        let size = offset_of!(libc::seccomp_data, args) + 8 + low;
        let program = [
            load(offset_of!(libc::seccomp_data, nr)),
            (
                libc::BPF_JMP | libc::BPF_JEQ,
                0,
                3,
                libc::SYS_sched_getaffinity as u32,
            ),
            load(size),
            (libc::BPF_JMP | libc::BPF_JGT, 1, 0, 1024 / 8),
            (libc::BPF_RET, 0, 0, filter::error(libc::EINVAL)),
            (libc::BPF_RET, 0, 0, filter::ALLOW),
        ];
        filter::install(&mut program.map(|(code, jt, jf, k)| libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        }))
    };
    let work = || {
        let before = location();
        match refuses_small_masks() {
            Ok(()) => assert_eq!(location(), before),
            Err(error) => not_run_here(error),
        }
    };
    thread::scope(|scope| scope.spawn(work).join().unwrap());
}

#[test]
fn a_check_changes_nothing_of_the_calling_thread() {
    if !has_proc() {
        return;
    }
    let state = || {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let fields = [
            "Sig",
            "Shd",
            "NoNewPrivs",
            "Seccomp",
            "Cpus_allowed",
            "Threads",
            "Cap",
        ];
        let lines = status
            .lines()
            .filter(|line| fields.iter().any(|field| line.starts_with(field)));
        lines.map(String::from).collect::<Vec<_>>()
    };
    // This runs in a process of its own, because other tests start threads.
    child::forked(|| {
        let before = state();
        let checked = check(&Call::USUAL);
        // A thread can be in /proc for some time after it was joined.
        let pause = || thread::sleep(Duration::from_millis(10));
        (0..1000).inspect(|_| pause()).find(|_| state() == before);
        assert_eq!(before, state(), "{checked:?}");
    });
}

//! The diagnosis is what follows from the clock source and the kernel's version.

use std::env::consts::ARCH;
use std::{io, thread};

use nix::sys::signal::{SigSet, Signal};
use test_support::{filter, not_run, not_run_here, oracle};
use vdso_doctor::{Diagnosis, Evidence, Method, Place, Read, Reading, diagnose, diagnose_with};
use vdso_time::ClockId;
use vdso_time::arch::NATIVE;

fn is_proof(diagnosis: &Diagnosis) -> bool {
    matches!(diagnosis.method, Some(Method::Dispatch | Method::Seccomp))
}

/// Where lib/vdso/gettimeofday.c of Linux reads a clock since 5.3 (arm since 5.5). Nothing for
/// older kernels, and for clocks that only some kernels have.
fn expected(read: Read, counter: bool) -> Option<Place> {
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    let is_new = oracle::kernel_is(5, 5);
    let in_user_space = match read {
        Read::Getcpu if ARCH == "x86_64" => has_vdso,
        Read::Time | Read::ClockGettime(ClockId::REALTIME_COARSE | ClockId::MONOTONIC_COARSE) => has_vdso,
        Read::Gettimeofday | Read::ClockGettime(ClockId::REALTIME | ClockId::MONOTONIC) => counter,
        Read::ClockGettime(ClockId::MONOTONIC_RAW | ClockId::BOOTTIME | ClockId::TAI) if is_new => counter,
        Read::ClockGettime(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) => false,
        // A resolution is a constant of the kernel, whatever the clock source.
        Read::ClockGetres(ClockId::PROCESS_CPUTIME | ClockId::THREAD_CPUTIME) if is_new => false,
        Read::ClockGetres(clock) if is_new && has_vdso && clock.as_raw() < 8 => true,
        _ => return None,
    };
    Some(if in_user_space { Place::UserSpace } else { Place::Kernel })
}

#[test]
fn each_read_is_where_the_clock_source_is_read() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    let has_vdso = oracle::sysinfo_ehdr() != 0;
    for method in [Method::Dispatch, Method::Seccomp] {
        let diagnosis = match diagnose_with(Some(method), &Read::USUAL) {
            Ok(diagnosis) => diagnosis,
            Err(error) => {
                not_run_here(method.name(), error);
                continue;
            }
        };
        assert_eq!(diagnosis.vdso.is_ok(), has_vdso);
        let mut seen = 0;
        for reading in &diagnosis.reads {
            let Some(expected) = expected(reading.read, counter) else { continue };
            seen += 1;
            assert_eq!(reading.place, expected, "{reading:?}");
            if has_vdso {
                let Reading { evidence, reads, entered, outside, .. } = reading;
                assert_eq!(*evidence, Evidence::Proved, "{reading:?}");
                assert_eq!(*entered, if expected == Place::Kernel { *reads } else { Some(0) }, "{reading:?}");
                assert!(*reads >= Some(1000) && *outside == Some(0), "{reading:?}");
            }
        }
        assert!(seen >= 8, "{diagnosis}");
    }
}

#[test]
fn the_place_of_several_reads_is_the_worst_that_is_known() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    // No kernel has clocks 10 and 999.
    let named = |names: &str| names.split(',').map(|name| name.parse().unwrap()).collect::<Vec<Read>>();
    let diagnosis = diagnose_with(None, &named("999")).unwrap();
    if !is_proof(&diagnosis) {
        return not_run_here("dispatch", "nothing can be proved");
    }
    let usual = if counter { Place::UserSpace } else { Place::Kernel };
    for (names, expected) in [
        ("REALTIME,MONOTONIC", usual),
        ("CLOCK_MONOTONIC", usual),
        ("gettimeofday", usual),
        ("5,monotonic_coarse,time", Place::UserSpace),
        ("2", Place::Kernel),
        ("MONOTONIC_COARSE,THREAD_CPUTIME_ID", Place::Kernel),
        ("10", Place::Unknown),
        ("10,2", Place::Kernel),
        ("Time,10,10", Place::Unknown),
        ("999", Place::Unknown),
    ] {
        assert_eq!(diagnosis.place(&named(names)), expected, "{names}\n{diagnosis}");
    }
    // A cost is no proof.
    assert_eq!(diagnose_with(Some(Method::Timing), &[]).unwrap().place(&Read::USUAL), Place::Unknown);
}

type Restrict<'a> = &'a (dyn Fn() -> io::Result<()> + Sync);

/// A thread that a sandbox denies the clock calls, or whose parent blocked SIGSYS.
#[test]
fn a_restricted_thread_gets_a_diagnosis() {
    let Some(counter) = oracle::counter_is_in_user_space() else { return };
    let Some(abi) = NATIVE.filter(|_| oracle::sysinfo_ehdr() != 0) else {
        return not_run("there is no vDSO, or no table");
    };
    let deny = || filter::restrict(&filter::clock_calls(abi), filter::error(libc::EPERM));
    let block = || {
        let mut sigsys = SigSet::empty();
        sigsys.add(Signal::SIGSYS);
        Ok(sigsys.thread_block()?)
    };
    // If the vDSO asks the kernel for the time, the filter leaves no answer.
    let (denied, blocked) =
        if counter { (Place::UserSpace, Place::UserSpace) } else { (Place::Unknown, Place::Kernel) };
    for (missing, restrict, expected) in
        [("seccomp", &deny as Restrict<'_>, denied), ("dispatch", &block as Restrict<'_>, blocked)]
    {
        let diagnosis =
            thread::scope(|scope| scope.spawn(|| restrict().map(|()| diagnose().unwrap())).join().unwrap());
        match diagnosis {
            Err(error) => not_run_here(missing, error),
            Ok(diagnosis) if !is_proof(&diagnosis) => not_run_here("dispatch", "nothing can be proved"),
            Ok(diagnosis) => assert_eq!(diagnosis.place(&Read::USUAL), expected, "{missing}\n{diagnosis}"),
        }
    }
}

/// The statics and the signal handler of the dispatch are for one thread at a time.
#[test]
fn threads_can_diagnose_at_once() {
    let all: Vec<_> = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| diagnose().unwrap()));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for diagnosis in &all[1..] {
        assert_eq!(diagnosis.method, all[0].method);
        if is_proof(diagnosis) {
            let places = |diagnosis: &Diagnosis| {
                diagnosis.reads.iter().map(|reading| (reading.read, reading.place)).collect::<Vec<_>>()
            };
            assert_eq!(places(diagnosis), places(&all[0]));
        }
    }
}

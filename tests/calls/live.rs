//! The promise: on both paths every function answers what the kernel answers, and leaves `errno`
//! alone.

#![allow(unsafe_code, reason = "errno is written and read")]

use std::env;
use std::thread;
use std::time::Duration;

use test_support::functions::{assert_all_right, assert_clock_right};
use test_support::{FUNCTIONS, PATHS, assert_bracketed, child, cpus, oracle};
use vdso_time::__private::NATIVE;
use vdso_time::vdso::{Functions, Vdso, VdsoFn};
use vdso_time::{Cause, ClockId, Errno, ReadCost, Route, Timespec, syscall};

/// Shows that no answer is stale, so no clock goes back from one path to another (LTP's
/// clock_gettime04, vdsotest's `verify`).
#[test]
fn every_answer_lies_between_two_of_the_kernels() {
    for path in &PATHS {
        (0..2000).for_each(|_| assert_all_right(path));
    }
}

/// Checks what the kernel's selftest `correctness`, LTP's clock_gettime02 and vdsotest's `abi`
/// check.
#[test]
fn every_id_answers_as_the_kernel_does() {
    const UNKNOWN: [i32; 14] = [
        -1,
        12,
        13,
        14,
        15,
        24,
        25,
        31,
        32,
        63,
        64,
        99,
        i32::MAX,
        i32::MIN,
    ];
    (0..12)
        .chain(UNKNOWN)
        .map(ClockId::from_raw)
        .for_each(assert_clock_right);
    for id in UNKNOWN {
        assert_eq!(oracle::clock_gettime(id), Err(libc::EINVAL), "{id}");
        assert_eq!(
            vdso_time::read_cost(ClockId::from_raw(id)),
            ReadCost::Unknown,
            "{id}"
        );
    }
}

/// Shows that there is a pointer where the vDSO answers, and nowhere else.
#[test]
fn typed_pointers_are_those_of_the_routes() {
    let address = |function: Option<VdsoFn>| match function? {
        VdsoFn::Timespec64(code) => Some(code as usize),
        VdsoFn::Timespec32(code) => Some(code as usize),
        VdsoFn::Timeval64(code) => Some(code as usize),
        VdsoFn::Time64(code) => Some(code as usize),
        VdsoFn::Getcpu(code) => Some(code as usize),
        other => panic!("{other:?}"),
    };
    let Functions {
        time,
        gettimeofday,
        clock_gettime,
        clock_getres,
        getcpu,
        ..
    } = Vdso::locate()
        .map(|vdso| vdso.functions())
        .unwrap_or_default();
    let pointers = [time, gettimeofday, clock_gettime, clock_getres, getcpu].map(address);
    for (pointer, (name, route)) in pointers.into_iter().zip(vdso_time::routes().functions()) {
        let expected = if let Route::Vdso { address, .. } = route {
            Some(address)
        } else {
            None
        };
        assert_eq!(pointer, expected, "{name}");
    }
}

/// Shows that no time is measured where the answer is known.
#[test]
fn a_clock_that_only_the_kernel_answers_costs_a_system_call() {
    let is_vdso = matches!(vdso_time::routes().clock_gettime, Route::Vdso { .. });
    let expected = match NATIVE {
        Some(_) => ReadCost::SystemCall,
        None => ReadCost::Unknown,
    };
    for clock in [
        ClockId::MONOTONIC,
        ClockId::PROCESS_CPUTIME,
        ClockId::THREAD_CPUTIME,
        ClockId::thread_cpu(0),
    ] {
        let cost = vdso_time::read_cost(clock);
        let is_known = clock != ClockId::MONOTONIC || !is_vdso;
        assert!(!is_known || cost == expected, "{clock}: {cost:?}");
    }
    assert_eq!(
        vdso_time::read_cost(ClockId::from_fd(1 << 20)),
        ReadCost::Unknown
    );
}

/// Returns the causes that a coarse clock can have. `counter` says whether the counter is read in
/// user space.
fn coarse_causes(counter: bool) -> &'static [Cause] {
    if counter {
        return &[
            Cause::Fine,
            Cause::CannotTell,
            Cause::ClockNotServed,
            Cause::Unexplained,
        ];
    }
    // The kernel's vDSO reads it with every clock source. QEMU's, in user mode, makes the system
    // call.
    if env::var_os("VDSO_TIME_EMULATED").is_some_and(|kind| kind == "user") {
        return &[
            Cause::Fine,
            Cause::CannotTell,
            Cause::ClockSource,
            Cause::CounterDistrusted,
        ];
    }
    &[
        Cause::Fine,
        Cause::CannotTell,
        Cause::NoVdso,
        Cause::NoFunction,
        Cause::BlankedNames,
    ]
}

#[test]
fn a_cause_is_the_one_of_the_clock_and_of_the_clock_source() {
    let has_table = NATIVE.is_some();
    let Some(counter) = oracle::counter_is_in_user_space() else {
        return;
    };
    for (clock, causes) in [
        (ClockId::from_raw(99), &[Cause::Refused][..]),
        (
            ClockId::THREAD_CPUTIME,
            &[
                Cause::ClockNotServed,
                Cause::NoVdso,
                Cause::NoFunction,
                Cause::BlankedNames,
            ],
        ),
        (
            ClockId::MONOTONIC,
            if counter {
                // Its measurement can be disturbed, and each read is trapped in an emulator.
                &[Cause::Fine, Cause::CannotTell, Cause::Unexplained]
            } else {
                &[
                    Cause::CannotTell,
                    Cause::NoVdso,
                    Cause::NoFunction,
                    Cause::BlankedNames,
                    Cause::ClockSource,
                    Cause::CounterDistrusted,
                ]
            },
        ),
        (ClockId::MONOTONIC_COARSE, coarse_causes(counter)),
    ] {
        // A busy machine can disturb a measurement.
        let found = [(); 3].map(|()| vdso_time::explain(clock));
        assert!(
            found
                .iter()
                .any(|cause| causes.contains(cause) || (!has_table && *cause == Cause::CannotTell)),
            "{clock}: {found:?}"
        );
    }
}

/// Waits for a new second, which `CLOCK_REALTIME` reaches up to a timer tick before time(2) does.
#[test]
fn time_is_the_second_of_the_coarse_clock() {
    let now = oracle::clock_gettime(libc::CLOCK_REALTIME).unwrap();
    let rest = u64::try_from(1_000_000_000 - now.tv_nsec).unwrap();
    thread::sleep(Duration::from_nanos(rest).saturating_sub(Duration::from_millis(20)));
    let start = oracle::seconds();
    let mut is_over = false;
    while !is_over {
        is_over = oracle::seconds() != start;
        for path in &PATHS {
            assert_bracketed(path.name, true, oracle::seconds, path.time);
        }
        assert_bracketed("try_time", true, oracle::seconds, vdso_time::try_time);
    }
}

#[test]
fn getcpu_follows_a_move_and_a_fork() {
    let Some(numbers) = cpus::allowed() else {
        return;
    };
    let assert_own_cpu = || {
        for &number in &numbers {
            cpus::pin(number);
            for path in &PATHS {
                let here = (path.getcpu)().map(|here| (here.cpu, here.node)).unwrap();
                assert_eq!(here, oracle::getcpu().unwrap(), "{}", path.name);
                assert_eq!(here.0, number as u32, "{}", path.name);
            }
        }
    };
    child::forked(|| {
        assert_own_cpu();
        child::forked(assert_own_cpu);
    });
}

/// Accepts 1 ns: since Linux 6.17 the vDSO answers it whether the auxiliary clock exists or not.
#[test]
fn the_resolution_of_an_auxiliary_clock_is_the_vdsos_answer() {
    for clock in (0..8).map(ClockId::aux) {
        let kernel = oracle::clock_getres(clock.as_raw());
        let ours = vdso_time::clock_getres(clock).map_err(Errno::raw_os_error);
        let nanosecond = Ok(Timespec {
            tv_sec: 0,
            tv_nsec: 1,
        });
        assert!(
            [kernel, nanosecond].contains(&ours),
            "{clock:?}: {ours:?}, {kernel:?}"
        );
        assert_eq!(
            syscall::clock_getres(clock).map_err(Errno::raw_os_error),
            kernel,
            "{clock:?}"
        );
    }
}

/// Fails if a call changes `errno`.
fn assert_errno_unchanged<T>(what: &str, call: impl FnOnce() -> T) {
    const MARK: i32 = 4242;
    let errno = oracle::errno();
    // SAFETY: it is this thread's own.
    unsafe { errno.write(MARK) };
    call();
    // SAFETY: it is this thread's own.
    let found = unsafe { errno.read() };
    assert_eq!(found, MARK, "{what} changes errno");
}

#[test]
fn no_call_changes_errno() {
    // libc's getauxval says ENOENT, as in a process without a vDSO.
    assert_errno_unchanged("a missing entry", || {
        vdso_time::__private::auxval(usize::MAX)
    });
    assert_errno_unchanged("locate", Vdso::locate);
    assert_errno_unchanged("routes", vdso_time::routes);
    let clocks = [
        ClockId::MONOTONIC,
        ClockId::THREAD_CPUTIME,
        ClockId::from_raw(-1),
        ClockId::from_raw(99),
    ];
    for (path, clock) in PATHS
        .iter()
        .flat_map(|path| clocks.map(|clock| (path, clock)))
    {
        for function in &FUNCTIONS {
            assert_errno_unchanged(function.name, || (function.read)(path, clock));
        }
    }
}

//! Denied system calls: a typed error or the documented fallback, never a wrong time, and no panic but that of `now()`.
//!
//! A program that says it has no vDSO (`init` with null) has nothing but the system calls, which a seccomp filter denies.

#![allow(unsafe_code, reason = "init is called here")]

use test_support::filter;

use std::panic;
use std::ptr;

use test_support::{child, not_run, not_run_here};
use vdso_time::arch::{Function, NATIVE};
use vdso_time::vdso::LocateError;
use vdso_time::{ClockId, Errno, FallbackReason, Instant, Route, SystemTime, routes, syscall};

/// The system calls of some functions.
fn numbers(functions: &[&Function]) -> Vec<u32> {
    functions.iter().flat_map(|function| function.syscalls_in_order(false).map(|call| call.number)).collect()
}

/// Makes the kernel answer these system calls of this thread with an error.
fn deny(denied: &[u32], error: i32) -> bool {
    let Some(abi) = NATIVE else { return false };
    let denied = filter::install(&mut filter::denying(abi, denied, error));
    denied.map_err(|error| not_run_here("seccomp", format!("seccomp: {error}"))).is_ok()
}

/// Says that there is no vDSO, before the first call.
fn without_vdso() {
    // SAFETY: null is always allowed.
    unsafe { vdso_time::init(ptr::null()) };
}

#[test]
fn without_a_vdso_the_kernel_answers() {
    child::fresh(1, || {
        without_vdso();
        let routes = routes();
        for route in
            [routes.time, routes.gettimeofday, routes.clock_gettime, routes.clock_getres, routes.getcpu]
        {
            match route {
                Route::Syscall { reason, .. } => {
                    assert_eq!(reason, FallbackReason::NoVdso(LocateError::Absent));
                }
                other => assert_eq!((other, NATIVE.is_none()), (Route::Libc, true)),
            }
        }
        let before = syscall::clock_gettime(ClockId::MONOTONIC).unwrap();
        let ours = vdso_time::clock_gettime(ClockId::MONOTONIC).unwrap();
        assert!(before <= ours && ours <= syscall::clock_gettime(ClockId::MONOTONIC).unwrap());
        assert!((syscall::time().unwrap()..=syscall::time().unwrap() + 1).contains(&vdso_time::time()));
        assert_eq!(vdso_time::clock_gettime(ClockId::from_raw(99)), Err(Errno::EINVAL));
    });
}

#[test]
fn where_all_is_denied_the_error_is_told() {
    for error in [Errno::EPERM, Errno::ENOSYS] {
        child::fresh(1, || {
            without_vdso();
            let Some(abi) = NATIVE else { return not_run("libc makes the calls") };
            if !deny(&filter::clock_calls(abi), error.raw_os_error()) {
                return;
            }
            assert_eq!(vdso_time::time(), -1);
            assert_eq!(vdso_time::try_time(), Err(error));
            assert_eq!(syscall::time(), Err(error));
            assert_eq!(vdso_time::gettimeofday(), Err(error));
            assert_eq!(syscall::gettimeofday(), Err(error));
            assert_eq!(vdso_time::getcpu(), Err(error));
            assert_eq!(syscall::getcpu(), Err(error));
            for clock in
                [ClockId::REALTIME, ClockId::MONOTONIC_COARSE, ClockId::THREAD_CPUTIME, ClockId::from_fd(9)]
            {
                assert_eq!(vdso_time::clock_gettime(clock), Err(error), "{clock:?}");
                assert_eq!(syscall::clock_gettime(clock), Err(error), "{clock:?}");
                assert_eq!(vdso_time::clock_getres(clock), Err(error), "{clock:?}");
                assert_eq!(syscall::clock_getres(clock), Err(error), "{clock:?}");
            }
            assert_eq!(Instant::try_now(), Err(error));
            assert_eq!(SystemTime::try_now(), Err(error));
        });
    }
}

#[test]
fn now_alone_panics_and_says_where_and_why() {
    child::fresh(1, || {
        without_vdso();
        let Some(abi) = NATIVE else { return not_run("libc makes the calls") };
        if !deny(&filter::clock_calls(abi), libc::EPERM) {
            return;
        }
        let told = |now: fn()| {
            panic::set_hook(Box::new(|info| {
                assert_eq!(info.location().map(panic::Location::file), Some(file!()));
            }));
            let panic = panic::catch_unwind(now).expect_err("it panics");
            let _ = panic::take_hook();
            panic.downcast_ref::<String>().expect("a message").clone()
        };
        let reads: [fn(); 3] = [
            || _ = Instant::now(),
            || _ = SystemTime::now(),
            || _ = Instant::<vdso_time::Monotonic>::from_nanos(0).elapsed(),
        ];
        for now in reads {
            assert_eq!(told(now), "the clock cannot be read: EPERM");
        }
    });
}

/// A function is answered as long as one of its system calls is allowed.
#[test]
fn a_denied_system_call_is_made_up_for_by_another() {
    let Some(abi) = NATIVE else { return not_run("libc makes the calls") };
    let seconds = || syscall::time().unwrap();
    for (task, function, read) in [
        ("time", &abi.time, (|| syscall::time().map(|_| ())) as fn() -> Result<(), Errno>),
        ("gettimeofday", &abi.gettimeofday, || syscall::gettimeofday().map(|_| ())),
        ("clock_gettime", &abi.clock_gettime, || syscall::clock_gettime(ClockId::REALTIME).map(|_| ())),
    ] {
        let all = numbers(&[function]);
        // EINVAL is final for a clock that the caller chose.
        let errors = [libc::EPERM, libc::ENOSYS, libc::EINVAL];
        let errors = &errors[..if task == "clock_gettime" { 2 } else { 3 }];
        for (allowed, error) in
            (0..all.len()).flat_map(|allowed| errors.iter().map(move |error| (allowed, *error)))
        {
            child::forked(|| {
                let now = seconds();
                // 32 bits of seconds end in January 2038, and then there is an error instead of a time.
                let is_late = now > i64::from(i32::MAX) && allowed >= function.syscalls.len();
                let denied: Vec<_> = all.iter().copied().filter(|number| *number != all[allowed]).collect();
                if deny(&denied, error) {
                    let expected = if is_late { Err(Errno::EOVERFLOW) } else { Ok(()) };
                    assert_eq!(read(), expected, "{task}, system call {} alone", all[allowed]);
                    if task == "time" && !is_late {
                        assert!((now..=now + 1).contains(&seconds()));
                    }
                }
            });
        }
    }
}

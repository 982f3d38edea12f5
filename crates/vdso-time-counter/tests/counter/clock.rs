//! Tests of the counter clock: its status, its distance from the kernel's clock, and its order
//! across threads.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::io;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use test_support::nix::sys::signal::Signal;
use test_support::nix::unistd::write;
use test_support::{child, cpus, filter, not_run_here};
use vdso_time::Errno;
use vdso_time_counter::{
    self as counter, CounterMonotonic, CounterMonotonicUnordered, CounterRealtimeUnordered, State,
    Status, Ticks, Unavailable,
};

use crate::{assert_near, expected, is_used, kernel, settle};

/// Compares the status with the kernel's verdict, with and without a vDSO.
#[test]
fn the_status_before_and_after_calibration_is_the_kernels_verdict() {
    for address in [None, Some(0)] {
        child::forked(|| {
            address.into_iter().for_each(child::set_vdso);
            let State {
                status,
                error_bound,
                frequency,
                ..
            } = counter::state();
            assert_eq!(
                (status, error_bound, frequency),
                (Status::Calibrating, Duration::ZERO, None)
            );
            assert_eq!(counter::check(), expected());
            assert_eq!(counter::state().status, Status::Calibrating);
            let State {
                status,
                error_bound,
                frequency,
                ..
            } = settle();
            println!("{status:?}: {status}");
            let is_used = expected().is_ok();
            assert_eq!(
                status,
                expected().map_or_else(Status::Unavailable, |()| Status::Used)
            );
            assert_eq!(
                (error_bound > Duration::ZERO, frequency.is_some()),
                (is_used, is_used)
            );
            let bounds = (0..1000).map(|_| {
                let _ = CounterMonotonicUnordered::now();
                counter::state().error_bound
            });
            assert_eq!(bounds.max() >= Some(Duration::from_nanos(30)), is_used);
        });
    }
}

/// The end of a child whose clock would have had to ask the kernel in the sandbox, because reads
/// became slower or the machine was stopped. Without an answer the clock stops using the counter.
const HAD_TO_ASK: child::End = child::End::Status(3);

/// Reads and checks in a sandbox that kills the process for the clock's system calls, and for those
/// that find the vDSO. `prepare_for_sandbox()` has already made all of these calls, even if the
/// clock was never read.
///
/// On a busy machine a clock can have to ask the kernel, so there are several tries. A read that
/// makes a system call is killed in each of them.
#[test]
fn after_prepare_for_sandbox_a_sandbox_that_kills_notices_no_read() {
    const TRIES: u32 = 5;
    for is_measured in [false, true] {
        let mut end = HAD_TO_ASK;
        for _ in 0..TRIES {
            end = child::end_of(|| {
                read_in_sandbox(is_measured);
                true
            });
            if end != HAD_TO_ASK {
                break;
            }
        }
        assert_eq!(end, child::SUCCESS, "is measured before: {is_measured}");
    }
}

/// Puts this process into the sandbox, and reads the clock there. Ends it with [`HAD_TO_ASK`] if
/// the clock stopped using the counter because it would have had to ask the kernel.
fn read_in_sandbox(is_measured: bool) {
    let calls = [
        libc::SYS_prctl,
        libc::SYS_openat,
        libc::SYS_read,
        libc::SYS_close,
        libc::SYS_rt_sigprocmask,
        #[cfg(target_pointer_width = "64")]
        libc::SYS_mmap,
        #[cfg(target_pointer_width = "32")]
        libc::SYS_mmap2,
        libc::SYS_getpid,
    ];
    if is_measured {
        settle();
    }
    let expected = expected();
    let status = counter::prepare_for_sandbox();
    match expected {
        Err(reason) => assert_eq!(status, Status::Unavailable(reason)),
        // A busy machine can need more than 50 ms, or pause until the segment has ended.
        Ok(()) => assert!(
            matches!(status, Status::Used | Status::Calibrating | Status::Stale),
            "{status}"
        ),
    }
    // The usual hook opens the executable for the backtrace, and the sandbox kills for that. So an
    // assertion that failed looked like a read that makes a system call.
    panic::set_hook(Box::new(|panic| {
        let _ = write(io::stderr(), format!("{panic}\n").as_bytes());
    }));
    if let Err(error) = filter::restrict(&calls.map(|call| call as u32), filter::KILL_PROCESS) {
        return not_run_here(error);
    }
    let segments = counter::state().statistics.segments;
    for _ in 0..100_000 {
        assert!(
            CounterMonotonicUnordered::now().as_nanos() > 0
                && CounterRealtimeUnordered::now().as_nanos() > 0
        );
    }
    let state = counter::state();
    assert!(state.statistics.segments >= segments);
    let found = counter::check();
    if found != expected && found == Err(Unavailable::SystemCallsForbidden) {
        // A clock that calibrates again asks at the next read.
        assert!(
            matches!(
                state.status,
                Status::Unavailable(Unavailable::SystemCallsForbidden) | Status::Calibrating
            ),
            "{found:?}, {state:?}"
        );
        let _ = write(io::stderr(), format!("{state:?}\n").as_bytes());
        child::leave(3);
    }
    assert_eq!(found, expected, "{state:?}");
}

#[test]
fn the_hypervisor_can_be_trusted_only_before_the_first_read() {
    child::forked(|| {
        let _ = CounterMonotonic::now();
        assert_eq!(counter::trust_hypervisor(), Err(Errno::EBUSY));
    });
    child::forked(|| {
        let _ = (counter::check(), counter::state());
        assert_eq!(counter::trust_hypervisor(), Ok(()), "neither is a read");
        let _ = CounterMonotonic::now();
        assert_eq!(counter::trust_hypervisor(), Ok(()), "it is trusted");
    });
}

#[test]
fn a_read_is_near_the_kernels_clock_also_after_a_pause() {
    child::forked(|| {
        let is_used = settle().status == Status::Used;
        (0..2_000).for_each(|_| assert_near());
        thread::sleep(Duration::from_millis(50));
        assert!(!is_used || counter::state().status == Status::Stale);
        assert_near();
        assert_eq!(settle().status == Status::Used, is_used);
    });
}

#[test]
fn ticks_agree_with_the_kernels_clock_by_their_frequency_and_by_their_time() {
    child::forked(|| {
        let read = || {
            (
                kernel(libc::CLOCK_MONOTONIC),
                Ticks::read_ordered(),
                kernel(libc::CLOCK_MONOTONIC),
            )
        };
        let early = read();
        if !is_used() {
            return;
        }
        let first = read();
        thread::sleep(Duration::from_millis(200));
        let second = read();
        let frequency = settle().frequency.unwrap();
        let expected = |nanos: i64| (u128::from(frequency) * nanos as u128 / 1_000_000_000) as u64;
        let least = expected(second.0 - first.2);
        let most = expected(second.2 - first.0);
        let ticks = second.1.as_raw() - first.1.as_raw();
        // 1 %, because an emulator's clocks are read at slightly different times.
        let allowed = least - least / 100..=most + most / 100;
        assert!(
            allowed.contains(&ticks),
            "{ticks} ticks, and not {allowed:?}"
        );
        // `early` is a value from before the measurement.
        for (before, ticks, after) in [early, read()] {
            let nanos = ticks.monotonic().unwrap().as_nanos();
            // The error is at most 100 us: a short measurement is off by at most 10 ppm, and this
            // test takes at most 10 s.
            let allowed = before - 100_000..after + 100_000;
            assert!(allowed.contains(&nanos), "{nanos} is not in {allowed:?}");
        }
        // Any value can be converted: a machine's counter can start before its clock, and a value
        // can come from a file.
        let at =
            |ticks: i64| Ticks::from_raw(early.1.as_raw().saturating_add_signed(ticks)).monotonic();
        let times =
            [-1 << 62, -1 << 50, -1 << 40, 0, 1 << 40, 1 << 62].map(|ticks| at(ticks).unwrap());
        assert!(times.is_sorted(), "{times:?}");
        let reads: [fn() -> Ticks; 4] = [
            Ticks::read_ordered,
            Ticks::read,
            || Ticks::try_read().unwrap(),
            Ticks::read_ordered,
        ];
        let values = reads.map(|read| read());
        assert!(values.is_sorted(), "{values:?}");
    });
}

/// Moves four threads over all the CPUs, as the kernel's time-warp-test does. No read may return an
/// earlier time than any read that had ended before it began.
#[test]
fn an_ordered_read_never_goes_back_on_any_cpu() {
    let end = child::end_of(|| {
        let Some(numbers) = cpus::allowed() else {
            return true;
        };
        let status = settle().status;
        let latest = AtomicU64::new(0);
        let reads = AtomicU64::new(0);
        let read = |first: usize| {
            let start = Instant::now();
            let mut turns = numbers.iter().cycle().skip(first);
            while start.elapsed() < Duration::from_secs(1) && cpus::pin(*turns.next().unwrap()) {
                let mut own = 0;
                for _ in 0..50_000 {
                    // The read whose time is in `latest` happened before this one.
                    let before = latest.load(Ordering::Acquire);
                    let now = CounterMonotonic::now().as_nanos() as u64;
                    assert!(now >= before.max(own), "{now} after {before} and {own}");
                    own = now;
                    latest.store(now, Ordering::Release);
                }
                reads.fetch_add(50_000, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            let read = &read;
            (0..4).for_each(|first| _ = scope.spawn(move || read(first)));
        });
        let reads = reads.into_inner();
        println!("{status:?}; {reads} ordered reads");
        reads > 1000 && settle().status == status
    });
    assert_eq!(end, child::SUCCESS);
}

/// Denies a thread the counter: it gets SIGSEGV, as in the vDSO, and before that `check` returns
/// the reason.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn a_thread_that_is_denied_the_counter_gets_sigsegv_as_in_the_vdso() {
    // SAFETY: the two numbers are `PR_SET_TSC` and `PR_TSC_SIGSEGV`.
    let deny_counter = || assert_eq!(unsafe { libc::prctl(26, 2) }, 0);
    let reads: [fn() -> bool; 2] = [
        || CounterMonotonicUnordered::now().as_nanos() > 0,
        || vdso_time::clock_gettime(vdso_time::ClockId::MONOTONIC).is_ok(),
    ];
    child::forked(|| {
        if !is_used() {
            return;
        }
        child::forked(|| {
            deny_counter();
            assert_eq!(counter::check(), Err(Unavailable::Denied));
        });
        for read in reads {
            let end = child::end_of(|| {
                deny_counter();
                read()
            });
            assert_eq!(end, child::End::Signal(Signal::SIGSEGV));
        }
    });
}

//! The promise: in a sandbox that kills, traps or refuses every clock call, the vDSO still answers.
//! Without a vDSO each function does what its documentation says. A thread outside of the sandbox
//! does not notice.

use std::ffi::{c_int, c_void};
use std::io;
use std::panic;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Instant as StdInstant;

use test_support::child::End;
use test_support::filter::{self, Action, KILL_PROCESS, TRAP, error};
use test_support::functions::{assert_all_right, assert_panics};
use test_support::nix::sys::signal::{SaFlags, Signal, raise};
use test_support::{CLOCKS, PATHS, child, not_run_here, oracle, signals};
use vdso_time::__private::{NATIVE, Syscall};
use vdso_time::{ClockId, Errno, Instant, Route, SystemTime, Tai, routes, syscall};

/// Puts this thread in a sandbox that does this at every clock call.
fn sandbox(action: Action) -> io::Result<()> {
    let abi = NATIVE.ok_or(io::ErrorKind::Unsupported)?;
    filter::restrict(&filter::clock_calls(abi), action)
}

/// Fails unless a thread outside of the sandbox gets answers on both paths.
#[track_caller]
fn check_free() {
    for path in &PATHS {
        assert_all_right(path);
    }
}

/// Returns the clocks that the vDSO reads without the counter, and the others if it can read the
/// counter. Older vDSOs have fewer.
fn clocks_of_the_vdso() -> Vec<ClockId> {
    match oracle::counter_is_in_user_space() {
        Some(true) if oracle::kernel_is(5, 5) => CLOCKS[..7].to_vec(),
        Some(true) => vec![
            ClockId::REALTIME_COARSE,
            ClockId::MONOTONIC_COARSE,
            ClockId::MONOTONIC,
        ],
        _ => vec![ClockId::REALTIME_COARSE, ClockId::MONOTONIC_COARSE],
    }
}

/// Kills for every clock call. A thread that survives made none. strace cannot show that.
#[test]
fn with_a_vdso_no_read_makes_a_system_call_and_no_sandbox_is_noticed() {
    let is_vdso = || matches!(routes().clock_gettime, Route::Vdso { .. });
    if child::end_of(is_vdso) != child::SUCCESS {
        return not_run_here("no vDSO answers in this process");
    }
    if !filter::works() {
        return;
    }
    let clocks = clocks_of_the_vdso();
    let kernel = |clock: &ClockId| oracle::clock_gettime(clock.as_raw()).unwrap();
    // Elsewhere some vDSOs have no getcpu, and some make the system call.
    let has_cpu =
        || cfg!(target_arch = "x86_64") && !matches!(routes().getcpu, Route::Syscall { .. });
    let sandboxed = |action| {
        sandbox(action).unwrap();
        let seconds = [vdso_time::time(), vdso_time::try_time().unwrap()];
        if clocks.len() > 2 {
            assert!(Instant::now() <= Instant::try_now().unwrap());
            assert!(SystemTime::now() <= SystemTime::try_now().unwrap());
            assert!(vdso_time::gettimeofday().unwrap().tv_sec >= seconds[0]);
        }
        assert!(!has_cpu() || vdso_time::getcpu().is_ok());
        let mut times = Vec::new();
        for clock in &clocks {
            assert!(vdso_time::clock_getres(*clock).is_ok());
            times.push(vdso_time::clock_gettime(*clock).unwrap());
        }
        (seconds, times)
    };
    for action in [KILL_PROCESS, TRAP, error(libc::EPERM), error(libc::ENOSYS)] {
        for free_is_first in [false, true] {
            child::forked(|| {
                if free_is_first {
                    check_free();
                }
                let before: Vec<_> = clocks.iter().map(kernel).collect();
                let (seconds, times) =
                    thread::scope(|scope| scope.spawn(|| sandboxed(action)).join().unwrap());
                for (at, clock) in clocks.iter().enumerate() {
                    let before = before[at];
                    let time = times[at];
                    assert!(
                        before <= time && time <= kernel(clock),
                        "{clock:?}: {before:?}, {time:?}"
                    );
                }
                let now = oracle::seconds().unwrap();
                assert!(seconds[0] <= seconds[1] && (seconds[1]..=seconds[1] + 100).contains(&now));
                check_free();
            });
        }
    }
}

/// Fails unless each function refuses as its documentation says. `std` is a time of std's, because
/// the first conversion reads the clock too.
fn assert_refused(expected: Errno, std: StdInstant) {
    assert_eq!(
        (vdso_time::time(), vdso_time::try_time()),
        (-1, Err(expected))
    );
    assert_eq!(Instant::try_now(), Err(expected));
    assert_eq!(SystemTime::try_now(), Err(expected));
    let reads: &[(&str, &dyn Fn())] = &[
        ("Monotonic", &|| _ = Instant::now()),
        ("Realtime", &|| _ = SystemTime::now()),
        ("Tai", &|| _ = Tai::now()),
        ("Monotonic", &|| _ = Instant::from_nanos(0).elapsed()),
        #[cfg(feature = "std")]
        ("Monotonic", &|| {
            _ = StdInstant::from(Instant::from_nanos(0));
        }),
        #[cfg(feature = "std")]
        ("Monotonic", &|| _ = Instant::try_from(std)),
    ];
    assert_panics(file!(), expected, reads);
    #[cfg(not(feature = "std"))]
    let _ = std;
    for path in &PATHS {
        assert_eq!((path.gettimeofday)(), Err(expected));
        for clock in [
            ClockId::REALTIME,
            ClockId::MONOTONIC_COARSE,
            ClockId::THREAD_CPUTIME,
            ClockId::from_fd(9),
        ] {
            assert_eq!((path.clock_gettime)(clock), Err(expected), "{clock:?}");
            assert_eq!((path.clock_getres)(clock), Err(expected), "{clock:?}");
        }
    }
    assert_eq!(syscall::try_time(), Err(expected));
    assert_eq!(syscall::getcpu(), Err(expected));
    if matches!(routes().getcpu, Route::Syscall { .. }) {
        assert_eq!(vdso_time::getcpu(), Err(expected));
    }
}

#[test]
fn without_a_vdso_the_error_is_returned_and_a_free_thread_is_answered() {
    if !filter::works() {
        return;
    }
    for (action, expected) in [
        (error(libc::EPERM), Errno::EPERM),
        (error(libc::ENOSYS), Errno::ENOSYS),
        (
            error(libc::EACCES),
            Errno::from_raw_os_error(libc::EACCES).unwrap(),
        ),
    ] {
        for free_is_first in [false, true] {
            child::forked(|| {
                child::set_vdso(0);
                if free_is_first {
                    check_free();
                }
                // Twice: what the first call found must not mislead the second.
                let std = StdInstant::now();
                let sandboxed = move || {
                    sandbox(action).unwrap();
                    assert_refused(expected, std);
                    thread::yield_now();
                    assert_refused(expected, std);
                };
                let thread = thread::spawn(sandboxed);
                check_free();
                assert!(thread.join().is_ok());
                check_free();
            });
        }
    }
}

/// Reads in a signal handler: `try_now()` returns the error there as well, but a panic ends the
/// process, because it cannot leave the handler.
#[test]
fn in_a_signal_handler_try_now_returns_the_error_and_now_ends_the_process() {
    static ERROR: AtomicI32 = AtomicI32::new(0);
    extern "C" fn calls_try_now(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        if let Err(error) = Instant::try_now() {
            ERROR.store(error.raw_os_error(), Ordering::Relaxed);
        }
    }
    extern "C" fn calls_now(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        let _ = Instant::now();
    }
    if !filter::works() {
        return;
    }
    let end = |handler: signals::Handler| {
        child::end_of(|| {
            child::set_vdso(0);
            panic::set_hook(Box::new(|_| ()));
            signals::handle(Signal::SIGUSR1, SaFlags::empty(), handler);
            sandbox(error(libc::EPERM)).unwrap();
            raise(Signal::SIGUSR1).unwrap();
            ERROR.load(Ordering::Relaxed) == libc::EPERM
        })
    };
    assert_eq!(end(calls_try_now), child::SUCCESS);
    assert_eq!(end(calls_now), End::Signal(Signal::SIGABRT));
}

/// A function whose system calls are denied.
struct Denied {
    calls: &'static [Syscall],
    read: fn() -> Result<i64, Errno>,
    /// The clock whose seconds it reads.
    clock: i32,
    /// Whether the caller chose the clock. Then EINVAL is final.
    is_chosen: bool,
}

impl Denied {
    /// Reads while all calls but one are denied: the first call with this error, and the others
    /// with another error. `None` allows no call.
    fn assert_right(&self, allowed: Option<&Syscall>, error: i32) {
        let other_error = if allowed.is_some() {
            error
        } else {
            libc::EACCES
        };
        let now = oracle::clock_gettime(self.clock).unwrap().tv_sec;
        let mut first_is_denied = false;
        for (at, call) in self.calls.iter().enumerate() {
            if allowed.is_some_and(|allowed| allowed.number == call.number) {
                continue;
            }
            first_is_denied |= at == 0;
            let error = if at == 0 { error } else { other_error };
            if !filter::deny(&[call.number], error) {
                return;
            }
        }
        let expected = match allowed {
            _ if error == libc::EINVAL && self.is_chosen && first_is_denied => Err(error),
            Some(call) if call.shape.is_time32() && now > i64::from(i32::MAX) => {
                Err(libc::EOVERFLOW)
            }
            Some(_) => Ok(now),
            None if error == libc::ENOSYS && self.calls.len() > 1 => Err(other_error),
            None => Err(error),
        };
        let read = (self.read)().map_err(Errno::raw_os_error);
        // A second can pass between the two reads.
        let is_right = match (read, expected) {
            (Ok(read), Ok(now)) => (now..=now + 2).contains(&read),
            _ => read == expected,
        };
        assert!(is_right, "{error}, {allowed:?}: {read:?}, not {expected:?}");
    }
}

/// Denies the system calls of a function one after the other. One that is allowed answers. If it
/// has 32 bits of seconds, it answers with an error after January 2038, except for clocks that
/// count from boot. If all calls are denied, the first one that exists gives the error.
#[test]
fn another_system_call_replaces_a_denied_one() {
    let Some(abi) = NATIVE else {
        return not_run_here("libc makes the calls");
    };
    let functions = [
        Denied {
            calls: abi.time.syscalls,
            read: syscall::try_time,
            clock: libc::CLOCK_REALTIME_COARSE,
            is_chosen: false,
        },
        Denied {
            calls: abi.gettimeofday.syscalls,
            read: || syscall::gettimeofday().map(|now| now.tv_sec),
            clock: libc::CLOCK_REALTIME,
            is_chosen: false,
        },
        Denied {
            calls: abi.clock_gettime.syscalls,
            read: || syscall::clock_gettime(ClockId::REALTIME).map(|now| now.tv_sec),
            clock: libc::CLOCK_REALTIME,
            is_chosen: true,
        },
        Denied {
            calls: abi.clock_gettime.syscalls,
            read: || syscall::clock_gettime(ClockId::MONOTONIC).map(|now| now.tv_sec),
            clock: libc::CLOCK_MONOTONIC,
            is_chosen: true,
        },
    ];
    for function in &functions {
        for error in [libc::EPERM, libc::ENOSYS, libc::EINVAL] {
            for call in function.calls {
                child::forked(|| function.assert_right(Some(call), error));
            }
            child::forked(|| function.assert_right(None, error));
        }
    }
}

//! The promise: a first call may be interrupted anywhere, by a signal whose handler reads every clock, and the process may be
//! forked anywhere in it.
//!
//! Each function's first call is executed one instruction at a time. At each, two copies of the process go on: one gets a
//! signal, the other is as a fork there would be. `cargo test --release --test single_step -- --nocapture` prints how many.

#![allow(unsafe_code, reason = "a signal handler is set")]

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
#[test]
fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
    test_support::not_run_here("ptrace", "only x86_64's instructions are executed one by one");
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
use test_support::walker;

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod native {
    use std::ffi::c_int;
    use std::hint::black_box;
    use std::mem;
    use std::ptr;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use vdso_time::vdso::Vdso;
    use vdso_time::{ClockId, FallbackReason, Route, routes};

    use super::walker::{Process, walk};
    use test_support::{PATHS, allowed_cpus, answers, has_proc, not_run_here, oracle, pin};

    /// A debug build executes thirty times as many instructions, so it has one function, and copies at every 97th.
    const DEBUG: Option<&str> = if cfg!(debug_assertions) { Some("clock_gettime") } else { None };
    const NTH: usize = if cfg!(debug_assertions) { 97 } else { 1 };

    /// Which functions answered wrongly in the handler, and how often that ran.
    static WRONG_IN_HANDLER: AtomicUsize = AtomicUsize::new(0);
    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn on_signal(_: c_int) {
        let wrong = answers::wrong(&PATHS[0]).is_some();
        WRONG_IN_HANDLER.fetch_add(wrong.into(), Ordering::Relaxed);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// The kernel's answer before the walk, and what was read in it: a time in nanoseconds, or another number.
    static BEFORE: AtomicI64 = AtomicI64::new(0);
    static ANSWER: AtomicI64 = AtomicI64::new(0);

    fn prepare() {
        // SAFETY: all zero is an action with no flags and an empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        // SAFETY: the handler has the signature that an action without SA_SIGINFO wants.
        unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) };
        // All that is walked runs where it began, so the kernel's word on that does not change.
        let here = oracle::getcpu().map_or(0, |(cpu, _)| cpu as usize);
        mem::forget(allowed_cpus().inspect(|cpus| _ = pin(cpus, here)));
        // Who waits for himself is ended.
        let limit = libc::rlimit { rlim_cur: 5, rlim_max: 5 };
        // SAFETY: the kernel reads two numbers.
        unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const limit) };
        BEFORE.store(nanos(), Ordering::Relaxed);
    }

    fn nanos() -> i64 {
        oracle::clock_gettime(libc::CLOCK_REALTIME).map_or(i64::MAX, |now| now.tv_sec * SECOND + now.tv_nsec)
    }

    const SECOND: i64 = 1_000_000_000;

    fn answer(number: i64) {
        ANSWER.store(number, Ordering::Relaxed);
    }

    /// Whether what was read lies between the kernel's answers, cut to a unit.
    fn in_between(unit: i64) -> bool {
        // CLOCK_REALTIME_COARSE, whose second time() gives, is up to a tick of 10 ms behind.
        let before = (BEFORE.load(Ordering::Relaxed) - SECOND / 100) / unit;
        (before..=nanos() / unit).contains(&ANSWER.load(Ordering::Relaxed))
    }

    /// All else that must be true in the end: 0.
    fn status(is_right: bool) -> c_int {
        // A first call that was disturbed has not missed the vDSO.
        let is_missed =
            |(_, route)| matches!(route, Route::Syscall { reason: FallbackReason::NoVdso(_), .. });
        let missed = Vdso::locate().is_ok() && routes().functions().into_iter().any(is_missed);
        let quiet = WRONG_IN_HANDLER.load(Ordering::Relaxed) == 0 && HANDLED.load(Ordering::Relaxed) <= 1;
        match (is_right, missed, quiet, answers::wrong(&PATHS[0])) {
            (true, false, true, None) => 0,
            (false, ..) => 1,
            (_, true, ..) => 2,
            (_, _, false, _) => 3,
            (.., Some(_)) => 4,
        }
    }

    const FUNCTIONS: [(&str, Process); 5] = [
        (
            "time",
            Process {
                prepare,
                walk: || answer(black_box(vdso_time::time())),
                finish: || status(in_between(SECOND)),
            },
        ),
        (
            "gettimeofday",
            Process {
                prepare,
                walk: || {
                    answer(vdso_time::gettimeofday().map_or(-1, |now| now.tv_sec * 1_000_000 + now.tv_usec));
                },
                finish: || status(in_between(1000)),
            },
        ),
        (
            "clock_gettime",
            Process {
                prepare,
                walk: || {
                    let now = vdso_time::clock_gettime(ClockId::REALTIME);
                    answer(now.map_or(-1, |now| now.tv_sec * SECOND + now.tv_nsec));
                },
                finish: || status(in_between(1)),
            },
        ),
        (
            "clock_getres",
            Process {
                prepare,
                walk: || answer(vdso_time::clock_getres(ClockId::MONOTONIC).map_or(-1, |tick| tick.tv_nsec)),
                finish: || {
                    let kernel = oracle::clock_getres(libc::CLOCK_MONOTONIC);
                    status(kernel.is_ok_and(|tick| tick.tv_nsec == ANSWER.load(Ordering::Relaxed)))
                },
            },
        ),
        (
            "getcpu",
            Process {
                prepare,
                walk: || answer(vdso_time::getcpu().map_or(-1, |here| here.cpu.into())),
                finish: || {
                    let kernel = oracle::getcpu();
                    status(kernel.is_ok_and(|(cpu, _)| i64::from(cpu) == ANSWER.load(Ordering::Relaxed)))
                },
            },
        ),
    ];

    #[test]
    fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
        if !has_proc() {
            return;
        }
        // A switch to the tracer and back, at each instruction, is quicker on one CPU.
        let cpus = allowed_cpus();
        if let Some(cpus) = &cpus {
            pin(cpus, cpus.numbers()[0]);
        }
        for (function, process) in
            FUNCTIONS.iter().filter(|(function, _)| DEBUG.is_none_or(|only| only == *function))
        {
            match walk(process, NTH, &[0, libc::SIGUSR1]) {
                Ok(walked) => {
                    println!("{function:14} {walked:?}");
                    assert!(walked.instructions > 1000, "{function}: that is no first call");
                }
                Err(error) if error.kind() == std::io::ErrorKind::Other => panic!("{function}: {error}"),
                Err(error) => return not_run_here("ptrace", format!("ptrace: {error}")),
            }
        }
    }
}

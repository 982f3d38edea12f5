//! The promise: behind a sandbox that kills, traps or refuses every clock call, the vDSO still answers; without a vDSO each
//! function does what its documentation says, and a thread outside of the sandbox does not notice.

#![allow(unsafe_code, reason = "init is called here, and signals are handled")]

use test_support::filter;
use test_support::register;

use std::ffi::{c_int, c_void};
use std::mem;
use std::panic::{self, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::thread;

use test_support::{PATHS, answers, child, not_run, not_run_here, oracle};
use vdso_time::arch::NATIVE;
use vdso_time::{ClockId, Errno, Instant, SystemTime, syscall};

/// The two numbers of `SECCOMP_RET_ERRNO`'s kin that libc has not for every target (include/uapi/linux/seccomp.h).
const KILL_PROCESS: u32 = 0x8000_0000;
const KILL_THREAD: u32 = 0;

const fn error(number: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

/// Puts this thread behind a filter that does this at every clock call.
fn sandbox(action: u32) -> bool {
    let Some(abi) = NATIVE else { return false };
    let mut filter = filter::denying(abi, &filter::clock_calls(abi), 1);
    for statement in filter.iter_mut().filter(|statement| statement.k == error(1)) {
        statement.k = action;
    }
    filter::install(&mut filter).is_ok()
}

/// Tries one in a child, and says if it cannot be had. The child says nothing itself: another thread of the parent's may have
/// been printing, and its lock is the child's for ever.
fn sandboxes_work() -> bool {
    let works = child::end_of(|| {
        if !sandbox(error(libc::EPERM)) {
            // SAFETY: _exit(2) takes any status.
            unsafe { libc::_exit(1) };
        }
    }) == 0;
    if !works {
        not_run_here("seccomp", "there is no seccomp");
    }
    works
}

/// Says that there is no vDSO, before the first call.
fn without_vdso() {
    // SAFETY: null is always allowed.
    unsafe { vdso_time::init(ptr::null()) };
}

/// A free thread is answered by either path.
#[track_caller]
fn check_free(state: &str) {
    for path in &PATHS {
        assert_eq!(answers::wrong(path), None, "{state}: the free thread, {}", path.name);
    }
}

/// The clocks that no counter is read for, and the others if the vDSO reads that.
fn clocks_of_the_vdso() -> Vec<ClockId> {
    let mut clocks = vec![ClockId::REALTIME_COARSE, ClockId::MONOTONIC_COARSE];
    if oracle::counter_is_in_user_space() == Some(true) {
        clocks.extend([ClockId::REALTIME, ClockId::MONOTONIC]);
    }
    clocks
}

#[test]
fn with_a_vdso_no_sandbox_is_noticed() {
    // Asked in a child: here nothing must be called before.
    let by_vdso = || matches!(vdso_time::routes().clock_gettime, vdso_time::Route::Vdso { .. });
    let asked = child::end_of(|| {
        if !by_vdso() {
            // SAFETY: _exit(2) takes any status.
            unsafe { libc::_exit(1) };
        }
    });
    if asked != 0 {
        return not_run("no vDSO answers in this process");
    }
    if !sandboxes_work() {
        return;
    }
    for action in [KILL_PROCESS, libc::SECCOMP_RET_TRAP, error(libc::EPERM), error(libc::ENOSYS)] {
        for free_is_first in [false, true] {
            child::forked(|| {
                if free_is_first {
                    check_free("before");
                }
                let clocks = clocks_of_the_vdso();
                let kernel = |clock: &ClockId| oracle::clock_gettime(clock.as_raw()).unwrap();
                let before: Vec<_> = clocks.iter().map(kernel).collect();
                let asked = clocks.clone();
                let reads_counter = clocks.len() > 2;
                let sandboxed = move || {
                    let read = |clock: &ClockId| vdso_time::clock_gettime(*clock).unwrap();
                    sandbox(action).then(|| {
                        let seconds = [vdso_time::time(), vdso_time::try_time().unwrap()];
                        if reads_counter {
                            assert!(Instant::now() <= Instant::try_now().unwrap());
                            assert!(SystemTime::now() <= SystemTime::try_now().unwrap());
                            assert!(vdso_time::gettimeofday().unwrap().tv_sec >= seconds[0]);
                        }
                        assert!(vdso_time::clock_getres(ClockId::REALTIME).is_ok());
                        (seconds, asked.iter().map(read).collect::<Vec<_>>())
                    })
                };
                let Some((seconds, times)) = thread::spawn(sandboxed).join().unwrap() else { return };
                for ((clock, before), time) in clocks.iter().zip(before).zip(times) {
                    assert!(before <= time && time <= kernel(clock), "{clock:?}: {before:?}, {time:?}");
                }
                let now = oracle::seconds().unwrap();
                assert!(seconds[0] <= seconds[1] && (seconds[1]..=seconds[1] + 100).contains(&now));
                check_free("after");
            });
        }
    }
}

/// Each function's refusal, as its documentation has it.
fn refusals(expected: Errno) {
    assert_eq!(vdso_time::time(), -1);
    assert_eq!(vdso_time::try_time(), Err(expected));
    assert_eq!(Instant::try_now(), Err(expected));
    assert_eq!(SystemTime::try_now(), Err(expected));
    panic::set_hook(Box::new(|_| {}));
    for now in [|| _ = Instant::now(), || _ = SystemTime::now()] as [fn(); 2] {
        let panic = catch_unwind(now).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert_eq!(*message, format!("the clock cannot be read: {expected}"));
    }
    let _ = panic::take_hook();
    assert_eq!(vdso_time::gettimeofday(), Err(expected));
    assert_eq!(vdso_time::clock_gettime(ClockId::BOOTTIME), Err(expected));
    assert_eq!(vdso_time::clock_getres(ClockId::BOOTTIME), Err(expected));
    assert_eq!(vdso_time::getcpu(), Err(expected));
    assert_eq!(syscall::time(), Err(expected));
    assert_eq!(syscall::getcpu(), Err(expected));
}

/// The handler of a trap, which is to say what the system call answers.
extern "C" fn answer_eacces(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the context.
    unsafe { register::answer(context, -libc::EACCES) };
}

fn handle_traps() {
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = answer_eacces as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature that SA_SIGINFO wants.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) }, 0);
}

#[test]
fn without_a_vdso_the_refusal_is_told_and_a_free_thread_is_answered() {
    if !sandboxes_work() {
        return;
    }
    for (action, expected) in [
        (error(libc::EPERM), Errno::EPERM),
        (error(libc::ENOSYS), Errno::ENOSYS),
        (libc::SECCOMP_RET_TRAP, Errno::from_raw_os_error(libc::EACCES).unwrap()),
    ] {
        for free_is_first in [false, true] {
            child::forked(|| {
                without_vdso();
                handle_traps();
                if free_is_first {
                    check_free("before");
                }
                // Twice, for what the first call found out must not mislead the second.
                let sandboxed = move || {
                    if sandbox(action) {
                        refusals(expected);
                        thread::yield_now();
                        refusals(expected);
                    }
                };
                let thread = thread::spawn(sandboxed);
                check_free("meanwhile");
                assert!(thread.join().is_ok());
                check_free("after");
            });
        }
    }
}

const READS: [(&str, fn()); 4] = [
    ("time", || _ = vdso_time::time()),
    ("try_time", || _ = vdso_time::try_time()),
    ("now", || _ = Instant::now()),
    ("try_now", || _ = Instant::try_now()),
];

#[test]
fn without_a_vdso_a_sandbox_that_kills_does() {
    if !sandboxes_work() {
        return;
    }
    for action in [KILL_PROCESS, libc::SECCOMP_RET_TRAP] {
        for (name, read) in READS {
            let status = child::end_of(|| {
                without_vdso();
                if sandbox(action) {
                    read();
                }
            });
            assert!(libc::WIFSIGNALED(status), "{name}: {status:#x}");
            assert_eq!(libc::WTERMSIG(status), libc::SIGSYS, "{name}");
        }
    }
}

/// The thread that is killed, and whether it was not.
static THREAD: AtomicIsize = AtomicIsize::new(0);
static CAME_BACK: AtomicBool = AtomicBool::new(false);

#[test]
fn a_thread_that_is_killed_in_its_first_call_leaves_the_others_right() {
    if !sandboxes_work() {
        return;
    }
    for (name, read) in READS {
        child::forked(|| {
            without_vdso();
            let thread = thread::spawn(move || {
                assert!(sandbox(KILL_THREAD));
                // SAFETY: it takes nothing.
                THREAD.store(unsafe { libc::syscall(libc::SYS_gettid) as isize }, Ordering::Relaxed);
                read();
                CAME_BACK.store(true, Ordering::Relaxed);
            });
            let is_there = || match THREAD.load(Ordering::Relaxed) {
                0 => true,
                // SAFETY: signal 0 is never sent; the kernel says whether the thread is there.
                id => (unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), id, 0) }) == 0,
            };
            while is_there() {
                check_free("meanwhile");
            }
            mem::forget(thread);
            assert!(!CAME_BACK.load(Ordering::Relaxed), "{name} came back");
            check_free("after");
        });
    }
}

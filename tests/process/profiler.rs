//! The promise: a profiler's sample that lies in the vDSO is named after the function that was read.

#![allow(unsafe_code, reason = "a signal handler reads the program counter")]

use test_support::program_counter;

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use program_counter::program_counter;
use test_support::{child, not_run, not_run_here, oracle};
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Route};

/// What the handler saw; a later sample than the last place is lost.
static SAMPLES: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_sample(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let context: *const libc::ucontext_t = context.cast();
    // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it interrupted.
    let pc = program_counter(unsafe { &*context });
    if let Some(place) = SAMPLES.get(TAKEN.fetch_add(1, Ordering::Relaxed)) {
        place.store(pc, Ordering::Relaxed);
    }
}

fn handle_samples() {
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_sample as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO wants, and only stores to atomics.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) }, 0);
}

/// Whether an address lies in the code of a symbol of the image. What lies in none has no name to be given: a helper
/// that the compiler did not inline.
fn has_a_name(vdso: &Vdso<'_>, pc: usize) -> bool {
    vdso.symbols().any(|symbol| {
        // In Thumb code the address of a function has bit 0 set, and a program counter has not.
        let start = vdso.address(&symbol).addr() & if cfg!(target_arch = "arm") { !1 } else { !0 };
        (start..start + symbol.size().max(1) as usize).contains(&pc)
    })
}

/// The samples in the vDSO while `read` runs. A profiler's timer would give as many as the kernel has timer ticks, and few
/// lie in a function of a nanosecond; so another thread asks for them.
fn samples(vdso: &Vdso<'_>, read: fn() -> bool) -> Vec<usize> {
    const WANTED: usize = 100;
    let inside = || {
        let taken = &SAMPLES[..TAKEN.load(Ordering::Relaxed).min(SAMPLES.len())];
        taken.iter().map(|sample| sample.load(Ordering::Relaxed)).filter(|&pc| vdso.contains(pc))
    };
    TAKEN.store(0, Ordering::Relaxed);
    let wanted = AtomicBool::new(true);
    // SAFETY: pthread_self(3) takes nothing.
    let reader = unsafe { libc::pthread_self() };
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            for _ in 0..SAMPLES.len() {
                if wanted.load(Ordering::Relaxed) {
                    // SAFETY: the thread is the one that waits for the end of this one.
                    assert_eq!(unsafe { libc::pthread_kill(reader, libc::SIGPROF) }, 0);
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        while !sampler.is_finished() {
            assert!((0..10_000).all(|_| read()));
            wanted.store(inside().count() < WANTED, Ordering::Relaxed);
        }
    });
    inside().collect()
}

/// Fails unless nine of ten samples are named after a function while `read` reads it.
fn check(vdso: &Vdso<'_>, what: &str, route: Route, read: fn() -> bool) {
    const ENOUGH: usize = 50;
    let Route::Vdso { address, .. } = route else {
        not_run(format!("{what} is {route}"));
        return;
    };
    let (named, nameless): (Vec<usize>, Vec<usize>) =
        samples(vdso, read).into_iter().partition(|&pc| has_a_name(vdso, pc));
    let named_right =
        |pc: &&usize| vdso.symbol_at(**pc).is_some_and(|symbol| vdso.address(&symbol).addr() == address);
    let right = named.iter().filter(named_right).count();
    let all = named.len();
    println!("{what}: {right} of {all} samples are named {route}; {} lie in helpers", nameless.len());
    assert!(nameless.iter().all(|&pc| vdso.symbol_at(pc).is_none()), "{what}: a name for code that has none");
    if all < ENOUGH {
        not_run(format!("{what}: {all} samples are too few"));
        return;
    }
    assert!(10 * right >= 9 * all, "{what}: {right} of {all} samples are named {route}");
}

#[test]
fn a_sample_is_named_after_the_function_that_was_read() {
    child::forked(sample_each);
}

fn sample_each() {
    let vdso = match Vdso::locate() {
        Ok(vdso) => vdso,
        Err(error) => return not_run(error),
    };
    // Else the samples lie where the kernel was entered, in whatever function that is.
    if oracle::counter_is_in_user_space() != Some(true) {
        return not_run_here("clocksource", "the vDSO cannot read the clock source");
    }
    handle_samples();
    let routes = vdso_time::routes();
    check(&vdso, "clock_gettime", routes.clock_gettime, || {
        vdso_time::clock_gettime(ClockId::MONOTONIC).is_ok()
    });
    check(&vdso, "clock_getres", routes.clock_getres, || vdso_time::clock_getres(ClockId::MONOTONIC).is_ok());
    check(&vdso, "time", routes.time, || vdso_time::try_time().is_ok());
    check(&vdso, "getcpu", routes.getcpu, || vdso_time::getcpu().is_ok());
}

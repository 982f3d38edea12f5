//! The promise: a profiler's sample that lies in the vDSO is named after the function that was
//! read.

#![allow(unsafe_code, reason = "a signal handler reads the program counter")]

use std::ffi::{c_int, c_void};

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::functions::Function;
use test_support::nix::sys::pthread::{pthread_kill, pthread_self};
use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::{FUNCTIONS, PATHS, child, not_run, not_run_here, oracle, signals};
use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, Route};

/// What the handler saw; a later sample than the last place is lost.
static SAMPLES: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_sample(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the context is the kernel's.
    let pc = unsafe { signals::program_counter(context) };
    if let Some(place) = SAMPLES.get(TAKEN.fetch_add(1, Ordering::Relaxed)) {
        place.store(pc, Ordering::Relaxed);
    }
}

/// Whether an address lies in the code of a symbol of the image. Code that lies in none has no
/// name: a helper that the compiler did not inline.
fn has_a_name(vdso: &Vdso<'_>, pc: usize) -> bool {
    vdso.symbols().any(|symbol| {
        // In Thumb code the address of a function has bit 0 set, and a program counter does not.
        let start = vdso.address(&symbol).addr() & if cfg!(target_arch = "arm") { !1 } else { !0 };
        (start..start + symbol.size().max(1) as usize).contains(&pc)
    })
}

/// The samples in the vDSO while `read` runs. Another thread asks for them: a profiler's timer
/// gives as many as the kernel has timer ticks, and few lie in a function of a nanosecond.
fn samples(vdso: &Vdso<'_>, read: impl Fn() -> bool) -> Vec<usize> {
    const WANTED: usize = 100;
    let inside = || {
        let taken = &SAMPLES[..TAKEN.load(Ordering::Relaxed).min(SAMPLES.len())];
        taken.iter().map(|sample| sample.load(Ordering::Relaxed)).filter(|&pc| vdso.contains(pc))
    };
    TAKEN.store(0, Ordering::Relaxed);
    let wanted = AtomicBool::new(true);
    let reader = pthread_self();
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            for _ in 0..SAMPLES.len() {
                if wanted.load(Ordering::Relaxed) {
                    pthread_kill(reader, Signal::SIGPROF).unwrap();
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

/// Fails unless nine of ten samples are named after a function while it is read.
fn check(vdso: &Vdso<'_>, function: &Function, route: Route) {
    const ENOUGH: usize = 50;
    let what = function.name;
    let Route::Vdso { address, .. } = route else { return not_run(format!("{what} is {route}")) };
    let read = || (function.read)(&PATHS[0], ClockId::MONOTONIC).is_ok();
    let (named, nameless): (Vec<_>, Vec<_>) =
        samples(vdso, read).into_iter().partition(|&pc| has_a_name(vdso, pc));
    let is_right =
        |pc: &&usize| vdso.symbol_at(**pc).is_some_and(|symbol| vdso.address(&symbol).addr() == address);
    let (right, all) = (named.iter().filter(is_right).count(), named.len());
    println!("{what}: {right} of {all} samples are named {route}; {} lie in helpers", nameless.len());
    assert!(nameless.iter().all(|&pc| vdso.symbol_at(pc).is_none()), "{what}: a name for code that has none");
    if all < ENOUGH {
        return not_run(format!("{what}: {all} samples are too few"));
    }
    assert!(10 * right >= 9 * all, "{what}: {right} of {all} samples are named {route}");
}

#[test]
fn a_sample_is_named_after_the_function_that_was_read() {
    child::forked(|| {
        let vdso = match Vdso::locate() {
            Ok(vdso) => vdso,
            Err(error) => return not_run(error),
        };
        // Otherwise the samples lie where the kernel was entered, in whatever function that is.
        if oracle::counter_is_in_user_space() != Some(true) {
            return not_run_here("clocksource", "the vDSO cannot read the clock source");
        }
        signals::handle(Signal::SIGPROF, SaFlags::SA_RESTART, on_sample);
        for (function, (name, route)) in FUNCTIONS.iter().zip(vdso_time::routes().functions()) {
            assert_eq!(function.name, name);
            check(&vdso, function, route);
        }
    });
}

//! The promise: a thread may be stopped at any instruction while it makes a segment of the counter
//! clock, by a fork of another thread or by a signal whose handler reads the clock. The clock stays
//! right, and never waits. A writer bit that a fork lost costs the fast path, and `status` says so.
//!
//! `cargo test --all-features --test counter renewal -- --nocapture` prints the numbers.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use test_support::child::{self, leave};
use test_support::functions::assert_all_right;
use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::nix::unistd::alarm;
use test_support::tracee::{Copies, Fate, Tracee};
use test_support::{PATHS, not_run_here, signals};
use vdso_time::counter::{self, Status};

use crate::{expected, kernel, read_near};

/// The machine code of the instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// How a process ends whose clock was always right: the counter was used in the end, or the writer
/// bit was lost.
const USED: i32 = 0;
const CLAIMED: i32 = 1;

/// What is wrong if a process ends otherwise.
fn fault(status: i32) -> Option<&'static str> {
    match status {
        USED | CLAIMED => None,
        10 => Some("the time went back"),
        11 => Some("the monotonic clock was off"),
        12 => Some("the wall clock was off"),
        13 => Some("the counter was not used again"),
        14 => Some("the writer bit was lost, and the vDSO did not answer"),
        15 => Some("the signal's handler was not called"),
        _ => Some("it failed"),
    }
}

/// Nanoseconds by which two reads next to each other may differ, besides the clock's own bound.
const SLACK: i64 = 1_000;

/// One instruction of so many is looked at. Unoptimised a read is sixteen times as many of them.
const EACH: usize = if cfg!(debug_assertions) { 16 } else { 1 };

/// The latest time that was read.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// How often the handler ran to its end.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Each read must be right, and none before another that ended.
fn look() {
    for read in [counter::monotonic, counter::monotonic_ordered] {
        let latest = LATEST.load(Ordering::SeqCst);
        let Ok(ours) = read_near(libc::CLOCK_MONOTONIC, SLACK, || read() as i64) else { leave(11) };
        if (ours as u64) < latest {
            leave(10);
        }
        LATEST.fetch_max(ours as u64, Ordering::SeqCst);
    }
    if read_near(libc::CLOCK_REALTIME, SLACK, counter::realtime).is_err() {
        leave(12);
    }
}

/// Reads for 40 ms, and until it is known whether the writer bit was lost, which is final.
extern "C" fn judge() -> ! {
    alarm::set(60); // one that hangs ends by a signal
    let start = kernel(libc::CLOCK_MONOTONIC);
    loop {
        let is_claimed = counter::status() == Status::Updating;
        look();
        let passed = kernel(libc::CLOCK_MONOTONIC) - start;
        let state = counter::state();
        match state.status {
            Status::Updating if state.error_bound as i64 > SLACK => leave(14),
            Status::Updating if passed > 40_000_000 => leave(CLAIMED),
            status if is_claimed && status != Status::Updating => leave(14),
            Status::Used if passed > 40_000_000 => leave(USED),
            _ if passed > 20_000_000_000 => leave(13),
            _ => thread::sleep(Duration::from_millis(8)),
        }
    }
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    alarm::set(60);
    look();
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// What is executed step by step: a read that makes a new segment.
#[inline(never)]
extern "C" fn renewal() -> u64 {
    counter::monotonic()
}

/// Where the steps end.
#[inline(never)]
extern "C" fn after_renewal(ours: u64, start: i64) -> ! {
    let bound = counter::error_bound() as i64 + SLACK;
    if !(start - bound..=kernel(libc::CLOCK_MONOTONIC) + bound).contains(&(ours as i64)) {
        leave(11);
    }
    if HANDLED.load(Ordering::SeqCst) != 1 {
        leave(15);
    }
    LATEST.fetch_max(ours, Ordering::SeqCst);
    look();
    leave(USED)
}

/// Goes through a read step by step, and copies the process at each: as after a fork by another
/// thread, and to go on after a signal. In the vDSO only at the first instruction: a read is
/// repeated there if the kernel wrote to its page meanwhile, and a copy takes its time.
///
/// Returns how many instructions there were, how often a fork lost the writer bit, and how often
/// not.
fn go_through(what: &str) -> io::Result<(usize, usize, usize)> {
    let tracee = Tracee::fork(|| {
        let start = kernel(libc::CLOCK_MONOTONIC);
        after_renewal(renewal(), start)
    })?;
    let (mut forked, mut signalled) = (Copies::new(64, fault), Copies::new(64, fault));
    let mut at = renewal as *const () as usize;
    while tracee.step()? != at {}
    let (files, mut has_file, mut is_in_vdso) = (tracee.files()?, false, false);
    let mut step = 0;
    while at != after_renewal as *const () as usize {
        if step % EACH == 0 {
            forked.add(tracee.copy(Fate::Call(judge))?, format!("{what}, forked at instruction {step}"));
            // A file that both have open has one position, and both would read it.
            if !has_file {
                let copy = tracee.copy(Fate::Signal(Signal::SIGUSR1))?;
                signalled.add(copy, format!("{what}, signal at instruction {step}"));
            }
        }
        let mut code = [0; 2];
        tracee.read(at, &mut code)?;
        at = tracee.step()?;
        while tracee.vdso.contains(&at) && is_in_vdso {
            at = tracee.step()?;
        }
        if code == SYSCALL {
            has_file = tracee.files()? > files;
        }
        is_in_vdso = tracee.vdso.contains(&at);
        step += 1;
    }
    forked.finish();
    signalled.finish();
    let ended = |status| forked.ended.get(&status).copied().unwrap_or_default();
    Ok((step, ended(CLAIMED), ended(USED)))
}

#[test]
fn a_renewal_may_be_forked_or_interrupted_at_every_instruction() {
    child::forked(|| {
        if expected() != Status::Used {
            return not_run_here("counter", expected());
        }
        signals::handle(Signal::SIGUSR1, SaFlags::empty(), on_signal);
        // The first calls are not part of a renewal.
        assert_all_right(&PATHS[0]);
        for what in ["the first sample", "a segment that begins anew"] {
            match go_through(what) {
                Ok((instructions, lost, kept)) => {
                    println!(
                        "{what}: {instructions} instructions, {lost} forks lost the bit, {kept} did not"
                    );
                    assert!(lost > 0 && kept > 10, "{what}: {lost} forks lost the bit, {kept} did not");
                }
                Err(error) => return not_run_here("ptrace", error),
            }
            let mut tries = 0;
            while counter::status() != Status::Used {
                let _ = counter::monotonic();
                thread::sleep(Duration::from_millis(1));
                tries += 1;
                if tries > 5_000 {
                    return not_run_here("counter", counter::status());
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
}

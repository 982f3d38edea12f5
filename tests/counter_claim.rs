//! The promise: whoever is stopped while it makes a line of the counter clock, by a fork of another thread or by a signal whose
//! handler reads the clock, at whatever instruction: the clock stays right, and never waits. A claim that a fork lost costs
//! the fast path, and `status` says so. `cargo test --all-features --test counter_claim -- --nocapture` prints the numbers.

#![cfg(all(
    any(target_os = "linux", target_os = "android"),
    target_arch = "x86_64",
    target_pointer_width = "64"
))]
#![allow(unsafe_code, reason = "processes and signals are made here")]

#[path = "support/counter.rs"]
mod counter_clock;
use test_support::tracee;

use std::arch::global_asm;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs;
use std::io;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{not_run_here, oracle};
use tracee::{Fate, Tracee};
use vdso_time::counter::{self, Status};

/// The machine code of the instruction.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

global_asm!(".globl a_syscall", "a_syscall:", "syscall", "ret");

unsafe extern "C" {
    fn a_syscall();
}

/// How a process ends whose clock was right all the time: the counter was used in the end, or the claim was lost.
const USED: i32 = 0;
const CLAIMED: i32 = 1;
/// How one ends whose clock was not.
const FAULTS: &[(i32, &str)] = &[
    (10, "the time went back"),
    (11, "the monotonic clock was off"),
    (12, "the wall clock was off"),
    (13, "the counter was not used again"),
    (14, "the claim was lost, and the vDSO did not answer"),
    (15, "the signal's handler was not called"),
];

/// Nanoseconds by which two reads next to each other may differ, besides the clock's own bound.
const SLACK: u64 = 1_000;

/// An instruction of so many is looked at. Unoptimised a read is sixteen times as many of them.
const EACH: usize = if cfg!(debug_assertions) { 16 } else { 1 };

fn leave(status: i32) -> ! {
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(status) }
}

/// A process that waits for ever ends by a signal, which is none of the statuses.
fn end_if_it_hangs() {
    // SAFETY: alarm(2) takes any number of seconds.
    unsafe { libc::alarm(60) };
}

fn kernel(clock: i32) -> u64 {
    let time = oracle::clock_gettime(clock).unwrap();
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

/// The latest time that was read.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// How often the handler ran to its end.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Reads a clock between two reads by system call; wrong is what it ends with if it is off.
fn between(clock: i32, wrong: i32, read: impl Fn() -> u64) -> u64 {
    let bound = counter::error_bound();
    let before = kernel(clock);
    let ours = read();
    let after = kernel(clock);
    let bound = bound.max(counter::error_bound()) + SLACK;
    if !(before - bound..=after + bound).contains(&ours) {
        leave(wrong);
    }
    ours
}

/// Each read must be right, and none before another that ended.
fn look() {
    for read in [counter::monotonic, counter::monotonic_ordered] {
        let latest = LATEST.load(Ordering::SeqCst);
        let ours = between(libc::CLOCK_MONOTONIC, 11, read);
        if ours < latest {
            leave(10);
        }
        LATEST.fetch_max(ours, Ordering::SeqCst);
    }
    between(libc::CLOCK_REALTIME, 12, || counter::realtime() as u64);
}

/// Reads for 40 ms, and until it can be said whether the claim was lost; that is final.
extern "C" fn judge() -> ! {
    end_if_it_hangs();
    let start = kernel(libc::CLOCK_MONOTONIC);
    loop {
        let is_claimed = counter::status() == Status::Updating;
        look();
        let passed = kernel(libc::CLOCK_MONOTONIC) - start;
        let state = counter::state();
        match state.status {
            Status::Updating if state.error_bound > SLACK => leave(14),
            Status::Updating if passed > 40_000_000 => leave(CLAIMED),
            status if is_claimed && status != Status::Updating => leave(14),
            Status::Used if passed > 40_000_000 => leave(USED),
            _ if passed > 20_000_000_000 => leave(13),
            _ => thread::sleep(Duration::from_millis(8)),
        }
    }
}

extern "C" fn on_signal(_: c_int) {
    end_if_it_hangs();
    look();
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// What is executed step by step: a read that makes a new record.
#[inline(never)]
extern "C" fn renewal() -> u64 {
    counter::monotonic()
}

/// Where the steps end.
#[inline(never)]
extern "C" fn after_renewal(ours: u64, start: u64) -> ! {
    let bound = counter::error_bound() + SLACK;
    if !(start - bound..=kernel(libc::CLOCK_MONOTONIC) + bound).contains(&ours) {
        leave(11);
    }
    if HANDLED.load(Ordering::SeqCst) != 1 {
        leave(15);
    }
    LATEST.fetch_max(ours, Ordering::SeqCst);
    look();
    leave(USED)
}

extern "C" fn work() -> ! {
    let start = kernel(libc::CLOCK_MONOTONIC);
    after_renewal(renewal(), start)
}

/// Processes that were made, and what was executed when.
#[derive(Default)]
struct Children {
    running: BTreeMap<i32, String>,
    ended: BTreeMap<i32, usize>,
}

impl Children {
    fn add(&mut self, pid: i32, what: String) {
        self.running.insert(pid, what);
        if self.running.len() >= 64 {
            self.wait();
        }
    }

    /// Waits for the oldest.
    #[track_caller]
    fn wait(&mut self) {
        let Some((pid, what)) = self.running.pop_first() else { return };
        let mut status = 0;
        // SAFETY: waitpid(2) writes the status there.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(waited, pid, "{what}: {}", io::Error::last_os_error());
        assert!(libc::WIFEXITED(status), "{what}: wait status {status:#x}");
        let code = libc::WEXITSTATUS(status);
        let fault = FAULTS.iter().find(|(fault, _)| *fault == code).map_or("no fault", |(_, fault)| fault);
        assert!([USED, CLAIMED].contains(&code), "{what}: {fault} ({code})");
        *self.ended.entry(code).or_default() += 1;
    }

    #[track_caller]
    fn wait_all(&mut self) {
        while !self.running.is_empty() {
            self.wait();
        }
    }

    fn ended(&self, code: i32) -> usize {
        self.ended.get(&code).copied().unwrap_or_default()
    }
}

/// Where the vDSO is; nowhere if there is none.
fn vdso() -> Range<u64> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap_or("0-0 ");
    let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).unwrap();
    let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16).unwrap());
    start..end
}

/// Goes through a read step by step, and forks it everywhere: as another thread might, and to go on after a signal. But in the
/// vDSO only at its first instruction, for there a read is tried again if the kernel wrote to its page meanwhile, and a fork takes
/// its time. Says how many instructions there were, how often a fork lost the claim, and how often not.
fn go_through(what: &str) -> io::Result<(usize, usize, usize)> {
    let tracee = Tracee::start(work, a_syscall as *const () as usize)?;
    let vdso = vdso();
    let (mut forked, mut signalled) = (Children::default(), Children::default());
    let mut at = renewal as *const () as usize as u64;
    while tracee.step()? != at {}
    let (files, mut has_file, mut is_in_vdso) = (tracee.files()?, false, false);
    for step in 0.. {
        let is_looked_at = step % EACH == 0;
        if is_looked_at {
            forked.add(tracee.fork(&Fate::Call(judge))?, format!("{what}, forked at instruction {step}"));
        }
        // A file that both have open has one position, and both would read it.
        if is_looked_at && !has_file {
            let what = format!("{what}, signal at instruction {step}");
            signalled.add(tracee.fork(&Fate::Signal(libc::SIGUSR1))?, what);
        }
        let mut code = [0; 2];
        tracee.read(at, &mut code)?;
        at = tracee.step()?;
        while vdso.contains(&at) && is_in_vdso {
            at = tracee.step()?;
        }
        if code == SYSCALL {
            has_file = tracee.files()? > files;
        }
        is_in_vdso = vdso.contains(&at);
        if at == after_renewal as *const () as usize as u64 {
            forked.wait_all();
            signalled.wait_all();
            return Ok((step + 1, forked.ended(CLAIMED), forked.ended(USED)));
        }
    }
    unreachable!()
}

#[test]
fn a_renewal_may_be_forked_or_interrupted_at_every_instruction() {
    let expected = counter_clock::expected();
    if expected != Status::Used {
        return not_run_here("counter", expected);
    }
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
    // SAFETY: the handler has the signature that an action without SA_SIGINFO wants.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) }, 0);
    // What is not the counter's is found.
    look_at_the_vdso();
    for what in ["the first sample", "a line that begins anew"] {
        match go_through(what) {
            Ok((instructions, lost, kept)) => {
                println!(
                    "{what}: {instructions} instructions, of which {lost} forks lost the claim and {kept} did not"
                );
                assert!(lost > 0 && kept > 10, "{what}: {lost} forks lost the claim, {kept} did not");
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
}

fn look_at_the_vdso() {
    for clock in [vdso_time::ClockId::MONOTONIC, vdso_time::ClockId::REALTIME] {
        assert!(vdso_time::clock_gettime(clock).is_ok());
    }
    assert!(vdso_time::getcpu().is_ok());
}

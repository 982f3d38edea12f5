//! The first call of a process: of a new program, and of a forked child.

use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, waitpid};
use vdso_time::{
    ClockId, Timespec, clock_getres, clock_gettime, getcpu, gettimeofday, syscall, time,
};
use vdso_time_benches::calls::keep;
use vdso_time_benches::harness::samples::{OURS, say};
use vdso_time_counter as counter;

/// A new program.
pub const NEW: &str = "first call";
/// A child of a process that read no clock.
pub const FORKED: &str = "in a forked child";
/// A child of a process that read the clock.
pub const WARM: &str = "after warm_up(), in a forked child";

pub const ROWS: [&str; 3] = [NEW, FORKED, WARM];

/// The floor of a first call that reads a page only after the kernel has confirmed that it is
/// readable.
pub const CHECKED: &str = "rustix and a check";

/// The first calls of all five functions.
pub const ALL: &str = "vdso-time, all functions";

/// How many children a process forks.
const CHILDREN: usize = 10;

/// How each contender reads a monotonic clock.
pub const CONTENDERS: [(&str, fn()); 9] = [
    (OURS, read_ours),
    (ALL, call_all),
    ("vdso-time, counter", read_counter),
    ("std", read_std),
    ("rustix", read_rustix),
    (CHECKED, check_and_read_rustix),
    ("coarsetime", read_coarsetime),
    ("quanta", read_quanta),
    ("vdso-time-quanta", read_our_quanta),
];

fn read_ours() {
    keep(clock_gettime(ClockId::MONOTONIC));
}

fn call_all() {
    keep((time(), gettimeofday(), getcpu()));
    keep((
        clock_getres(ClockId::MONOTONIC),
        clock_gettime(ClockId::MONOTONIC),
    ));
}

fn read_counter() {
    keep(counter::CounterMonotonicUnordered::now().as_nanos());
}

fn read_std() {
    keep(Instant::now());
}

fn read_rustix() {
    keep(rustix::time::clock_gettime(
        rustix::time::ClockId::Monotonic,
    ));
}

fn check_and_read_rustix() {
    check();
    keep(rustix::time::clock_gettime(
        rustix::time::ClockId::Monotonic,
    ));
}

fn read_coarsetime() {
    keep(coarsetime::Instant::now());
}

fn read_quanta() {
    keep(quanta::Instant::now());
}

fn read_our_quanta() {
    keep(vdso_time_quanta::Instant::now());
}

/// Asks the kernel whether the vDSO's first page is readable, as this crate does.
fn check() {
    // SAFETY: it reads the auxiliary vector.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    // SAFETY: `how` is invalid, so the call changes nothing.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, -1, vdso | 1, 0, 8) };
}

/// Prints the nanoseconds of the contender's first call in a process: in this one, or in children.
///
/// # Errors
///
/// The contender does not exist, or a child process cannot be awaited.
pub fn print(row: &str, name: &str) -> Result<(), String> {
    let mut contenders = CONTENDERS.into_iter();
    let Some((name, read)) = contenders.find(|contender| contender.0 == name) else {
        return Err(format!("unknown contender `{name}`"));
    };
    if row == NEW {
        print_first(row, name, read);
        return Ok(());
    }
    if row == WARM {
        vdso_time::warm_up();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            read();
        }
    }
    for _ in 0..CHILDREN {
        // SAFETY: this process has one thread, so the child may call everything.
        if unsafe { libc::fork() } == 0 {
            print_first(row, name, read);
            // SAFETY: the child has nothing of the parent's to clean up.
            unsafe { libc::_exit(0) };
        }
        if let Err(error) = waitpid(None, WaitOptions::empty()) {
            return Err(format!("waitpid: {error}"));
        }
    }
    Ok(())
}

/// Measures the call with the kernel's clock, so that the vDSO's pages are not touched.
fn print_first(row: &str, name: &str, read: fn()) {
    let now = || syscall::clock_gettime(ClockId::MONOTONIC_RAW).map_or(0, Timespec::as_nanos);
    let nothing = (0..15).map(|_| -now() + now()).min().unwrap_or(0);
    let start = now();
    read();
    let taken = now() - start;
    let nanos = taken - nothing;
    say(row, name, nanos as f64);
}

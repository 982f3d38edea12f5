//! The first call of a process: of a new program, and of a forked child.

use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, waitpid};
use vdso_time::{ClockId, syscall};
use vdso_time::{clock_getres, clock_gettime, getcpu, gettimeofday, time};
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

/// A way to read a monotonic clock.
#[derive(Clone, Copy)]
pub struct Contender {
    pub name: &'static str,
    read: fn(),
}

pub const CONTENDERS: [Contender; 9] = [
    Contender {
        name: OURS,
        read: read_ours,
    },
    Contender {
        name: ALL,
        read: call_all,
    },
    Contender {
        name: "vdso-time, counter",
        read: read_counter,
    },
    Contender {
        name: "std",
        read: read_std,
    },
    Contender {
        name: "rustix",
        read: read_rustix,
    },
    Contender {
        name: CHECKED,
        read: check_and_read_rustix,
    },
    Contender {
        name: "coarsetime",
        read: read_coarsetime,
    },
    Contender {
        name: "quanta",
        read: read_quanta,
    },
    Contender {
        name: "vdso-time-quanta",
        read: read_our_quanta,
    },
];

fn read_ours() {
    keep(clock_gettime(ClockId::MONOTONIC));
}

fn call_all() {
    keep(time());
    keep(gettimeofday());
    keep(getcpu());
    keep(clock_getres(ClockId::MONOTONIC));
    keep(clock_gettime(ClockId::MONOTONIC));
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
    let contender = contenders.find(|contender| contender.name == name);
    let Some(contender) = contender else {
        return Err(format!("unknown contender `{name}`"));
    };
    if row == NEW {
        print_first(row, contender);
        return Ok(());
    }
    if row == WARM {
        vdso_time::warm_up();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            (contender.read)();
        }
    }
    for _ in 0..CHILDREN {
        // SAFETY: this process has one thread, so the child may call everything.
        if unsafe { libc::fork() } == 0 {
            print_first(row, contender);
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
fn print_first(row: &str, contender: Contender) {
    let mut nothing = i128::MAX;
    for _ in 0..15 {
        let start = kernel_nanos();
        let taken = kernel_nanos() - start;
        nothing = nothing.min(taken);
    }
    let start = kernel_nanos();
    (contender.read)();
    let taken = kernel_nanos() - start;
    let nanos = taken - nothing;
    say(row, contender.name, nanos as f64);
}

/// Returns the time of a system call.
fn kernel_nanos() -> i128 {
    match syscall::clock_gettime(ClockId::MONOTONIC_RAW) {
        Ok(now) => now.as_nanos(),
        Err(_) => 0,
    }
}

//! The counter clock in a process that moves into another time namespace (time_namespaces(7)).

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "unshare(2) and setns(2) are called here")]

#[path = "support/counter.rs"]
mod counter_clock;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;

use counter_clock::{assert_near, expected, kernel, settle};
use test_support::{child, not_run_here};
use vdso_time::counter::{self, Status};

/// include/uapi/linux/sched.h; libc does not have it for every target.
const CLONE_NEWTIME: libc::c_int = 0x80;

const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLI;

/// Makes a time namespace for the children of this process. Its `CLOCK_MONOTONIC` is ahead of the
/// initial one by so many nanoseconds.
fn make_namespace(ahead: i64) -> io::Result<()> {
    // SAFETY: unshare(2) takes any number.
    if unsafe { libc::unshare(CLONE_NEWTIME) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let offset = format!("monotonic {} {}\n", ahead.div_euclid(SECOND), ahead.rem_euclid(SECOND));
    fs::write("/proc/self/timens_offsets", offset)
}

/// Moves this process, which must have one thread, into the namespace of its children.
fn enter_namespace() -> io::Result<()> {
    let namespace = File::open("/proc/self/ns/time_for_children")?;
    // SAFETY: setns(2) takes any descriptor; this one is open.
    match unsafe { libc::setns(namespace.as_raw_fd(), CLONE_NEWTIME) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads after the move, until the counter is used again.
fn read_there(before: i64, ahead: i64) {
    let moved = kernel(libc::CLOCK_MONOTONIC);
    let passed = || kernel(libc::CLOCK_MONOTONIC) - moved;
    // The line that was made before the move has no other time.
    while counter::status() == Status::Used {
        let _ = counter::monotonic();
        assert!(passed() < 10 * SECOND, "the line does not end");
    }
    while passed() < 200 * MILLI {
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic_ordered() as i64);
        assert_near(libc::CLOCK_REALTIME, counter::realtime);
    }
    if ahead < -100 * SECOND {
        assert!((counter::monotonic_ordered() as i64) < before);
    }
    assert_eq!(settle().status, expected());
}

/// Calibrates the clock, and reads it in another namespace.
fn move_to(namespace: i64, ahead: i64, by_fork: bool) {
    assert_eq!(settle().status, expected());
    let before = counter::monotonic_ordered() as i64;
    make_namespace(namespace).unwrap();
    if by_fork {
        child::forked(|| read_there(before, ahead));
    } else {
        enter_namespace().unwrap();
        read_there(before, ahead);
    }
}

/// A single test, so that no other thread renews the clock while this one forks.
#[test]
fn the_clock_of_another_time_namespace_is_followed_within_the_error_bound() {
    // The kernel refuses a clock below 0, and a test kernel has booted just now.
    const FIRST: i64 = 2_000 * SECOND;
    child::forked(|| {
        if let Err(error) = make_namespace(FIRST).and_then(|()| enter_namespace()) {
            return not_run_here("timens", format!("a time namespace cannot be entered: {error}"));
        }
        for ahead in [-1_000 * SECOND, -3 * SECOND, -90 * MILLI, -20 * MILLI, 20 * MILLI, 3 * SECOND] {
            for by_fork in [false, true] {
                child::forked(|| move_to(FIRST + ahead, ahead, by_fork));
            }
        }
    });
}

//! The counter clock in a process that moves into another time namespace (time_namespaces(7)).

use std::fs::{self, File};
use std::io;

use test_support::nix::sched::{CloneFlags, setns, unshare};
use test_support::{child, not_run_here};
use vdso_time::counter::{self, Status};

use crate::{assert_near, expected, kernel, settle};

/// `CLONE_NEWTIME` of include/uapi/linux/sched.h, which nix does not have.
const NEW_TIME: CloneFlags = CloneFlags::from_bits_retain(0x80);

const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLI;

/// Makes a time namespace for the children of this process. Its `CLOCK_MONOTONIC` is ahead of the
/// initial one by so many nanoseconds.
fn make_namespace(ahead: i64) -> io::Result<()> {
    unshare(NEW_TIME)?;
    let offset = format!("monotonic {} {}\n", ahead.div_euclid(SECOND), ahead.rem_euclid(SECOND));
    fs::write("/proc/self/timens_offsets", offset)
}

/// Moves this process, which must have one thread, into the namespace of its children.
fn enter_namespace() -> io::Result<()> {
    Ok(setns(File::open("/proc/self/ns/time_for_children")?, NEW_TIME)?)
}

/// Reads after the move, until the counter is used again.
fn read_there(before: i64, ahead: i64) {
    let moved = kernel(libc::CLOCK_MONOTONIC);
    let passed = || kernel(libc::CLOCK_MONOTONIC) - moved;
    // The segment that was made before the move has the other time.
    while counter::status() == Status::Used {
        let _ = counter::monotonic();
        assert!(passed() < 10 * SECOND, "the segment does not end");
    }
    while passed() < 200 * MILLI {
        assert_near();
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

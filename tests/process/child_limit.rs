//! The limit of the tests' own children: one that hangs fails its test with a message, and its own
//! children end with it.

#![allow(unsafe_code, reason = "libc is called here")]

use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use test_support::child;

/// Waits until there is something to read, or nobody is left who could write; 0 if neither happens.
fn readable(pipe: i32) -> i32 {
    let mut poll = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    // SAFETY: poll(2) reads and writes the one entry.
    unsafe { libc::poll(&raw mut poll, 1, 30_000) }
}

#[test]
fn a_child_that_hangs_is_killed_with_its_own_child_and_the_test_fails() {
    let mut pipe = [0; 2];
    // SAFETY: pipe(2) writes the two descriptors there.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let [reader, writer] = pipe;
    let hung = child::fork(|| {
        child::forked(|| {
            // SAFETY: write(2) reads the one byte.
            unsafe { libc::write(writer, c"x".as_ptr().cast(), 1) };
            thread::sleep(Duration::from_secs(100));
        });
    });
    // SAFETY: this process does not write to the pipe.
    unsafe { libc::close(writer) };
    assert_eq!(readable(reader), 1, "the child's child did not start");
    let mut byte = 0_u8;
    // SAFETY: read(2) writes one byte there.
    assert_eq!(unsafe { libc::read(reader, (&raw mut byte).cast(), 1) }, 1);

    let panic = catch_unwind(|| child::wait(hung, Duration::from_millis(100))).expect_err("it hangs");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert_eq!(message, "the child was killed, for it had not ended after 100ms");
    assert_eq!(readable(reader), 1, "the child's child still runs");
    // SAFETY: read(2) writes at most one byte there.
    assert_eq!(unsafe { libc::read(reader, (&raw mut byte).cast(), 1) }, 0, "it still writes");
}

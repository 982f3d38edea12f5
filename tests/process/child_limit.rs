//! The limit of the tests' own children: one that hangs fails its test with a message, and its own
//! children end with it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use test_support::child;
use test_support::nix::poll::{PollFd, PollFlags, poll};
use test_support::nix::unistd::pipe;

#[test]
fn a_child_that_hangs_is_killed_with_its_own_child_and_the_test_fails() {
    let (mut reader, mut writer) =
        pipe().map(|(reader, writer)| (File::from(reader), File::from(writer))).unwrap();
    let hung = child::fork(|| {
        child::forked(|| {
            writer.write_all(b"x").unwrap();
            thread::sleep(Duration::from_secs(100));
        });
        true
    });
    drop(writer);
    let is_readable =
        |reader: &File| poll(&mut [PollFd::new(reader.as_fd(), PollFlags::POLLIN)], 30_000_u16).unwrap() == 1;
    assert!(is_readable(&reader), "the child's child did not start");
    let mut byte = [0];
    assert_eq!(reader.read(&mut byte).unwrap(), 1);

    let panic = catch_unwind(|| child::wait(hung, Duration::from_millis(100))).expect_err("it hangs");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert_eq!(message, "the child was killed because it had not ended after 100ms");
    assert!(is_readable(&reader), "the child's child still runs");
    assert_eq!(reader.read(&mut byte).unwrap(), 0, "it still writes");
}

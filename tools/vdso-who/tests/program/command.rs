//! Tools for tests that run a program and check what it prints.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};

use super::common::{child, has_tool, not_run_here};

/// The exit status, standard output and standard error.
pub(crate) type Ended = (Option<i32>, String, String);

/// Returns how a command ended and what it printed. If the kernel could not start the program, as
/// can happen under QEMU or in a guest, records the test as not run.
pub(crate) fn started(output: io::Result<Output>) -> Option<Ended> {
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            not_run_here(error);
            return None;
        }
    };
    let status = output.status;
    // A shell ends with one of these if it cannot start a program.
    if [Some(126), Some(127)].contains(&status.code()) {
        not_run_here(status);
        return None;
    }
    let out = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    Some((status.code(), out, error))
}

/// Writes an executable file, in a child. If this process wrote it, processes that other threads
/// start meanwhile would inherit the open file, and the kernel does not execute a file that is open
/// for writing (ETXTBSY).
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let child = child::fork(|| {
        let written = fs::write(path, bytes);
        let permissions = Permissions::from_mode(0o755);
        match written.and_then(|()| fs::set_permissions(path, permissions)) {
            Ok(()) => true,
            Err(error) => child::leave(error.raw_os_error().unwrap_or(libc::EIO)),
        }
    });
    match child::wait(child) {
        child::SUCCESS => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(number)),
        None => Err(io::Error::other("a signal ended the child that writes")),
    }
}

/// Fails unless a program whose report cannot be written prints the reason in one line and ends
/// with status 2. EPIPE must not be an error. `ended` returns `None` if the command cannot run
/// here.
#[track_caller]
pub(crate) fn assert_says_that_output_is_lost(
    name: &str,
    command: impl Fn() -> Command,
    ended: impl Fn(io::Result<Output>) -> Option<Ended>,
) {
    let write_only = |path: &str| OpenOptions::new().write(true).open(path).unwrap();
    let (writer, _) = UnixStream::pair().unwrap();
    let outputs: [OwnedFd; 2] = [write_only("/dev/null").into(), writer.into()];
    for output in outputs {
        let Some((status, _, said)) = ended(command().stdout(output).output()) else {
            return;
        };
        assert!(
            status != Some(2) && said.is_empty(),
            "{:?}: {status:?} {said}",
            command()
        );
    }

    // std reports success for a descriptor that is not open for writing.
    let not_open = "standard output is not open for writing";
    let full = command().stdout(write_only("/dev/full")).output();
    let for_reading = command().stdout(File::open("/dev/null").unwrap()).output();
    let mut outputs = vec![
        (full, "No space left on device (os error 28)"),
        (for_reading, not_open),
    ];
    let whole = command();
    if has_tool("sh", &["-c", "true"]) {
        // std opens /dev/null in place of a closed descriptor, so writing to it succeeds.
        let mut closed = Command::new("sh");
        closed
            .args(["-c", "exec \"$0\" \"$@\" >&-"])
            .arg(whole.get_program())
            .args(whole.get_args());
        outputs.push((closed.output(), not_open));
    }
    for (output, why) in outputs {
        let Some((status, _, said)) = ended(output) else {
            return;
        };
        let expected = format!("{name}: cannot write the report: {why}\n");
        assert_eq!((status, said), (Some(2), expected), "{whole:?}");
    }
}

//! Programs that a test runs, and what they print.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::child::{self, End};
use crate::{has_tool, not_run_here};

/// The exit status, standard output and standard error.
pub type Ended = (Option<i32>, String, String);

/// Returns what a command printed; none if the kernel could not start the program, as under QEMU or
/// in a guest.
#[track_caller]
pub fn started(output: io::Result<Output>) -> Option<Ended> {
    let why = match output {
        Ok(Output { status, .. }) if [Some(126), Some(127)].contains(&status.code()) => {
            status.to_string()
        }
        Ok(Output {
            status,
            stdout,
            stderr,
        }) => {
            let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
            return Some((status.code(), out, error));
        }
        Err(error) => error.to_string(),
    };
    not_run_here(why);
    None
}

/// Writes a program. A child does it: other threads start processes meanwhile, which would inherit
/// the open file, and the kernel executes no file that is open for writing (ETXTBSY).
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let write = || {
        fs::write(path, bytes)
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o755)))
    };
    let end = child::end_of(|| match write() {
        Ok(()) => true,
        Err(error) => child::leave(error.raw_os_error().unwrap_or(libc::EIO)),
    });
    match end {
        child::WELL => Ok(()),
        End::Status(number) => Err(io::Error::from_raw_os_error(number)),
        End::Signal(signal) => Err(io::Error::other(signal.as_str())),
    }
}

/// Fails unless a program whose report cannot be written says so in one line, with status 2. EPIPE
/// is not an error. `ended` returns none if the command cannot run here.
#[track_caller]
pub fn assert_says_that_output_is_lost(
    name: &str,
    command: impl Fn() -> Command,
    ended: impl Fn(io::Result<Output>) -> Option<Ended>,
) {
    let file = |path: &str| Stdio::from(OpenOptions::new().write(true).open(path).unwrap());
    let (writer, _) = UnixStream::pair().unwrap();
    for out in [file("/dev/null"), Stdio::from(OwnedFd::from(writer))] {
        let Some((status, _, said)) = ended(command().stdout(out).output()) else {
            return;
        };
        assert!(
            status != Some(2) && said.is_empty(),
            "{:?}: {status:?} {said}",
            command()
        );
    }
    let (full, whole) = (command().stdout(file("/dev/full")).output(), command());
    // std opens /dev/null in the place of a closed descriptor, so writing to it succeeds.
    let mut closed = Command::new("sh");
    closed
        .args(["-c", "exec \"$0\" \"$@\" >&-"])
        .arg(whole.get_program())
        .args(whole.get_args());
    let closed = has_tool("sh", &["-c", "true"]).then(|| closed.output());
    let full = Some((full, "No space left on device (os error 28)"));
    // std reports success for a descriptor that is not open for writing.
    let for_reading = command().stdout(File::open("/dev/null").unwrap()).output();
    let not_open = closed.into_iter().chain([for_reading]);
    let not_open = not_open.map(|output| (output, "standard output is not open for writing"));
    for (output, why) in full.into_iter().chain(not_open) {
        let Some((status, _, said)) = ended(output) else {
            return;
        };
        let expected = format!("{name}: cannot write the report: {why}\n");
        assert_eq!((status, said), (Some(2), expected), "{whole:?}");
    }
}

//! A child process whose every clock call fails with an error number that no clock call has: what the vDSO returns tells
//! whether it asked the kernel.

#![allow(unsafe_code, reason = "libc is called here")]

use std::ffi::c_int;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use vdso_time::arch::NATIVE;
use vdso_time::{ClockId, Errno, syscall};

use super::filter::{clock_calls, denying, install};
use super::{Count, Cpus, Entry, on_each_cpu};

/// "Exchange full".
const MARK: c_int = libc::EXFULL;

/// Does `work` in a child that is denied the clock, and gives what it came to.
fn in_child(work: impl FnOnce() -> io::Result<Count>) -> io::Result<Count> {
    let abi = NATIVE.ok_or(io::ErrorKind::Unsupported)?;
    // Made here, for a child of a process of several threads had better not allocate.
    let mut filter = denying(abi, &clock_calls(abi), MARK);
    let (mut reader, mut writer) = UnixStream::pair()?;
    // SAFETY: the child makes system calls and clock reads, and leaves.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let words = match install(&mut filter).and_then(|()| work()) {
                Ok(count) => [0, count.reads, count.entered],
                Err(error) => [error.raw_os_error().unwrap_or(libc::ENOTSUP) as u32, 0, 0],
            };
            let told = writer.write_all(words.map(u32::to_ne_bytes).as_flattened());
            // Not `exit`: what this process has buffered is not the child's to write.
            // SAFETY: it takes any status.
            unsafe { libc::_exit(told.is_err().into()) }
        }
        child => {
            drop(writer);
            let mut words = [[0; 4]; 3];
            let told = reader.read_exact(words.as_flattened_mut());
            // SAFETY: no status is written to a null pointer.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            told?;
            match words.map(u32::from_ne_bytes) {
                [0, reads, entered] => Ok(Count { reads, entered, ..Count::default() }),
                [error, ..] => Err(io::Error::from_raw_os_error(error as i32)),
            }
        }
    }
}

/// Sees that a clock call fails as it should.
pub(super) fn check() -> io::Result<()> {
    let marked = Errno::from_raw_os_error(MARK);
    let count = in_child(|| {
        let entered = u32::from(syscall::clock_gettime(ClockId::MONOTONIC).err() == marked);
        Ok(Count { reads: 1, entered, ..Count::default() })
    })?;
    if count.entered == 1 { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    in_child(|| on_each_cpu(entry, cpus, |entry| entry.call() == -(MARK as isize)))
}

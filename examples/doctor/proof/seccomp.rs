//! A child process whose every clock call fails with an error number that no clock call has: what the vDSO returns tells
//! whether it asked the kernel.

#![allow(unsafe_code, reason = "libc is called here")]

use std::ffi::c_int;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use vdso_time::arch::{Abi, NATIVE};
use vdso_time::{ClockId, Errno, syscall};

use super::filter::deny;
use super::{Count, Cpus, Entry, on_each_cpu};

/// "Exchange full".
const MARK: c_int = libc::EXFULL;

/// Every system call, old and new, that can answer one of the functions.
fn clock_calls(abi: &Abi) -> Vec<u32> {
    let functions = [&abi.time, &abi.gettimeofday, &abi.clock_gettime, &abi.clock_getres, &abi.getcpu];
    functions.iter().flat_map(|function| function.syscalls).map(|call| call.number).collect()
}

/// Does `work` in a child that is denied the clock, and gives what it came to.
fn in_child(work: impl FnOnce() -> io::Result<Count>) -> io::Result<Count> {
    let abi = NATIVE.ok_or(io::ErrorKind::Unsupported)?;
    let (mut reader, mut writer) = UnixStream::pair()?;
    // SAFETY: this program has one thread, so the child has all that this process has.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let done = deny(abi, &clock_calls(abi), MARK).and_then(|()| work()).and_then(|count| {
                let words = [count.reads, count.entered].map(u32::to_ne_bytes);
                writer.write_all(words.as_flattened())
            });
            // Not `exit`: what this process has buffered is not the child's to write.
            // SAFETY: it takes any status.
            unsafe { libc::_exit(done.is_err().into()) }
        }
        child => {
            drop(writer);
            let mut words = [[0; 4]; 2];
            let result = reader.read_exact(words.as_flattened_mut());
            // SAFETY: no status is written to a null pointer.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            result?;
            let [reads, entered] = words.map(u32::from_ne_bytes);
            Ok(Count { reads, entered, outside: 0 })
        }
    }
}

/// Sees that a clock call fails as it should.
pub(super) fn check() -> io::Result<()> {
    let marked = Errno::from_raw_os_error(MARK);
    let count = in_child(|| {
        let entered = u32::from(syscall::clock_gettime(ClockId::MONOTONIC).err() == marked);
        Ok(Count { reads: 1, entered, outside: 0 })
    })?;
    if count.entered == 1 { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Counts the reads that make a system call.
pub(super) fn count(entry: Entry, cpus: Option<&Cpus>) -> io::Result<Count> {
    in_child(|| on_each_cpu(entry, cpus, |entry| entry.call() == -(MARK as isize)))
}

//! System calls that ask the kernel whether memory is readable, what a file contains, and which CPU
//! a thread runs on.

use crate::arch::native::{DISCOVERY, OPEN_FLAGS, SIGSET_SIZE, checked};
use crate::errno::Errno;
use crate::types::Cpu;

/// Asks the kernel whether a page is readable. `address` is its start.
///
/// `rt_sigprocmask` first copies the signal set from the caller's memory, and only then rejects an
/// unknown `how`. So `EINVAL` means that the bytes are readable, `EFAULT` means that they are not,
/// and any other answer comes from a sandbox. The call gets the address of the page's second byte
/// instead of its first, because address 0 would mean that no signal set is passed.
///
/// If the vDSO was unmapped, valgrind's memcheck reports this call as an error (docs/NO_LIBC.md).
/// We tried mincore(2), which memcheck accepts. But mincore(2) takes four times as long. It also
/// succeeds for pages that cannot be read (`PROT_NONE`), so this crate would crash on such a page.
pub(crate) fn probe(address: usize) -> Result<(), Errno> {
    const UNKNOWN_HOW: usize = !0;
    // SAFETY: with an unknown `how` the call fails for every address and changes nothing.
    match unsafe {
        checked(
            DISCOVERY.rt_sigprocmask,
            [UNKNOWN_HOW, address | 1, 0, SIGSET_SIZE, 0],
        )
    } {
        Err(Errno::EINVAL) => Ok(()),
        Ok(_) => Err(Errno::EPERM), // a sandbox that suppresses the call
        Err(error) => Err(error),
    }
}

/// Reads the first words of a file. The file is opened with `O_NONBLOCK`, so if it is a pipe, the
/// function does not wait for a writer.
///
/// # Errors
///
/// The errors of openat(2) and read(2).
pub fn read_file(path: &core::ffi::CStr, words: &mut [usize]) -> Result<(), Errno> {
    const AT_FDCWD: usize = -100_isize as usize;
    let args = [
        AT_FDCWD,
        path.as_ptr().expose_provenance(),
        OPEN_FLAGS,
        0,
        0,
    ];
    // SAFETY: `path` ends with a NUL, and the kernel only reads it.
    let file = unsafe { checked(DISCOVERY.openat, args) }?;
    let args = [
        file,
        words.as_mut_ptr().expose_provenance(),
        size_of_val(words),
        0,
        0,
    ];
    // SAFETY: the kernel writes at most `size_of_val(words)` bytes to `words`.
    let size = unsafe { checked(DISCOVERY.read, args) };
    // SAFETY: this function opened the file.
    let _ = unsafe { checked(DISCOVERY.close, [file, 0, 0, 0, 0]) };
    size.map(drop)
}

/// Makes the system call getcpu(2). `number` is its number on this architecture.
#[inline]
pub(crate) fn getcpu(number: u32) -> Result<Cpu, Errno> {
    let mut cpu = 0_u32;
    let mut node = 0_u32;
    let args = [
        (&raw mut cpu).expose_provenance(),
        (&raw mut node).expose_provenance(),
        0,
        0,
        0,
    ];
    // SAFETY: getcpu(2) writes two `u32`, to `cpu` and to `node`.
    unsafe { checked(number, args) }?;
    Ok(Cpu { cpu, node })
}

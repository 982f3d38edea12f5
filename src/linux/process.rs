//! What the kernel says of this process: its auxiliary vector, its memory, its rights.

#[cfg(any(feature = "libc", vdso_time_libc_fallback))]
use super::libc_errno;
use super::native::{self, ABI};
use super::syscall::check;
use crate::errno::Errno;

/// Whether 8 bytes can be read, at this address or, if it is even, one further on, which is in the same pages: at address 0
/// there would be no set. `rt_sigprocmask` with a `how` that there is not copies the set in, so it knows, and then does
/// nothing: `EINVAL` is a yes, `EFAULT` a no, and any other error a sandbox's.
pub(crate) fn probe(address: usize) -> Result<(), Errno> {
    const NO_SUCH_HOW: usize = !0;
    const SIGSET_SIZE: usize = 8;
    let args = [NO_SUCH_HOW, address | 1, 0, SIGSET_SIZE, 0];
    // SAFETY: with this `how` the call fails, whatever the set, and changes nothing.
    match check(unsafe { native::syscall(ABI.discovery.rt_sigprocmask, args) }) {
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The auxiliary vector's value, by libc; 0 if it has none. `errno` stays what it was.
#[cfg(any(feature = "libc", vdso_time_libc_fallback))]
pub(crate) fn getauxval(tag: usize) -> usize {
    if cfg!(miri) {
        return 0; // Miri has no auxiliary vector
    }
    let errno = libc_errno::get();
    // SAFETY: getauxval(3) takes any number.
    let value = unsafe { libc::getauxval(tag as libc::c_ulong) };
    libc_errno::set(errno);
    value as usize
}

/// The auxiliary vector, pairs of a tag and a value, from nothing but the kernel (since Linux 6.4).
#[cfg(not(any(feature = "libc", vdso_time_libc_fallback)))]
pub(crate) fn get_auxv(vector: &mut [[usize; 2]]) -> Result<usize, Errno> {
    const PR_GET_AUXV: usize = 0x4155_5856;
    let args = [PR_GET_AUXV, vector.as_mut_ptr().expose_provenance(), size_of_val(vector), 0, 0];
    // SAFETY: the kernel writes at most this many bytes to `vector`.
    check(unsafe { native::syscall(ABI.discovery.prctl, args) })
}

/// The first words of a file.
#[cfg(any(feature = "counter", not(any(feature = "libc", vdso_time_libc_fallback))))]
pub(crate) fn read_file(path: &core::ffi::CStr, words: &mut [[usize; 2]]) -> Result<usize, Errno> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_CLOEXEC: usize = 0o2_000_000;
    let args = [AT_FDCWD, path.as_ptr().expose_provenance(), O_CLOEXEC, 0, 0];
    // SAFETY: the path is a C string; the file is opened for reading.
    let file = check(unsafe { native::syscall(ABI.discovery.openat, args) })?;
    let args = [file, words.as_mut_ptr().expose_provenance(), size_of_val(words), 0, 0];
    // SAFETY: the kernel writes at most this many bytes to `words`.
    let size = check(unsafe { native::syscall(ABI.discovery.read, args) });
    // SAFETY: the file is this function's own.
    let _ = check(unsafe { native::syscall(ABI.discovery.close, [file, 0, 0, 0, 0]) });
    size
}

/// Whether this thread must not read the counter that the vDSO reads: prctl(2), `PR_GET_TSC` (x86; aarch64 since Linux 6.12).
#[cfg(feature = "counter")]
pub(crate) fn is_counter_denied() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_SIGSEGV: u32 = 2;
    let mut state: u32 = 0;
    let args = [PR_GET_TSC, (&raw mut state).expose_provenance(), 0, 0, 0];
    // SAFETY: the kernel writes one `int`.
    check(unsafe { native::syscall(ABI.discovery.prctl, args) }).is_ok() && state == PR_TSC_SIGSEGV
}

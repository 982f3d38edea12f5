//! libc's `errno`, which its calls set and this crate's must not.

#[cfg(target_os = "android")]
use libc::__errno as location;
#[cfg(target_os = "linux")]
use libc::__errno_location as location;

/// This thread's `errno`.
pub(crate) fn get() -> i32 {
    // SAFETY: libc's function has no precondition.
    let errno = unsafe { location() };
    // SAFETY: it returned this thread's own `errno`.
    unsafe { errno.read() }
}

/// Puts this thread's `errno` back.
pub(crate) fn set(value: i32) {
    // SAFETY: libc's function has no precondition.
    let errno = unsafe { location() };
    // SAFETY: it returned this thread's own `errno`.
    unsafe { errno.write(value) }
}

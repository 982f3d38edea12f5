//! libc's `errno`, which libc's functions set and this crate must not change.

#[cfg(target_os = "android")]
use libc::__errno as location;
#[cfg(target_os = "linux")]
use libc::__errno_location as location;

/// Returns this thread's `errno`.
pub(crate) fn get() -> i32 {
    // SAFETY: libc's function has no precondition.
    let errno = unsafe { location() };
    // SAFETY: libc returned the address of this thread's `errno`, which lives as long as the
    // thread.
    unsafe { errno.read() }
}

/// Sets this thread's `errno`.
pub(crate) fn set(value: i32) {
    // SAFETY: libc's function has no precondition.
    let errno = unsafe { location() };
    // SAFETY: libc returned the address of this thread's `errno`, which lives as long as the
    // thread.
    unsafe { errno.write(value) }
}

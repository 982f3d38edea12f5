//! libc's `errno`, which libc's functions set and this crate must not change.

#[cfg(target_os = "android")]
use libc::__errno as location;
#[cfg(target_os = "linux")]
use libc::__errno_location as location;

/// Calls `call`, and restores this thread's `errno`. Returns the result, and the value that `call`
/// left in `errno`.
pub(crate) fn preserved<T>(call: impl FnOnce() -> T) -> (T, i32) {
    // SAFETY: this thread's `errno` is in its thread-local storage, which libc sets up before it
    // runs any of the program's code in the thread. Two kinds of code run without it, and must
    // avoid this function: an IFUNC resolver of a static program, which runs earlier, and a thread
    // that the program made with clone(2). docs/NO_LIBC.md describes how.
    let errno = unsafe { location() };
    // SAFETY: this thread's `errno` lives as long as the thread.
    let before = unsafe { errno.read() };
    let result = call();
    // SAFETY: this thread's `errno` lives as long as the thread.
    (result, unsafe { errno.replace(before) })
}

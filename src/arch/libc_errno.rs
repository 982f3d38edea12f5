//! libc's `errno`, which libc's functions set and this crate must not change.

#[cfg(target_os = "android")]
use libc::__errno as location;
#[cfg(target_os = "linux")]
use libc::__errno_location as location;

/// Calls `call`, and restores this thread's `errno`. Returns the result, and the value that `call`
/// left in `errno`.
pub(crate) fn preserved<T>(call: impl FnOnce() -> T) -> (T, i32) {
    // SAFETY: this thread has thread-local storage, which contains its `errno`. libc sets the
    // storage up before it runs any code of the program. The exception is an IFUNC resolver of a
    // static program, and docs/NO_LIBC.md forbids this call there.
    let errno = unsafe { location() };
    // SAFETY: this thread's `errno` lives as long as the thread.
    let before = unsafe { errno.read() };
    let result = call();
    // SAFETY: this thread's `errno` lives as long as the thread.
    (result, unsafe { errno.replace(before) })
}

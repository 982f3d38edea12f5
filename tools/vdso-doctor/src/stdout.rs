//! Whether standard output was open for writing when the program started.
//!
//! Before `main`, std opens /dev/null in the place of a closed descriptor, and writing to that
//! succeeds. The C library calls the functions of `.init_array` earlier. std also takes EBADF, the
//! error of a descriptor that is open for reading only, for success.

#![allow(unsafe_code, reason = "a link section is chosen, and libc is called")]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

// SAFETY: the section holds addresses of functions that the C library calls once.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: fcntl(2) takes any number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    WAS_OPEN.store(flags != -1 && flags & libc::O_ACCMODE != libc::O_RDONLY, Ordering::Relaxed);
}

pub(crate) fn was_open() -> bool {
    WAS_OPEN.load(Ordering::Relaxed)
}

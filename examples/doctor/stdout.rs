//! Whether standard output was open when the program was started.
//!
//! Before main, std opens /dev/null in the place of a closed descriptor, and writing to that
//! succeeds. So this looks earlier: the C library calls the functions in `.init_array` before main.

#![allow(unsafe_code, reason = "a place in the program is chosen, and libc is called")]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_OPEN: AtomicBool = AtomicBool::new(true);

// SAFETY: what is in this section is the address of a function that the C library calls once.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: fcntl(2) takes any number.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_OPEN.store(flags != -1, Ordering::Relaxed);
}

pub(crate) fn was_open() -> bool {
    WAS_OPEN.load(Ordering::Relaxed)
}

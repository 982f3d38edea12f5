//! A library with sites: it is linked into a program, or is a shared object of its own.

#![deny(unsafe_code)]

use vdso_time_trace::traced;

pub fn called() -> i64 {
    traced!("library/called", vdso_time::time())
}

#[inline]
pub fn inlined() -> i64 {
    traced!("library/inlined", vdso_time::time())
}

pub mod elsewhere {
    pub fn never_called() -> i64 {
        vdso_time_trace::traced!("library/never called", vdso_time::time())
    }
}

#[allow(dead_code)]
fn private_and_never_called() -> i64 {
    traced!("library/private", vdso_time::time())
}

/// For whoever loads the shared object.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn linked_sites() -> usize {
    vdso_time_trace::sites().len()
}

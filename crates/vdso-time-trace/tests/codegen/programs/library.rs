//! A library with sites, for a program or as a shared object.

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

#[allow(dead_code, reason = "its site is listed all the same")]
fn private_and_never_called() -> i64 {
    traced!("library/private", vdso_time::time())
}

#[unsafe(no_mangle)]
pub extern "C" fn sites_of_this_object() -> usize {
    vdso_time_trace::sites().len()
}

//! A library with sites.

use vdso_time_trace::traced;

pub fn called() -> i64 {
    traced!("library/called", vdso_time::time())
}

#[inline]
pub fn inlined() -> i64 {
    traced!("library/inlined", vdso_time::time())
}

pub fn never_called() -> i64 {
    traced!("library/never called", vdso_time::time())
}

#[allow(dead_code, reason = "its site is listed all the same")]
fn private_and_never_called() -> i64 {
    traced!("library/private", vdso_time::time())
}

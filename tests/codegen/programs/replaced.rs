//! A library for LD_PRELOAD that replaces one function of libc by a call that docs/NO_LIBC.md
//! forbids, or that needs the crate without its feature `libc`.

#![allow(missing_docs, unsafe_code, reason = "this is only preloaded")]

use std::ffi::c_ulong;

/// Calls std, which calls libc's clock_gettime, which is this function.
#[cfg(calls_std)]
#[unsafe(no_mangle)]
pub extern "C" fn clock_gettime(_: std::ffi::c_int, _: *mut [std::ffi::c_long; 2]) -> std::ffi::c_int {
    i32::from(std::time::SystemTime::now() < std::time::UNIX_EPOCH)
}

/// Has no entry, and looks at the clock. With its feature `libc` the crate's first call asks
/// getauxval for the vDSO.
#[cfg(not(calls_std))]
#[unsafe(no_mangle)]
pub extern "C" fn getauxval(_: c_ulong) -> c_ulong {
    c_ulong::from(vdso_time::time() == 0)
}

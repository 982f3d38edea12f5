//! The C interface of vdso-time. `cargo xtask api --write` generates one header from the module
//! `clock` and one from `counter`. The headers document the functions for C programs.

#![no_std]
#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "pointers of C programs")]
#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the comments go to the header, whose first lines state the rules for pointers"
)]

pub mod clock;
pub mod counter;
#[cfg(feature = "parse-vdso")]
pub mod parse_vdso;

use core::ffi::{c_char, c_int, c_void};
use core::{ptr, slice, str};

use vdso_time::Errno;
use vdso_time::vdso::Vdso;

/// Returns the address of a symbol, or null.
///
/// # Safety
/// `name` and `version` must be null or strings.
unsafe fn symbol(vdso: &Vdso<'_>, name: *const c_char, version: *const c_char) -> *mut c_void {
    // SAFETY: the caller passes null or a string.
    let Some(name) = (unsafe { string(name) }) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller passes null or a string.
    let required = unsafe { string(version) };
    // If the version is not UTF-8, no symbol can have it.
    if required.is_none() && !version.is_null() {
        return ptr::null_mut();
    }
    match vdso.symbol_address(name, required) {
        Some(address) => address.cast_mut().cast(),
        None => ptr::null_mut(),
    }
}

/// Returns the text of a C string, or `None` if the pointer is null or the text is not UTF-8.
///
/// # Safety
/// `string` must be null, or a string that stays valid during `'a`.
unsafe fn string<'a>(string: *const c_char) -> Option<&'a str> {
    if string.is_null() {
        return None;
    }
    let mut length = 0;
    // The read is volatile, because the compiler would otherwise replace the loop with a call of
    // strlen, which a program without libc lacks.
    // SAFETY: no byte before this one was the string's end.
    while unsafe { string.wrapping_add(length).read_volatile() } != 0 {
        length += 1;
    }
    // SAFETY: the string has these bytes.
    let bytes = unsafe { slice::from_raw_parts(string.cast(), length) };
    str::from_utf8(bytes).ok()
}

/// Stores a result and returns 0, or returns the error.
///
/// # Safety
/// `to` must be null, or aligned and valid for a write of a `T`.
unsafe fn store<T>(result: Result<T, Errno>, to: *mut T) -> c_int {
    let value = match result {
        Ok(value) => value,
        Err(error) => return negative(error),
    };
    if !to.is_null() {
        // SAFETY: `to` is not null, so the caller guarantees that a `T` can be written to it.
        unsafe { to.write(value) };
    }
    0
}

/// Stores the two words of a time and returns 0, or returns the error.
///
/// The vDSO has just stored the words one by one. A copy of both words with one load would wait for
/// these stores. That wait costs a fifth of a read. Volatile writes keep the two copies separate.
///
/// # Safety
/// `to` must be null, or aligned and valid for writes of two `i64`.
unsafe fn store_time(result: Result<[i64; 2], Errno>, to: *mut i64) -> c_int {
    let [first, second] = match result {
        Ok(words) => words,
        Err(error) => return negative(error),
    };
    if to.is_null() {
        return 0;
    }
    // SAFETY: `to` is not null, so the caller guarantees room for two words. This is the first.
    unsafe { to.write_volatile(first) };
    // SAFETY: the same. This is the second.
    unsafe { to.wrapping_add(1).write_volatile(second) };
    0
}

/// Returns the negative error number that the C functions return.
fn negative(error: Errno) -> c_int {
    -error.raw_os_error()
}

// This note declares that the library supports the shadow stack of x86_64. Without the note, the
// linker would turn the shadow stack off for a whole program that contains the static library. The
// code supports the shadow stack without a change, because every function here returns to its
// caller.
//
// Support for IBT, BTI and GCS is not declared. IBT and BTI need a landing pad in every function
// that is called through a pointer, and stable Rust emits no landing pads. GCS, the shadow stack of
// aarch64, was not tested.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
core::arch::global_asm!(
    ".pushsection .note.gnu.property, \"a\", @note",
    ".p2align 3",
    ".long 4, 16, 5", // the sizes of name and property, NT_GNU_PROPERTY_TYPE_0
    ".asciz \"GNU\"",
    ".long 0xc0000002, 4, 2, 0", // GNU_PROPERTY_X86_FEATURE_1_AND, its size, SHSTK, padding
    ".popsection",
);

/// Aborts. No panic is reachable, so the compiler drops this handler: a test checks that the
/// library does not call `abort`. Where panics unwind, as in cargo's tests, the handler is std's.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn abort() -> !;
    }
    abort()
}

//! A shared library with thread-local storage, with the crate or without it.

#![allow(missing_docs, unsafe_code, reason = "this is only linked")]

use std::cell::Cell;

thread_local! {
    static CALLS: Cell<i64> = const { Cell::new(0) };
}

#[unsafe(no_mangle)]
pub extern "C" fn shared_library_function() -> i64 {
    let calls = CALLS.get() + 1;
    CALLS.set(calls);
    #[cfg(with_the_crate)]
    let calls = calls + vdso_time::time() + vdso_time::getcpu().map_or(0, |here| here.cpu.into());
    println!("{calls}"); // std is in the library, with the crate or without it
    calls
}

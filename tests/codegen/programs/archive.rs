//! A static library for C with one function: `first` or `second`. It returns 0 if every call of the
//! crate has an answer.

#![no_std]
#![allow(missing_docs, unsafe_code, reason = "this is only linked")]

use vdso_time::{ClockId, clock_gettime, getcpu, gettimeofday, syscall, time};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg_attr(function = "first", unsafe(export_name = "first"))]
#[cfg_attr(function = "second", unsafe(export_name = "second"))]
pub extern "C" fn has_failed() -> i32 {
    let read =
        clock_gettime(ClockId::MONOTONIC).is_ok() && gettimeofday().is_ok() && getcpu().is_ok();
    #[cfg(has_other)]
    let read = read && other::time() > 0;
    i32::from(!read || time() <= 0 || syscall::try_time().is_err())
}

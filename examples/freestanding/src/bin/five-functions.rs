//! Calls the five functions and does nothing else.

#![no_std]
#![no_main]

#[path = "../runtime.rs"]
#[allow(dead_code, reason = "it prints nothing")]
mod runtime;

use vdso_time::{ClockId, clock_getres, clock_gettime, getcpu, gettimeofday, time};

fn main(_: usize, _: *const u8) -> i32 {
    let _ = time();
    let is_ok = gettimeofday().is_ok()
        && clock_gettime(ClockId::MONOTONIC).is_ok()
        && clock_getres(ClockId::MONOTONIC).is_ok()
        && getcpu().is_ok();
    i32::from(!is_ok)
}

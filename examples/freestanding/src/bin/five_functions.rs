//! Calls the five functions and does nothing else.

#![no_std]
#![no_main]

use vdso_time::{ClockId, clock_getres, clock_gettime, getcpu, gettimeofday, time};

#[path = "../start.rs"]
mod start;

fn main(_: usize, _: *const [usize; 2]) -> i32 {
    let good = time() > 0
        && gettimeofday().is_ok()
        && clock_gettime(ClockId::MONOTONIC).is_ok()
        && clock_getres(ClockId::MONOTONIC).is_ok()
        && getcpu().is_ok();
    i32::from(!good)
}

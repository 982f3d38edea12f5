//! Calls the five functions and does nothing else.

#![no_std]
#![no_main]

use vdso_time::{ClockId, Errno, clock_getres, clock_gettime, getcpu, gettimeofday, time};

freestanding::start!(main);

fn main(_: usize, _: *const [usize; 2]) -> i32 {
    i32::from(five().is_err())
}

fn five() -> Result<(), Errno> {
    let _ = time();
    gettimeofday()?;
    clock_gettime(ClockId::MONOTONIC)?;
    clock_getres(ClockId::MONOTONIC)?;
    getcpu()?;
    Ok(())
}

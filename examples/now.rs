//! Prints what every clock says now, and who answered.
//!
//! `cargo run --release --example now`

use vdso_time::{
    Boottime, Clock, ClockId, Errno, Instant, MonotonicCoarse, MonotonicRaw, RealtimeCoarse, SystemTime, Tai,
    WallClock, clock_getres, clock_gettime, getcpu, gettimeofday, routes, try_time,
};

fn main() -> Result<(), Errno> {
    println!("time()           {} s since the Epoch", try_time()?);
    println!("gettimeofday()   {:?}", gettimeofday()?);
    println!("Realtime         {:?}", SystemTime::try_now()?);
    println!("RealtimeCoarse   {:?}", RealtimeCoarse::try_now()?);
    println!("Tai              {:?}", Tai::try_now()?);
    println!("Monotonic        {:?}", Instant::try_now()?);
    println!("MonotonicRaw     {:?}", MonotonicRaw::try_now()?);
    println!("MonotonicCoarse  {:?}", MonotonicCoarse::try_now()?);
    println!("Boottime         {:?}", Boottime::try_now()?);
    println!("CPU time         {:?}", clock_gettime(ClockId::THREAD_CPUTIME)?);
    println!("resolution       {:?}", clock_getres(ClockId::MONOTONIC)?);
    println!("getcpu()         {:?}\n\n{}", getcpu()?, routes());
    Ok(())
}

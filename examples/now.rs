//! Prints what every clock says now, and who answered.
//!
//! `cargo run --release --example now`

use vdso_time::{
    Boottime, Clock, ClockId, Instant, MonotonicCoarse, MonotonicRaw, RealtimeCoarse, SystemTime, Tai,
    WallClock,
};

fn main() -> Result<(), vdso_time::Errno> {
    println!("time()                   {} s since the Epoch", vdso_time::time());
    let now = vdso_time::gettimeofday()?;
    println!("gettimeofday()           {}.{:06} s since the Epoch", now.tv_sec, now.tv_usec);

    println!("Realtime                 {:?}", SystemTime::now());
    println!("RealtimeCoarse           {:?}", RealtimeCoarse::now());
    println!("Tai                      {:?}", Tai::now());
    println!("Monotonic                {:?}", Instant::now());
    println!("MonotonicRaw             {:?}", MonotonicRaw::now());
    println!("MonotonicCoarse          {:?}", MonotonicCoarse::now());
    println!("Boottime                 {:?}", Boottime::now());
    for clock in [ClockId::PROCESS_CPUTIME, ClockId::THREAD_CPUTIME] {
        let used = vdso_time::clock_gettime(clock)?;
        println!("{clock:24?} {}.{:09} s", used.tv_sec, used.tv_nsec);
    }
    for clock in [ClockId::MONOTONIC, ClockId::MONOTONIC_COARSE] {
        let resolution = vdso_time::clock_getres(clock)?;
        println!("{clock:24?} has a resolution of {} ns", resolution.tv_nsec);
    }

    let here = vdso_time::getcpu()?;
    println!("getcpu()                 CPU {}, node {}\n", here.cpu, here.node);
    println!("{}", vdso_time::routes());
    Ok(())
}

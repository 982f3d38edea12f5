//! Prints what every clock says now, and who answered.
//!
//! `cargo run --release --example now`

use std::error::Error;
use std::io::{self, Write as _};

use vdso_time::{
    Boottime, Clock, ClockId, Instant, MonotonicCoarse, MonotonicRaw, RealtimeCoarse, SystemTime, Tai,
    WallClock, clock_getres, clock_gettime, getcpu, gettimeofday, routes, try_time,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "time()           {} s since the Epoch", try_time()?)?;
    writeln!(out, "gettimeofday()   {:?}", gettimeofday()?)?;
    writeln!(out, "Realtime         {:?}", SystemTime::try_now()?)?;
    writeln!(out, "RealtimeCoarse   {:?}", RealtimeCoarse::try_now()?)?;
    writeln!(out, "Tai              {:?}", Tai::try_now()?)?;
    writeln!(out, "Monotonic        {:?}", Instant::try_now()?)?;
    writeln!(out, "MonotonicRaw     {:?}", MonotonicRaw::try_now()?)?;
    writeln!(out, "MonotonicCoarse  {:?}", MonotonicCoarse::try_now()?)?;
    writeln!(out, "Boottime         {:?}", Boottime::try_now()?)?;
    writeln!(out, "CPU time         {:?}", clock_gettime(ClockId::THREAD_CPUTIME)?)?;
    writeln!(out, "resolution       {:?}", clock_getres(ClockId::MONOTONIC)?)?;
    writeln!(out, "getcpu()         {:?}\n\n{}", getcpu()?, routes())?;
    Ok(())
}

//! Prints what every clock says now, and who answered.
//!
//! `cargo run --release --example now`

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use vdso_time::{
    Boottime, Clock, ClockId, Errno, Instant, MonotonicCoarse, MonotonicRaw, RealtimeCoarse, SystemTime, Tai,
    WallClock,
};

fn main() -> ExitCode {
    let printed = match clocks() {
        Ok(text) => io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string()),
        Err(error) => Err(format!("a clock cannot be read: {error}")),
    };
    let Err(error) = printed else { return ExitCode::SUCCESS };
    eprintln!("now: {error}");
    ExitCode::FAILURE
}

/// A line for each clock, and one for each function.
fn clocks() -> Result<String, Errno> {
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:24} {what}"); // a String takes every write
    };
    line("time()", format!("{} s since the Epoch", vdso_time::try_time()?));
    let now = vdso_time::gettimeofday()?;
    line("gettimeofday()", format!("{}.{:06} s since the Epoch", now.tv_sec, now.tv_usec));

    line("Realtime", format!("{:?}", SystemTime::try_now()?));
    line("RealtimeCoarse", format!("{:?}", RealtimeCoarse::try_now()?));
    line("Tai", format!("{:?}", Tai::try_now()?));
    line("Monotonic", format!("{:?}", Instant::try_now()?));
    line("MonotonicRaw", format!("{:?}", MonotonicRaw::try_now()?));
    line("MonotonicCoarse", format!("{:?}", MonotonicCoarse::try_now()?));
    line("Boottime", format!("{:?}", Boottime::try_now()?));
    for clock in [ClockId::PROCESS_CPUTIME, ClockId::THREAD_CPUTIME] {
        let used = vdso_time::clock_gettime(clock)?;
        line(&format!("{clock:?}"), format!("{}.{:09} s", used.tv_sec, used.tv_nsec));
    }
    for clock in [ClockId::MONOTONIC, ClockId::MONOTONIC_COARSE] {
        let resolution = vdso_time::clock_getres(clock)?;
        line(&format!("{clock:?}"), format!("has a resolution of {} ns", resolution.tv_nsec));
    }

    let here = vdso_time::getcpu()?;
    line("getcpu()", format!("CPU {}, node {}", here.cpu, here.node));
    Ok(format!("{text}\n{}\n", vdso_time::routes()))
}

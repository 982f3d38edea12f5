//! Changes to the machine's clock. They need root.

use std::fs;
use std::io;
use std::mem::zeroed;

use rustix::time::{ClockId, clock_gettime, clock_settime};

/// Changes the clock in a turn, or back after the turns before.
pub type Change = fn(turn: usize, back: bool) -> Result<(), String>;

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// The kernel's usual microseconds of a timer tick, at 100 ticks a second (adjtimex(2)).
const TICK: i64 = 10_000;

/// Changes the kernel's rate from one extreme to the other: the tick by 1/1000, the frequency by
/// ppm.
pub fn slew(turn: usize, back: bool) -> Result<(), String> {
    let (tick, ppm) = if back { (0, 0) } else { [(100, 500), (-100, -500), (0, 500), (0, -500)][turn % 4] };
    // SAFETY: every field is a number.
    let mut change: libc::timex = unsafe { zeroed() };
    change.modes = libc::ADJ_TICK | libc::ADJ_FREQUENCY;
    change.tick = (TICK + tick * TICK / 1000) as _;
    change.freq = (ppm << 16).into();
    // SAFETY: the call reads and writes one `timex`.
    let status = unsafe { libc::adjtimex(&raw mut change) };
    if status < 0 { Err(format!("adjtimex: {}", io::Error::last_os_error())) } else { Ok(()) }
}

/// Sets `CLOCK_REALTIME` half a second forward and back. After an even number of turns it is right.
pub fn step(turn: usize, back: bool) -> Result<(), String> {
    if back && turn.is_multiple_of(2) {
        return Ok(());
    }
    let mut now = clock_gettime(ClockId::Realtime);
    now.tv_nsec += if turn.is_multiple_of(2) { 500_000_000 } else { -500_000_000 };
    now.tv_sec += now.tv_nsec.div_euclid(1_000_000_000);
    now.tv_nsec = now.tv_nsec.rem_euclid(1_000_000_000);
    clock_settime(ClockId::Realtime, now).map_err(|error| format!("clock_settime: {error}"))
}

/// Selects the kernel's clock sources in turns. The first one is the best.
pub fn switch(turn: usize, back: bool) -> Result<(), String> {
    let names = fs::read_to_string(format!("{FOLDER}/available_clocksource"));
    let names = names.map_err(|error| error.to_string())?;
    let names: Vec<&str> = names.split_whitespace().collect();
    let name = names[if back { 0 } else { (turn + 1) % names.len() }];
    fs::write(format!("{FOLDER}/current_clocksource"), name).map_err(|error| format!("{name}: {error}"))
}

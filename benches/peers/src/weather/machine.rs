//! Changes to the machine's clock. They need root.

use std::fs;
use std::io;
use std::mem::zeroed;

use rustix::time::{ClockId, clock_gettime, clock_settime};

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

/// The kernel's usual microseconds of a timer tick, at 100 ticks a second (adjtimex(2)).
const TICK: i64 = 10_000;

/// Sets the kernel's rate: the tick by 1/1000, and the frequency by ppm.
fn adjust(tick: i64, ppm: i64) -> Result<(), String> {
    // SAFETY: every field is a number.
    let mut change: libc::timex = unsafe { zeroed() };
    change.modes = libc::ADJ_TICK | libc::ADJ_FREQUENCY;
    change.tick = (TICK + tick * TICK / 1000) as _;
    change.freq = (ppm << 16) as _;
    // SAFETY: the call reads and writes one `timex`.
    let status = unsafe { libc::adjtimex(&raw mut change) };
    if status < 0 { Err(format!("adjtimex: {}", io::Error::last_os_error())) } else { Ok(()) }
}

/// From one extreme rate to the other.
pub fn slew(turn: usize) -> Result<(), String> {
    match turn % 4 {
        0 => adjust(100, 500),
        1 => adjust(-100, -500),
        2 => adjust(0, 500),
        _ => adjust(0, -500),
    }
}

/// The usual rate.
pub fn slew_no_more() -> Result<(), String> {
    adjust(0, 0)
}

/// Sets `CLOCK_REALTIME` half a second forward, or back.
pub fn step(turn: usize) -> Result<(), String> {
    let mut now = clock_gettime(ClockId::Realtime);
    now.tv_nsec += if turn.is_multiple_of(2) { 500_000_000 } else { -500_000_000 };
    now.tv_sec += now.tv_nsec.div_euclid(1_000_000_000);
    now.tv_nsec = now.tv_nsec.rem_euclid(1_000_000_000);
    clock_settime(ClockId::Realtime, now).map_err(|error| format!("clock_settime: {error}"))
}

/// The kernel's clock sources, the current one first.
pub fn clock_sources() -> Result<Vec<String>, String> {
    let read = |file| fs::read_to_string(format!("{FOLDER}/{file}")).map_err(|error| error.to_string());
    let current = read("current_clocksource")?.trim().to_owned();
    let mut names: Vec<String> =
        read("available_clocksource")?.split_whitespace().map(String::from).collect();
    names.retain(|name| *name != current);
    names.insert(0, current);
    Ok(names)
}

/// Selects a clock source.
pub fn switch(name: &str) -> Result<(), String> {
    fs::write(format!("{FOLDER}/current_clocksource"), name).map_err(|error| format!("{name}: {error}"))
}

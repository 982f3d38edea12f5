//! The table of guarantees.md: how far a read is off after an event, and for how long. Each number
//! is the largest of some hundred simulated histories.

use super::witness::{CALIBRATION, SEGMENT, Witness};
use super::world::{MICRO, MILLI, Machine, NANO, World};

const PAGE: &str = include_str!("../../../crates/vdso-time-counter/src/guarantees.md");

/// A row of the table.
struct Row {
    event: &'static str,
    /// The behaviour of `CLOCK_MONOTONIC`.
    kernel: &'static str,
    /// Called before each read, with the number of the read after the event.
    change: fn(&World, u32),
    /// Whether the event lasts as long as the reads. Only a difference of counters does.
    is_lasting: bool,
}

const fn row(event: &'static str, kernel: &'static str, change: fn(&World, u32)) -> Row {
    Row {
        event,
        kernel,
        change,
        is_lasting: false,
    }
}

const fn lasting(event: &'static str, kernel: &'static str, change: fn(&World, u32)) -> Row {
    Row {
        is_lasting: true,
        ..row(event, kernel, change)
    }
}

/// Changes something once, before the first read.
macro_rules! once {
    ($world:ident => $change:expr) => {
        |$world, read| {
            if read == 0 {
                $change
            }
        }
    };
}

/// Gives every other read to a CPU whose counter is ahead.
macro_rules! ahead {
    ($picos:expr, $($lead:ident),+) => {
        |world, read| {
            let lead = u128::from(read % 2) * $picos;
            $(world.$lead.set(lead);)+
        }
    };
}

const MILLISECOND: i64 = 1_000_000;

/// Moves the machine to a host whose counter has so many per cent of the rate.
fn scale(world: &World, percent: u64) {
    world.migrate(world.hertz() / 100 * percent);
}

const ROWS: &[Row] = &[
    row(
        "the clock is slewed by 500 ppm (NTP)",
        "slewed",
        once!(world => world.set_slew(500_000)),
    ),
    row(
        "the clock is slewed by 8.3 % (chrony)",
        "slewed",
        once!(world => world.set_slew(83_333_000)),
    ),
    row(
        "the clock is slewed by 10 % (adjtimex)",
        "slewed",
        once!(world => world.set_slew(100_000_000)),
    ),
    row(
        "the clock is slewed by -10 %",
        "slewed",
        once!(world => world.set_slew(-100_000_000)),
    ),
    row(
        "the clock steps by 1 ms",
        "steps",
        once!(world => world.step_all(MILLISECOND)),
    ),
    row(
        "the clock steps by 42 ms",
        "steps",
        once!(world => world.step_all(42 * MILLISECOND)),
    ),
    row(
        "the clock steps by 60 s",
        "steps",
        once!(world => world.step_all(60_000 * MILLISECOND)),
    ),
    row(
        "the clock steps by -1 ms",
        "steps",
        once!(world => world.step_all(-MILLISECOND)),
    ),
    row(
        "the clock steps by -42 ms",
        "steps",
        once!(world => world.step_all(-42 * MILLISECOND)),
    ),
    row(
        "the clock steps by -60 s (setns)",
        "steps",
        once!(world => world.step_all(-60_000 * MILLISECOND)),
    ),
    lasting(
        "CPUs' counters differ by 100 ns",
        "equally wrong",
        ahead!(100 * NANO, counter_lead, clock_lead),
    ),
    lasting(
        "CPUs' counters differ by 10 us",
        "equally wrong",
        ahead!(10 * MICRO, counter_lead, clock_lead),
    ),
    lasting(
        "CPUs' counters differ by 1 ms",
        "equally wrong",
        ahead!(MILLI, counter_lead, clock_lead),
    ),
    row(
        "CPUs' counters differ by 1 ms, the kernel does not use them",
        "right, through system calls",
        |world, read| {
            world.counter_lead.set(u128::from(read % 2) * MILLI);
            world.is_paravirtual.set(true);
            world.syscall.set(100 * NANO);
        },
    ),
    row(
        "the counter is ahead by 1 ms",
        "right",
        once!(world => world.step_counter(MILLISECOND)),
    ),
    row(
        "the counter is ahead by 10 ms",
        "right",
        once!(world => world.step_counter(10 * MILLISECOND)),
    ),
    row(
        "the counter is ahead by 1 s",
        "right",
        once!(world => world.step_counter(1_000 * MILLISECOND)),
    ),
    row(
        "the counter is set back by 1 ms",
        "right",
        once!(world => world.step_counter(-MILLISECOND)),
    ),
    row(
        "the counter is set back by 10 ms",
        "right",
        once!(world => world.step_counter(-10 * MILLISECOND)),
    ),
    row(
        "the counter is set back by 20 ms",
        "right",
        once!(world => world.step_counter(-20 * MILLISECOND)),
    ),
    row(
        "the counter is set back by 1 s",
        "right",
        once!(world => world.step_counter(-1_000 * MILLISECOND)),
    ),
    row(
        "the counter's rate drops to a quarter",
        "right",
        once!(world => scale(world, 25)),
    ),
    row(
        "the counter's rate is halved",
        "right",
        once!(world => scale(world, 50)),
    ),
    row(
        "the counter's rate is 10 % lower",
        "right",
        once!(world => scale(world, 90)),
    ),
    row(
        "the counter's rate is 10 % higher",
        "right",
        once!(world => scale(world, 110)),
    ),
    row(
        "the counter's rate is doubled",
        "right",
        once!(world => scale(world, 200)),
    ),
    row(
        "the counter's rate is quadrupled",
        "right",
        once!(world => scale(world, 400)),
    ),
];

/// The findings of the reads after an event, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    error: u64,
    back: u64,
    lasts: u64,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.error = self.error.max(other.error);
        self.back = self.back.max(other.back);
        self.lasts = self.lasts.max(other.lasts);
    }
}

/// Reads for 150 ms after the event, which comes so long after the calibration.
fn history(row: &Row, hertz: u64, wait: u128) -> Seen {
    /// A read with a larger error is wrong.
    const WRONG: u64 = 10_000;
    let witness = Witness::new(Machine {
        hertz,
        seed: wait as u64,
        ..Machine::default()
    });
    let world = &witness.world;
    witness.watch(4 * CALIBRATION + wait);
    let start = world.elapsed();
    let mut latest = witness.time();
    let mut seen = Seen::default();
    for read in 0..6_000 {
        (row.change)(world, read);
        let before = world.kernel();
        let nanos = witness.time();
        let after = world.kernel();
        let error = before
            .saturating_sub(nanos)
            .max(nanos.saturating_sub(after));
        if error > WRONG {
            seen.lasts = (world.elapsed() - start) as u64;
        }
        seen.error = seen.error.max(error);
        seen.back = seen.back.max(latest.saturating_sub(nanos));
        latest = nanos;
        // Two CPUs read one right after the other.
        if read % 2 == 0 {
            world.pass(50 * MICRO);
        }
    }
    seen
}

/// Runs a row on counters whose segments take nearly 16 ms, nearly 8 ms and something between.
fn measure(row: &Row) -> Seen {
    let mut seen = Seen::default();
    for hertz in [2_097_000_000, 2_098_000_000, 1_500_000_000] {
        for turn in 0..40 {
            seen.add(history(row, hertz, turn * (SEGMENT / 40)));
        }
    }
    seen
}

/// Formats a number of nanoseconds, rounded up to two digits. A microsecond is the reads' own.
fn duration(nanos: u64) -> String {
    let (unit, name) = match nanos {
        0..=50 => return "0".to_owned(),
        51..=1_000 => (10, "ns"),
        1_001..=990_000 => (1_000, "us"),
        990_001..=1_000_999_999 => (100_000, "ms"),
        _ => (100_000_000, "s"),
    };
    let rounded = nanos.saturating_sub(unit / 100).div_ceil(unit);
    match name {
        "ns" => format!("{} ns", rounded * 10),
        "us" => format!("{rounded} us"),
        _ => format!("{}.{} {name}", rounded / 10, rounded % 10),
    }
}

fn line(row: &Row, seen: Seen) -> String {
    let lasts = if row.is_lasting {
        "while they differ".to_owned()
    } else if seen.lasts == 0 {
        "0".to_owned()
    } else {
        format!("{} ms", seen.lasts.div_ceil(1_000_000))
    };
    let Row { event, kernel, .. } = row;
    let error = duration(seen.error);
    let back = duration(seen.back);
    format!("| {event} | {kernel} | {error} | {lasts} | {back} |")
}

#[test]
fn the_table_of_guarantees_is_what_the_simulation_shows() {
    let lines: Vec<_> = ROWS.iter().map(|row| line(row, measure(row))).collect();
    println!("{}", lines.join("\n"));
    let missing: Vec<_> = lines
        .iter()
        .filter(|line| !PAGE.lines().any(|other| other == line.as_str()))
        .collect();
    assert!(missing.is_empty(), "guarantees.md lacks {missing:#?}");
    let rows = PAGE
        .lines()
        .filter(|line| line.starts_with("| the c") || line.starts_with("| CPUs"));
    assert_eq!(rows.count(), ROWS.len(), "guarantees.md has other rows");
}

//! The torture table: the clocks on the CPU's counter that people use, in one simulated machine.
//!
//! ```sh
//! cargo run --release -p vdso-time-properties --example torture
//! ```
//!
//! A history is a sequence of events on a machine. Each history comes from a public report, often
//! about a database or a library in production, or from a rule of the kernel (see `histories.rs`).
//! Here every clock goes through every history: this project's engine itself, compiled over the
//! simulated machine, and models of the other clocks. The machines have fixed seeds. `-- --write`
//! renews the tables and the chart of `docs/BENCHMARKS.md`, and the table of the counter's README.

#![allow(
    clippy::cast_precision_loss,
    reason = "the clocks of others compute with floating-point numbers"
)]

mod clocks;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate exports it and uses the rest"
)]
#[path = "../../../crates/vdso-time-counter/src/engine/mod.rs"]
mod engine;
mod histories;
mod tables;
mod thread;
mod watch;
#[allow(dead_code, reason = "the properties of the counter use the rest")]
#[path = "../counter/world.rs"]
mod world;

use std::{env, io};

use clocks::{LIBRARIES, OURS, PROGRAMS};
use tables::Results;

fn main() -> io::Result<()> {
    let write = env::args().any(|argument| argument == "--write");
    let results = Results::new();
    let libraries = [&OURS[..], &LIBRARIES].concat();
    let programs = [&OURS[..1], &PROGRAMS].concat();
    for table in [
        results.summary(),
        results.errors("torture-libraries", &libraries),
        results.errors("torture-programs", &programs),
        results.sayings([
            "CPUs 1 s apart, source hpet",
            "kernel leaves the counter, 1 % fast",
        ]),
    ] {
        table.show(write, &[])?;
    }
    Ok(())
}

/// A short form: the spans between the events are shorter.
#[cfg(test)]
mod tests {
    use super::clocks::{Contender, OURS, PROGRAMS};
    use super::engine::status::Unavailable;
    use super::histories;
    use super::watch::{Record, play};
    use super::world::{MILLI, SECOND};

    /// The longest segment, in nanoseconds.
    const SEGMENT: u64 = 17_000_000;

    /// The guarantees of this project's clock, by the beginning of a history's name: the largest
    /// error in nanoseconds, and the marks of the table that are allowed.
    const GUARANTEES: &[(&str, u64, &str)] = &[
        // Three ticks and 30 ns.
        ("quiet, 1 MHz", 3_030, ""),
        ("quiet, 19.2 MHz", 187, ""),
        ("quiet, 24 MHz", 155, ""),
        ("quiet, 62.5 MHz", 78, ""),
        ("quiet", 35, ""),
        // The change of the rate, until the segment ends.
        ("NTP slews by 100 ppm", SEGMENT / 10_000, ""),
        ("NTP slews by 500 ppm", SEGMENT / 2_000, ""),
        ("chrony slews by 8.3 %", SEGMENT / 12, ""),
        ("started in a slew of 8.3 %", SEGMENT / 12, ""),
        ("kernel leaves the counter", SEGMENT / 100, ""),
        // The step, until the segment ends.
        ("suspended", SEGMENT, "="),
        // The difference, as `clock_gettime`, and once more where it looks like a slew.
        ("CPUs 100 ns", 150, "↓"),
        ("CPUs 10 us", 10_100, "↓"),
        ("CPUs 1 ms", 3_000_000, "↓="),
        ("CPUs 1 s apart, source hpet", 35, ""),
        // Without trust_hypervisor() the vDSO answers.
        ("kvm-clock", 35, ""),
        ("the same, no stable bit", 35, ""),
        ("moved", 35, ""),
        ("restored", 35, ""),
        ("CLOCK_REALTIME", 35, ""),
        ("preempted", 35, ""),
        ("started under load", 20_000, ""),
        ("100 days", 35, ""),
    ];

    /// The differences after `trust_hypervisor()`.
    const TRUSTING: &[(&str, u64, &str)] = &[
        ("kvm-clock, CPUs 1 ms", 3_000_000, "↓="),
        ("kvm-clock, counter 1 s", SEGMENT, "="),
        ("moved, counter 5 ms ahead", 5_000_100, "="),
        ("moved, counter 5 ms behind", 5_000_100, "↓="),
        ("moved, rate", SEGMENT / 9, ""),
    ];

    fn guarantee(trusts_hypervisor: bool, history: &str) -> (u64, &'static str) {
        let trusting = if trusts_hypervisor { TRUSTING } else { &[] };
        let mut rows = trusting.iter().chain(GUARANTEES);
        let row = rows.find(|(name, ..)| history.starts_with(name));
        let &(_, error, marks) = row.expect(history);
        (error, marks)
    }

    #[test]
    fn this_projects_clock_keeps_its_guarantees_in_every_history() {
        for history in histories::all() {
            for (number, contender) in OURS.into_iter().enumerate() {
                let record = play(&history, contender, 300 * MILLI);
                let (error, marks) = guarantee(number == 2, &history.name);
                let may_go_back = marks.contains('↓');
                let may_stand_still = marks.contains('=');
                let keeps = record.error <= error
                    && (record.back == 0 || may_go_back)
                    && (record.still == 0 || may_stand_still);
                assert!(keeps, "{}, {}: {record:?}", contender.name, history.name);
            }
        }
    }

    /// Plays a history whose spans last two seconds at most.
    fn report(history: &str, contender: Contender) -> Record {
        let histories = histories::all();
        let history = histories.iter().find(|other| other.name == history);
        play(history.expect("a history"), contender, 2 * SECOND)
    }

    /// Where the CPUs' counters differ, a clock that is right on one CPU is wrong on the other.
    #[test]
    fn this_projects_clock_is_right_again_within_two_segments() {
        for history in histories::all() {
            if history.name.contains("CPUs") {
                continue;
            }
            for contender in OURS {
                let record = play(&history, contender, 300 * MILLI);
                let is_right_again = record.wrong_for <= 2 * SEGMENT && !record.stays_wrong();
                assert!(
                    is_right_again,
                    "{}, {}: {record:?}",
                    contender.name, history.name
                );
            }
        }
    }

    #[test]
    fn this_projects_clock_says_why_the_vdso_answers() {
        for (history, reason) in [
            ("CPUs 1 s apart, source hpet", Unavailable::ClockSource),
            (
                "kernel leaves the counter, 1 % fast",
                Unavailable::ClockSource,
            ),
            ("moved, rate 10 % lower", Unavailable::NotInvariant),
        ] {
            let [ordered, ..] = OURS;
            assert_eq!(report(history, ordered).says, reason.to_string());
        }
    }

    /// valkey-io/valkey #4345: `uptime_in_seconds:0` and `X86 TSC @ inf ticks/us` on a host whose
    /// kernel had left the TSC. #4691: the server spins, because its clock is ahead.
    #[test]
    fn the_models_of_valkey_show_what_its_users_reported() {
        let [old, new, ..] = PROGRAMS;
        let unsynchronised = "CPUs 1 s apart, source hpet";
        let frozen = report(unsynchronised, old);
        assert_eq!(frozen.says, "X86 TSC @ inf ticks/us");
        assert!(frozen.still > 1_900_000_000, "{frozen:?}");
        assert!(!report(unsynchronised, new).is_wrong());
        let moved = "kvm-clock, counter 1 s ahead";
        assert!(report(moved, old).last_error > 900_000_000);
        assert!(!report(moved, new).is_wrong());
    }
}

//! The accuracy report says which reads its numbers are of, and its plot is where and what it says.

#![cfg(all(feature = "counter", any(target_os = "linux", target_os = "android")))]

#[path = "../examples/accuracy/main.rs"]
#[allow(dead_code, reason = "it is a program, of which parts are tested here")]
mod accuracy;

use std::path::Path;
use std::time::Duration;

use accuracy::deviation::Deviation;
use accuracy::published::Differences;
use accuracy::{default_plot, plot};

#[test]
fn the_plot_goes_to_the_target_folder_that_the_program_lies_in() {
    for (program, plot) in [
        ("/build/release/examples/accuracy", "/build/accuracy.svg"),
        ("/build/debug/examples/accuracy-0123456789abcdef", "/build/accuracy.svg"),
        ("/home/somebody/.cargo/bin/accuracy", "accuracy.svg"),
        ("accuracy", "accuracy.svg"),
        ("examples/accuracy", "accuracy.svg"),
        ("", "accuracy.svg"),
    ] {
        assert_eq!(default_plot(Path::new(program)), Path::new(plot), "{program}");
    }
}

#[test]
fn the_ticks_of_the_plot_are_the_start_the_middle_and_the_end() {
    for (length, ticks) in [
        (30.0, ["0 s", "15 s", "30 s"]),
        (5.0, ["0 s", "2.5 s", "5 s"]),
        (1.0, ["0 s", "0.5 s", "1 s"]),
        (0.1, ["0 s", "0.05 s", "0.1 s"]),
    ] {
        let svg = plot::svg(&[], Duration::from_secs_f64(length));
        let labels = svg.lines().filter_map(|line| line.rsplit_once(" s</text>")?.0.rsplit_once('>'));
        let labels: Vec<_> = labels.map(|(_, number)| format!("{number} s")).collect();
        assert_eq!(labels, ticks);
    }
}

#[test]
fn each_maximum_says_whether_interrupted_reads_count() {
    let deviation = Deviation::measure(Duration::from_millis(20)).to_string();
    let (what, table) = deviation.split_once('\n').unwrap();
    assert!(what.contains("without") && what.ends_with("reads that were interrupted"), "{deviation}");
    assert!(table.contains("max"), "{deviation}");

    let seen = Differences { pairs: 4, sum: 72_900, max: 72_600, micro: 1, ten: 1 }.to_string();
    let (what, numbers) = seen.split_once('\n').unwrap();
    assert!(what.contains("a pair that was interrupted counts"), "{seen}");
    assert_eq!(numbers, "max 72.600 us, average 18.225 us; off by more than 1 us: 1, by more than 10 us: 1");
}

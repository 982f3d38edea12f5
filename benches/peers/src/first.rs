//! Figures of a first call, over several layouts of the program.
//!
//! A first call executes each instruction once, so its cost is the cost of fetching the
//! instructions, which depends on where the linker has put them: one layout differed from another
//! by 8 % of rustix's first call. So the program `first-call` is linked several times, each time
//! with more padding before its code. A figure is the median over these layouts, and the figure of
//! a layout is the median over processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::command::run;
use vdso_time_benches::harness::median;
use vdso_time_benches::harness::samples::Samples;
use vdso_time_benches::pages::Table;
use vdso_time_peers::first_call::CONTENDERS;
pub use vdso_time_peers::first_call::{ALL, CHECKED, FORKED, NEW, ROWS, WARM};

use crate::foreign;

/// The number of layouts.
const LAYOUTS: usize = 8;

/// The padding that each layout has in addition to the layout before. It moves functions within
/// their cache line and their page.
const PADDING: usize = 512 + 16;

/// The distances between two pairs that are visited one after the other. None has a common divisor
/// with 27, the number of pairs.
const STRIDES: [usize; 9] = [1, 2, 4, 5, 7, 8, 10, 11, 13];
const _: () = assert!(
    ROWS.len() * CONTENDERS.len() == 27,
    "the strides are for 27 pairs"
);

/// The manifest of the program.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// Links the program once for each layout.
fn build() -> Result<Vec<PathBuf>, String> {
    let directory = foreign::directory()?;
    let target = directory.join("layouts");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut programs = Vec::new();
    for layout in 0..LAYOUTS {
        let padding = layout * PADDING;
        let mut command = Command::new(&cargo);
        command.arg("build");
        command.arg("--quiet");
        command.arg("--release");
        command.arg("--locked");
        command.arg("--bin=first-call");
        command.arg("--manifest-path");
        command.arg(MANIFEST);
        command.arg("--target-dir");
        command.arg(&target);
        command.env("VDSO_TIME_PADDING", padding.to_string());
        run(&mut command)?;
        let linked = target.join("release/first-call");
        let program = directory.join(format!("first-call-{layout}"));
        if let Err(error) = fs::copy(linked, &program) {
            return Err(format!("{}: {error}", program.display()));
        }
        programs.push(program);
    }
    Ok(programs)
}

/// Starts a process of each layout for each row and contender `times` times, in turns.
pub fn add(samples: &mut Samples, times: usize) -> Result<(), String> {
    for program in build()? {
        let mut nanos = BTreeMap::<[&str; 2], Vec<f64>>::new();
        for turn in 0..times {
            for [row, name] in shuffled(turn) {
                let mut command = Command::new(&program);
                command.arg(row);
                command.arg(name);
                let text = run(&mut command)?;
                let of_contender = nanos.entry([row, name]).or_default();
                for line in text.lines() {
                    let number = last_field(line)?;
                    of_contender.push(number);
                }
            }
        }
        let spacing = Spacing::Isolated.name();
        for ([row, name], nanos) in nanos {
            let nanos = median(&nanos);
            samples.push([row, spacing, name], nanos);
        }
    }
    Ok(())
}

/// Returns each row with each contender, in an order that differs from turn to turn.
///
/// A process leaves caches behind that help or slow down the next one. In a fixed order each
/// contender had the same process before it, and its first call took up to 1.5 times as long.
fn shuffled(turn: usize) -> Vec<[&'static str; 2]> {
    let mut pairs = Vec::new();
    for row in ROWS {
        for contender in CONTENDERS {
            pairs.push([row, contender.name]);
        }
    }
    let count = pairs.len();
    // A stride that has no common divisor with the count visits each pair once.
    let stride = STRIDES[turn % STRIDES.len()];
    let order = (0..count).map(|step| pairs[(turn + step * stride) % count]);
    order.collect()
}

/// Returns the number at the end of a line that the program printed.
fn last_field(line: &str) -> Result<f64, String> {
    let mut fields = line.rsplit('\t');
    let number = fields.next().unwrap_or(line);
    match number.parse() {
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{line}: {error}")),
    }
}

/// Returns the microseconds of each contender.
pub fn table(samples: &Samples) -> Table {
    let names = CONTENDERS.map(|contender| contender.name);
    Table::of("peers-first", "us", names, &ROWS, |name, row| {
        let nanos = samples.nanos(row, Spacing::Isolated, name)?;
        let micros = nanos / 1e3;
        Some(format!("{micros:.1}"))
    })
}

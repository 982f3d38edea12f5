//! Figures of a first call, over several layouts of the program.
//!
//! A first call executes each instruction once, so its cost is the cost of fetching the
//! instructions, which depends on where the linker has put them: one layout differed from another
//! by 8 % of rustix's first call. So the program `first-call` is linked several times, each time
//! with more padding before its code. A figure is the median over these layouts, and the figure of
//! a layout is the median over processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::command::run;
use vdso_time_benches::harness::median;
use vdso_time_benches::harness::samples::Samples;
use vdso_time_benches::pages::Table;
use vdso_time_peers::first_call::CONTENDERS;
pub use vdso_time_peers::first_call::{ALL, CHECKED, ROWS};

use crate::foreign;

/// The number of layouts.
const LAYOUTS: usize = 8;

/// The padding that each layout has in addition to the layout before. It moves functions within
/// their cache line and their page.
const PADDING: usize = 512 + 16;

/// Links the program once for each layout.
fn build() -> Result<Vec<PathBuf>, String> {
    let directory = foreign::directory()?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut programs = Vec::new();
    for layout in 0..LAYOUTS {
        let target = directory.join("layouts");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut command = Command::new(&cargo);
        command.args(["build", "--quiet", "--release", "--locked"]);
        command.args(["--bin", "first-call", "--manifest-path"]);
        command.arg(manifest).arg("--target-dir").arg(&target);
        command.env("VDSO_TIME_PADDING", (layout * PADDING).to_string());
        run(&mut command)?;
        let program = directory.join(format!("first-call-{layout}"));
        fs::copy(target.join("release/first-call"), &program)
            .map_err(|error| format!("{}: {error}", program.display()))?;
        programs.push(program);
    }
    Ok(programs)
}

/// Starts a process of each layout for each row and contender `times` times, in turns.
pub fn add(samples: &mut Samples, times: usize) -> Result<(), String> {
    for program in build()? {
        let mut nanos = BTreeMap::<[&str; 2], Vec<f64>>::new();
        for _ in 0..times {
            for row in ROWS {
                for (name, _) in CONTENDERS {
                    let text = run(Command::new(&program).args([row, name]))?;
                    let of_contender = nanos.entry([row, name]).or_default();
                    for line in text.lines() {
                        let number = line.rsplit('\t').next().unwrap_or(line);
                        let number = number.parse().map_err(|error| format!("{line}: {error}"))?;
                        of_contender.push(number);
                    }
                }
            }
        }
        for ([row, name], nanos) in nanos {
            samples.push([row, Spacing::Isolated.name(), name], median(&nanos));
        }
    }
    Ok(())
}

/// Returns the microseconds of each contender.
pub fn table(samples: &Samples) -> Table {
    let micros = |name: &str, row| {
        samples
            .nanos(row, Spacing::Isolated, name)
            .map(|nanos| nanos / 1e3)
    };
    let names = CONTENDERS.map(|(name, _)| name);
    Table::of("peers-first", "us", names, &ROWS, |name, row| {
        Some(format!("{:.1}", micros(name, row)?))
    })
}

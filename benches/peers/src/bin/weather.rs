//! How far the counter clocks are from the kernel's clock in good and bad weather.

use std::env;
use std::process::{Command, ExitCode};

use lexopt::prelude::*;
use vdso_time_benches::harness::command::Arguments;
use vdso_time_benches::harness::document::{Report, Table};
use vdso_time_peers::weather::{self, Record, Weather};

const USAGE: &str = "\
Usage: weather [--weather LIST] [--seconds N] [--write]

  --weather LIST   some of calm,threads,stop,throttle,sparse,slew,step,switch; else all
  --seconds N      how long each lasts; else 10
  --write          renew docs/BENCHMARKS.md

slew, step and switch change the machine's clock. So they run in a kernel that `cargo xtask` boots,
or here with --i-am-root-on-a-test-machine.
";

/// The machine in which the clock is changed.
const GUEST: &str = "x86_64@7";

/// The option that allows it here.
const TEST_MACHINE: &str = "i-am-root-on-a-test-machine";

struct Options {
    weathers: Vec<Weather>,
    seconds: u64,
    write: bool,
    is_test_machine: bool,
    is_child: bool,
}

fn options() -> Result<Options, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut options = Options {
        weathers: Weather::ALL.map(|(_, weather)| weather).to_vec(),
        seconds: 10,
        write: false,
        is_test_machine: false,
        is_child: false,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("weather") => {
                options.weathers = parser
                    .value()?
                    .parse_with(|list| list.split(',').map(str::parse).collect::<Result<_, _>>())?;
            }
            Long("seconds") => options.seconds = parser.value()?.parse()?,
            Long("write") => options.write = true,
            Long("child") => options.is_child = true,
            Long(TEST_MACHINE) => options.is_test_machine = true,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

/// This program, here or in the guest.
fn program(is_in_guest: bool) -> Result<Command, String> {
    if !is_in_guest {
        return Ok(Command::new(env::current_exe().map_err(|error| error.to_string())?));
    }
    let mut command = Command::new("cargo");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    command.args(["xtask", "on", GUEST, "run", "--quiet", "--release", "--manifest-path", manifest]);
    command.args(["--bin", "weather", "--"]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    Ok(command)
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let Options { seconds, is_test_machine, .. } = *options;
    let mut table = Table::new("weather", &Record::HEAD);
    for &weather in &options.weathers {
        let is_allowed = is_test_machine || !weather.changes_the_machine();
        if options.is_child && is_allowed {
            weather::print(weather, seconds)?;
            continue;
        }
        eprintln!("measuring: {}", weather.name());
        let mut command = program(!is_allowed)?;
        command.args(["--child", "--seconds", &seconds.to_string(), "--weather", weather.name()]);
        if weather.changes_the_machine() {
            command.arg(format!("--{TEST_MACHINE}"));
        }
        let place = if is_allowed { "" } else { ", in a guest" };
        let rows = weather::rows(&mut command, weather)?;
        table
            .rows
            .extend(rows.into_iter().map(|row| [vec![format!("{}{place}", weather.name())], row].concat()));
    }
    if options.is_child {
        return Ok(ExitCode::SUCCESS);
    }
    Report { tables: vec![table], ..Report::default() }.finish(&Arguments::full(options.write))
}

fn main() -> ExitCode {
    let result = options().map_err(|error| format!("{error}\n\n{USAGE}")).and_then(|options| run(&options));
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}

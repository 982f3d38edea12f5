//! The counter clocks in good and bad weather: how far each is from the kernel's clock.

mod clocks;
mod machine;
mod record;

use std::env;
use std::iter::zip;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use vdso_time::ClockId;
use vdso_time_benches::calls;
use vdso_time_benches::harness::command::{CHILD, child};
use vdso_time_benches::harness::document::Table;

use record::Record;

/// What happens while the clocks are read.
pub struct Weather {
    pub name: &'static str,
    /// The kernel's clock that they follow.
    clock: ClockId,
    threads_per_cpu: usize,
    /// Between two reads.
    pause: Duration,
    /// For how long the process runs and is stopped, in turns.
    stops: Option<[Duration; 2]>,
    /// A change of the machine's clock, in turns so long. The last turn changes it back.
    change: Option<(Duration, machine::Change)>,
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// One thread reads, and nothing happens.
const CALM: Weather = Weather {
    name: "weather calm",
    clock: ClockId::MONOTONIC,
    threads_per_cpu: 0,
    pause: Duration::ZERO,
    stops: None,
    change: None,
};

const STEP: Option<(Duration, machine::Change)> = Some((millis(300), machine::step));

pub const WEATHERS: [Weather; 8] = [
    CALM,
    Weather { name: "weather threads", threads_per_cpu: 4, ..CALM },
    Weather { name: "weather stop", stops: Some([millis(700), millis(300)]), ..CALM },
    Weather { name: "weather throttle", stops: Some([millis(5), millis(95)]), ..CALM },
    Weather { name: "weather sparse", pause: millis(20), ..CALM },
    Weather { name: "weather slew", change: Some((millis(40), machine::slew)), ..CALM },
    Weather { name: "weather step", clock: ClockId::REALTIME, change: STEP, ..CALM },
    Weather { name: "weather switch", change: Some((millis(300), machine::switch)), ..CALM },
];

/// The machine in which the clock is changed, unless this is a test machine.
const GUEST: &str = "x86_64@7";

/// Reads each clock between two reads of the kernel's, in turns. Returns the cells of each.
///
/// # Errors
///
/// The machine's clock cannot be changed.
pub fn measure(weather: &Weather, length: Duration) -> Result<Vec<Vec<String>>, String> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    calls::settle();
    let end = AtomicBool::new(false);
    let read = || {
        let clocks = clocks::following(weather.clock);
        let mut records: Vec<Record> = clocks.iter().map(|clock| Record::new(clock, weather.pause)).collect();
        let start = Instant::now();
        while start.elapsed() < length {
            thread::sleep(weather.pause);
            zip(&mut records, &clocks).for_each(|(record, clock)| record.compare(clock));
        }
        records
    };
    let change = || {
        let Some((wait, change)) = weather.change else { return Ok(()) };
        for turn in 0.. {
            let is_last = end.load(Ordering::Relaxed);
            change(turn, is_last)?;
            if is_last {
                break;
            }
            thread::sleep(wait);
        }
        Ok(())
    };
    let records = thread::scope(|scope| {
        let changes = scope.spawn(change);
        let others: Vec<_> = (1..weather.threads_per_cpu * cpus).map(|_| scope.spawn(read)).collect();
        let mut records = read();
        end.store(true, Ordering::Relaxed);
        for other in others.into_iter().filter_map(|thread| thread.join().ok()) {
            zip(&mut records, &other).for_each(|(record, other)| record.add(other));
        }
        changes.join().map_err(|_| "a thread panicked".to_string()).flatten().map(|()| records)
    })?;
    Ok(zip(&records, clocks::following(weather.clock)).map(|(record, clock)| record.cells(&clock)).collect())
}

/// Measures in this process, and prints the cells. [`table`] reads them.
pub fn print(name: &str, seconds: &str) -> Result<(), String> {
    // Else a stopped process would stay.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    let weather = WEATHERS.iter().find(|weather| weather.name == name).ok_or("there is no such weather")?;
    let seconds = seconds.parse().map_err(|error| format!("{seconds}: {error}"))?;
    for row in measure(weather, Duration::from_secs(seconds))? {
        println!("{}", row.join("\t"));
    }
    Ok(())
}

/// Measures in these kinds of weather for so many seconds each.
///
/// # Errors
///
/// A process cannot be started, or fails.
pub fn table(weathers: &[&Weather], seconds: &str, is_test_machine: bool) -> Result<Table, String> {
    let mut table = Table::new("weather", &Record::HEAD);
    for weather in weathers {
        eprintln!("measuring: {}", weather.name);
        let is_here = is_test_machine || weather.change.is_none();
        let arguments = [weather.name, seconds];
        let mut command = if is_here { child(&arguments)? } else { in_guest(&arguments) };
        let name = weather.name.trim_start_matches("weather ");
        let name = if is_here { name.into() } else { format!("{name}, in a guest") };
        let rows = rows(command.stdout(Stdio::piped()), weather.stops)?;
        table.rows.extend(rows.into_iter().map(|row| [vec![name.clone()], row].concat()));
    }
    Ok(table)
}

/// This program in a kernel that QEMU emulates.
fn in_guest(arguments: &[&str]) -> Command {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["xtask", "on", GUEST, "run", "--quiet", "--release", "--manifest-path", manifest]);
    command.args(["--", CHILD]).args(arguments);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command
}

/// Runs a process that prints the cells, and stops it again and again.
fn rows(command: &mut Command, stops: Option<[Duration; 2]>) -> Result<Vec<Vec<String>>, String> {
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    if let Some(stops) = stops {
        stop_and_continue(&mut child, stops)?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    let cells = |line: &str| line.split('\t').map(String::from).collect();
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(cells).collect())
}

fn stop_and_continue(child: &mut Child, [run, stop]: [Duration; 2]) -> Result<(), String> {
    let error = |error: &dyn ToString| error.to_string();
    while child.try_wait().map_err(|it| error(&it))?.is_none() {
        for (wait, signal) in [(run, Signal::STOP), (stop, Signal::CONT)] {
            thread::sleep(wait);
            // It has not been waited for, so the number is still its own.
            kill_process(Pid::from_child(child), signal).map_err(|it| error(&it))?;
        }
    }
    Ok(())
}

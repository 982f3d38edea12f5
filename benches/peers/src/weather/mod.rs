//! The counter clocks in good and bad weather: how far each is from the kernel's clock.

mod clocks;
mod machine;
mod record;

use std::iter::zip;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use vdso_time_benches::calls;

use clocks::Clock;
pub use record::Record;

/// What happens while the clocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing.
    Calm,
    /// Four threads for each CPU read.
    Threads,
    /// The process is stopped for 300 ms of each second.
    Stop,
    /// The process runs for 5 ms of each 100 ms.
    Throttle,
    /// There are 20 ms between two reads.
    Sparse,
    /// The kernel's rate changes by up to 10.05 %, each 40 ms.
    Slew,
    /// `CLOCK_REALTIME` is set by half a second, each 300 ms.
    Step,
    /// The kernel changes its clock source, each 300 ms.
    Switch,
}

use Weather::{Calm, Slew, Sparse, Step, Stop, Switch, Threads, Throttle};

impl Weather {
    /// All, by their names on the command line.
    pub const ALL: [(&str, Self); 8] = [
        ("calm", Calm),
        ("threads", Threads),
        ("stop", Stop),
        ("throttle", Throttle),
        ("sparse", Sparse),
        ("slew", Slew),
        ("step", Step),
        ("switch", Switch),
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, weather)| *weather == self).map_or("", |(name, _)| name)
    }

    /// Whether it changes the clock of the machine.
    pub fn changes_the_machine(self) -> bool {
        matches!(self, Slew | Step | Switch)
    }

    fn clocks(self) -> Vec<Clock> {
        if self == Step { clocks::realtime() } else { clocks::monotonic() }
    }

    /// For how long the process runs and is stopped, in turns.
    fn pauses(self) -> Option<[Duration; 2]> {
        match self {
            Stop => Some([700, 300].map(Duration::from_millis)),
            Throttle => Some([5, 95].map(Duration::from_millis)),
            _ => None,
        }
    }

    /// Changes the machine until the end, and changes it back.
    fn change_machine(self, end: &AtomicBool) -> Result<(), String> {
        let sources = if self == Switch { machine::clock_sources()? } else { Vec::new() };
        let wait = Duration::from_millis(if self == Slew { 40 } else { 300 });
        for turn in 0.. {
            let is_last = end.load(Ordering::Relaxed);
            match self {
                Slew if is_last => machine::slew_no_more()?,
                Slew => machine::slew(turn)?,
                // After an even number of steps the clock is right.
                Step if !is_last || turn % 2 == 1 => machine::step(turn)?,
                Switch if is_last => machine::switch(&sources[0])?,
                Switch => machine::switch(&sources[(turn + 1) % sources.len()])?,
                _ => {}
            }
            if is_last || !self.changes_the_machine() {
                break;
            }
            thread::sleep(wait);
        }
        Ok(())
    }
}

impl FromStr for Weather {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, weather)| weather).ok_or_else(|| format!("there is no weather `{name}`"))
    }
}

/// Reads each clock between two reads of the kernel's, in turns. Returns the cells of each.
///
/// # Errors
///
/// The machine's clock cannot be changed.
pub fn measure(weather: Weather, length: Duration) -> Result<Vec<Vec<String>>, String> {
    let threads =
        if weather == Threads { 4 * thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    calls::settle();
    let end = AtomicBool::new(false);
    let pause = Duration::from_millis(if weather == Sparse { 20 } else { 0 });
    let read = || {
        let clocks = weather.clocks();
        let mut records: Vec<Record> = clocks.iter().map(|clock| Record::new(clock, pause)).collect();
        let start = Instant::now();
        while start.elapsed() < length {
            thread::sleep(pause);
            zip(&mut records, &clocks).for_each(|(record, clock)| record.compare(clock));
        }
        records
    };
    let records = thread::scope(|scope| {
        let changes = scope.spawn(|| weather.change_machine(&end));
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let mut records = read();
        end.store(true, Ordering::Relaxed);
        for other in others.into_iter().filter_map(|thread| thread.join().ok()) {
            zip(&mut records, &other).for_each(|(record, other)| record.add(other));
        }
        changes.join().map_err(|_| "a thread panicked".to_string()).flatten().map(|()| records)
    })?;
    Ok(zip(&records, weather.clocks()).map(|(record, clock)| record.cells(&clock)).collect())
}

/// Measures in this process, and prints the cells. [`rows`] reads them.
pub fn print(weather: Weather, seconds: u64) -> Result<(), String> {
    // Else a stopped process would stay.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    for row in measure(weather, Duration::from_secs(seconds))? {
        println!("{}", row.join("\t"));
    }
    Ok(())
}

/// Measures in a process of its own, which prints the cells. Returns them.
pub fn rows(command: &mut Command, weather: Weather) -> Result<Vec<Vec<String>>, String> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    if let Some(pauses) = weather.pauses() {
        stop_and_continue(&mut child, pauses)?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", weather.name(), output.status));
    }
    let cells = |line: &str| line.split('\t').map(String::from).collect();
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(cells).collect())
}

/// Stops the process again and again, until it ends.
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

//! Tests with a child whose clock reads are known. The child is this program itself, because a
//! guest has no other programs.

use std::env;
use std::fs;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use serde_json::Value;

use crate::arguments::{Arguments, arguments};
use crate::common::{child, not_run_here, target_tmpdir};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::measurement::Measurement;
use crate::output::table;
use crate::proc;
use crate::progress::Progress;
use crate::report::Report;
use crate::screen::Observer;

/// The line in [`often`] that reads the clock.
const LINE: u32 = line!() + 5;

#[inline(never)]
fn often() {
    for _ in 0..3 {
        black_box(Instant::now());
    }
}

#[inline(never)]
fn seldom() {
    black_box(Instant::now());
}

/// Held by a test that must run alone. A CPU has only four breakpoints, and a child that another
/// test forks meanwhile would keep them. One of the tests sets a CPU offline.
pub(crate) static ONE: Mutex<()> = Mutex::new(());

/// A report, and the records of the two functions in it.
struct Known {
    often: u64,
    seldom: u64,
    report: Value,
    text: String,
    folded: Vec<String>,
}

impl Known {
    fn of(report: &Report) -> Self {
        let json = serde_json::to_value(report).unwrap();
        let records = |name: &str| {
            let mut records = 0;
            for process in json["processes"].as_array().unwrap() {
                for caller in process["callers"].as_array().unwrap() {
                    if caller["function"].as_str().unwrap().ends_with(name) {
                        records += caller["records"].as_u64().unwrap();
                    }
                }
            }
            records
        };
        Self {
            often: records("::often"),
            seldom: records("::seldom"),
            text: table::text(report, 80),
            folded: report.folded.clone(),
            report: json,
        }
    }
}

fn measured(arguments: &Arguments, observer: &dyn Observer) -> Result<Report> {
    let interrupt = Interrupt::never();
    let mut measurement = Measurement::open(arguments, &interrupt)?;
    let report = measurement.run(observer)?;
    measurement.wait_for_command()?;
    Ok(report)
}

/// Waits for a child that connects, and for the first part of its work. The records stay in the
/// buffers until that part is done.
struct Gate {
    listener: UnixListener,
}

impl Observer for Gate {
    fn is_over(&self, _: &Progress, _: f64) -> bool {
        if let Ok((mut end, _)) = self.listener.accept() {
            end.set_nonblocking(false).unwrap();
            end.write_all(&[0]).unwrap();
            // The read fails if the child ends without writing.
            let _ = end.read_exact(&mut [0]);
        }
        false
    }

    fn interval(&self, _: &Report) {}
}

/// Counts the reads of a child, which is this program in [`a_child`].
fn counted(work: &str) -> Option<Known> {
    let _one = ONE.lock();
    let path = target_tmpdir().join(format!("known-{}", process::id()));
    let _ = fs::remove_file(&path);
    let gate = Gate {
        listener: UnixListener::bind(&path).unwrap(),
    };
    gate.listener.set_nonblocking(true).unwrap();
    let mut arguments = arguments("--exact --folded --duration=100 -- program");
    let socket = format!("{work}={}", path.display());
    let words = ["--exact", "known::a_child", &socket];
    arguments.command = vec![env::current_exe().unwrap().into()];
    arguments.command.extend(words.map(Into::into));
    match measured(&arguments, &gate) {
        Ok(report) => Some(Known::of(&report)),
        Err(error) => {
            not_run_here(error);
            None
        }
    }
}

/// Does the work of a child for another test, which names the work and a socket on the command
/// line. Without them, does nothing.
#[test]
fn a_child() {
    for word in env::args() {
        let Some((work, path)) = word.split_once('=') else {
            continue;
        };
        let Ok(mut end) = UnixStream::connect(path) else {
            continue;
        };
        end.read_exact(&mut [0]).unwrap();
        match work {
            "rounds" => {
                end.write_all(&[0]).unwrap();
                rounds();
            }
            "fill" => {
                fill();
                end.write_all(&[0]).unwrap();
                drained();
            }
            _ => {}
        }
    }
}

#[inline(never)]
fn rounds() {
    for _ in 0..200 {
        often();
        seldom();
    }
}

/// Causes 9,000 records of more than 2 KiB each. They do not fit in the buffer of a CPU, which has
/// at most 16 MiB.
fn fill() {
    let mut one = CpuSet::new();
    one.set(sched_getcpu().unwrap()).unwrap();
    sched_setaffinity(Pid::from_raw(0), &one).unwrap();
    (0..3000).for_each(|_| often());
}

fn drained() {
    thread::sleep(Duration::from_millis(500));
    (0..100).for_each(|_| seldom());
}

/// The child makes only a few reads, so all records fit in one buffer and none is lost.
#[test]
fn every_read_is_counted_with_its_callers_and_their_line() {
    let Some(known) = counted("rounds") else {
        return;
    };
    let report = &known.report;
    let all = (known.often, known.seldom, report["lost"].as_u64());
    assert_eq!(all, (600, 200, Some(0)), "{report:#}");
    let mut chains = 0;
    for line in &known.folded {
        let (chain, reads) = line.rsplit_once(' ').unwrap();
        if chain.contains("::rounds;vdso_who::known::often;") {
            chains += reads.parse::<u64>().unwrap();
        }
    }
    assert_eq!(chains, 600, "{:#?}", known.folded);
    let callers = report["processes"][0]["callers"].as_array().unwrap();
    let is_often = |caller: &&Value| caller["function"] == "vdso_who::known::often";
    let often = callers.iter().find(is_often).unwrap();
    // A guest's programs have no debug information.
    if let Some(file) = often["file"].as_str() {
        let is_here = file.ends_with("tests/known.rs") && often["line"] == LINE;
        assert!(is_here, "{often}");
    }
}

#[test]
fn lost_records_leave_each_caller_a_lower_bound_of_its_reads() {
    let Some(known) = counted("fill") else {
        return;
    };
    let report = &known.report;
    assert!(known.often < 9000 && known.seldom <= 100, "{report:#}");
    assert_ne!(report["lost"], 0, "{report:#}");
    assert!(report["reads"].as_u64() >= Some(9100), "{report:#}");
    let process = &report["processes"][0];
    let callers = process["callers"].as_array().unwrap().iter();
    for amounts in callers.chain([process]) {
        assert!(amounts["reads"].is_null(), "{report:#}");
        assert!(amounts["reads_per_second"].is_null(), "{report:#}");
        let bound = format!(" >= {}  ", amounts["records"]);
        assert!(known.text.contains(&bound), "{bound} {}", known.text);
    }
}

/// Repeats some work until this process has used `most` of CPU time. Elapsed time does not count,
/// because a process gets little CPU time on a busy machine.
fn use_cpu_time(most: Duration, work: impl Fn()) {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        usage.user_time() + usage.system_time()
    };
    while u128::from(used().num_microseconds().unsigned_abs()) < most.as_micros() {
        work();
    }
}

/// Lets a child begin its work when the measurement begins.
struct Begin {
    end: UnixStream,
}

impl Observer for Begin {
    fn is_over(&self, _: &Progress, _: f64) -> bool {
        // The write fails after the child has ended.
        let _ = (&self.end).write_all(&[0]);
        false
    }

    fn interval(&self, _: &Report) {}
}

/// Samples a child until it has used this many seconds of CPU time. Its main thread has ended
/// before, so another thread does the work.
fn sampled(seconds: u64) -> Option<Known> {
    let _one = ONE.lock();
    let (mut child_end, end) = UnixStream::pair().unwrap();
    let child = child::fork(move || {
        thread::spawn(move || {
            child_end.read_exact(&mut [0]).unwrap();
            use_cpu_time(Duration::from_secs(seconds), rounds);
            child::leave(0)
        });
        child::leave_thread();
    });
    child::wait_for_main_thread(child);
    let options = format!("--frequency=1999 --pid={child} --duration=100");
    match measured(&arguments(&options), &Begin { end }) {
        Ok(report) => {
            assert_eq!(child::wait(child), child::SUCCESS);
            Some(Known::of(&report))
        }
        Err(error) => {
            let _ = kill(child, Signal::SIGKILL);
            child::wait(child);
            not_run_here(error);
            None
        }
    }
}

#[test]
fn the_sampled_share_of_a_caller_is_its_share_of_the_reads_within_10_percent() {
    let mut last = Value::Null;
    // While debug information is read, records can be lost, so a short run may have too few
    // samples.
    for seconds in [1, 4, 16] {
        let Some(known) = sampled(seconds) else {
            return;
        };
        let all = known.often + known.seldom;
        if all > 500 {
            let distance = (known.often * 1000).abs_diff(750 * all);
            assert!(distance <= 75 * all, "{:#}", known.report);
            return;
        }
        last = known.report;
    }
    panic!("no run has 500 samples: {last:#}");
}

/// Blocks the counting thread in its first interval until records have waited in the buffers for
/// longer than an interval, as they do after a suspend.
#[derive(Default)]
struct Hold {
    /// When too many records began to wait, in seconds of the measurement.
    since: Mutex<Option<f64>>,
    is_released: AtomicBool,
    /// The number of samples and the CPU time of each interval.
    intervals: Mutex<Vec<(u64, f64)>>,
}

impl Observer for Hold {
    fn is_over(&self, progress: &Progress, seconds: f64) -> bool {
        let mut since = self.since.lock().unwrap();
        if since.is_none() && progress.waiting.load(Relaxed) > 1024 {
            *since = Some(seconds);
        }
        let held = match *since {
            Some(since) => seconds - since,
            None => 0.0,
        };
        let is_over = held > 5.0 || seconds > 100.0;
        if held > 3.0 || is_over {
            self.is_released.store(true, Relaxed);
        }
        is_over
    }

    fn interval(&self, report: &Report) {
        let interval = (report.samples, report.cpu_seconds);
        self.intervals.lock().unwrap().push(interval);
        while !self.is_released.load(Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// An interval that used CPU time must have samples. If it has none, its records were still in the
/// buffers, and the next interval counts them.
#[test]
fn no_interval_counts_the_records_of_the_one_before_even_after_a_pause() {
    let _one = ONE.lock();
    let child = child::fork(|| {
        use_cpu_time(Duration::from_secs(100), rounds);
        child::leave(0)
    });
    let options = format!("--frequency=4999 --pid={child} --interval=1");
    let hold = Hold::default();
    let result = measured(&arguments(&options), &hold);
    let _ = kill(child, Signal::SIGKILL);
    child::wait(child);
    if let Err(error) = result {
        return not_run_here(error);
    }
    let intervals = hold.intervals.into_inner().unwrap();
    if intervals.is_empty() {
        return not_run_here("no interval ended, because this machine is too slow");
    }
    for (samples, cpu_seconds) in &intervals {
        assert!(*samples > 0 || *cpu_seconds < 0.05, "{intervals:?}");
    }
}

/// The file that shows whether CPU 1 is online. In a guest, a test can change that by writing to
/// it.
const CPU_1: &str = "/sys/devices/system/cpu/cpu1/online";

/// Sets CPU 1 offline and online again, as a hypervisor does, while a process uses it.
struct HotPlug {
    reader: u32,
    /// The CPU time of the process, in seconds, at each call of `is_over`.
    times: Mutex<Vec<f64>>,
}

impl HotPlug {
    /// CPU 1 is offline while the CPU time that the process has used, in seconds, is in this range.
    /// The measurement ends when the process has used more than `ALL`.
    const OFFLINE: Range<f64> = 2.0..2.2;
    const ALL: f64 = 8.0;

    /// Returns the CPU time that the process used during the measurement.
    fn used(&self) -> f64 {
        let times = self.times.lock().unwrap();
        match (times.first(), times.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0.0,
        }
    }
}

impl Observer for HotPlug {
    fn is_over(&self, _: &Progress, _: f64) -> bool {
        let time = proc::cpu_time(self.reader, false, false).unwrap();
        self.times.lock().unwrap().push(time.as_secs_f64());
        let used = self.used();
        let state = if Self::OFFLINE.contains(&used) {
            "0"
        } else {
            "1"
        };
        // The kernel ignores a state that the CPU already has.
        fs::write(CPU_1, state).unwrap();
        used > Self::ALL
    }

    fn interval(&self, _: &Report) {}
}

/// Repeats some work on a CPU and never returns. The CPU is chosen anew each time, because the
/// kernel moves the process away when that CPU goes offline, and does not move it back.
fn work_on(cpu: usize, work: impl Fn()) -> ! {
    let mut one = CpuSet::new();
    one.set(cpu).unwrap();
    loop {
        let _ = sched_setaffinity(Pid::from_raw(0), &one);
        work();
    }
}

/// Watches a process that reads the clock on CPU 1, and its child on CPU 0, which does not. The
/// kernel ends the event of a CPU that goes offline. The first version did not open a new event
/// when the CPU came back, so it reported 20.0 +-2.2 % where 54.9 % was right.
#[test]
fn a_cpu_that_goes_and_comes_back_leaves_the_share_right_within_its_error() {
    if env::var_os("VDSO_TIME_EMULATED").is_none_or(|kind| kind != "kernel") {
        return not_run_here("CPUs go offline only in a guest");
    }
    if fs::write(CPU_1, "1").is_err() {
        return not_run_here("this guest has one CPU");
    }
    let _one = ONE.lock();
    let reader = child::fork(|| {
        child::fork(|| {
            work_on(0, || {
                for number in 0..1_000_000 {
                    black_box(number);
                }
            })
        });
        work_on(1, rounds)
    });
    let plug = HotPlug {
        reader: reader.as_raw() as u32,
        times: Mutex::default(),
    };
    let options = format!("--frequency=99 --pid={reader} --duration=1000");
    let result = measured(&arguments(&options), &plug);
    let _ = kill(reader, Signal::SIGKILL);
    child::wait(reader);
    let report = match result {
        Ok(report) => serde_json::to_value(&report).unwrap(),
        Err(error) => return not_run_here(error),
    };

    let figure = |value: &Value, name: &str| value[name].as_f64().unwrap();
    let share = figure(&report, "percent");
    let error = figure(&report, "percent_error");
    // Only the reader reads the clock. The share of reads in its own samples is right even if some
    // of its CPU time has no samples, so the true share of both processes follows from it.
    let reader = &report["processes"][0];
    let part = plug.used() / figure(&report, "cpu_seconds");
    let truth = figure(reader, "percent") * part;
    assert!((share - truth).abs() <= error, "{truth}: {report:#}");
    // Each process uses half of the CPU time. If CPU 1 had no event after it came back, only a
    // fifth of the samples would be the reader's.
    let of_reader = figure(reader, "samples");
    assert!(3.0 * of_reader > figure(&report, "samples"), "{report:#}");
}

//! A child of this program, whose reads are known. Unlike other programs, it is also in the guests.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::nix::sched::{CpuSet, sched_getcpu, sched_setaffinity};
use test_support::nix::sys::resource::{UsageWho, getrusage};
use test_support::nix::sys::signal::{Signal, kill};
use test_support::nix::sys::time::TimeValLike as _;
use test_support::nix::unistd::Pid;
use test_support::{child, not_run_here};

use crate::arguments::arguments;
use crate::interrupt::Interrupt;
use crate::measurement::Measurement;
use crate::output::table;
use crate::progress::Progress;
use crate::report::Report;
use crate::screen::Observer;

/// The line of the read.
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

/// A process has four breakpoints, and a child that was forked meanwhile keeps them.
static ONE: Mutex<()> = Mutex::new(());

const EXACT: &str = "--exact --may-end-process";

/// Lets the child begin when the measurement begins, and waits for its first work.
struct Begin {
    end: UnixStream,
    has_begun: AtomicBool,
}

impl Observer for Begin {
    fn is_over(&self, _: &Progress, _: f64) -> bool {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            (&self.end).write_all(&[0]).unwrap();
            (&self.end).read_exact(&mut [0]).unwrap();
        }
        false
    }

    fn interval(&self, _: &Report) {}
}

fn measured(options: &str, observer: &Begin) -> crate::error::Result<Report> {
    let arguments = arguments(options);
    let interrupt = Interrupt::never();
    Measurement::open(&arguments, &interrupt)?.run(observer)
}

/// Watches a child until it ends, whose main thread may end before. Nobody takes the records out of
/// the buffers during the `first` work. Returns the records of `often` and of `seldom`, the report,
/// and the call chains.
fn watched(
    options: &str,
    has_main_thread: bool,
    first: impl FnOnce() + Send + 'static,
    work: impl FnOnce() + Send + 'static,
) -> Option<([u64; 2], Value, Vec<String>)> {
    let _one = ONE.lock();
    let (mut child_end, end) = UnixStream::pair().unwrap();
    let child = child::fork(move || {
        let work = move || {
            child_end.read_exact(&mut [0]).unwrap();
            first();
            child_end.write_all(&[0]).unwrap();
            work();
            child::leave(0)
        };
        if !has_main_thread {
            thread::spawn(work);
            child::leave_thread();
        }
        work()
    });
    if !has_main_thread {
        child::wait_for_main_thread(child);
    }
    let options = format!("{options} --pid={child} --duration=100 --folded");
    let begin = Begin {
        end,
        has_begun: AtomicBool::new(false),
    };
    let report = match measured(&options, &begin) {
        Ok(report) => report,
        Err(error) => {
            let _ = kill(child, Signal::SIGKILL);
            child::wait(child, child::LIMIT);
            not_run_here(error);
            return None;
        }
    };
    assert_eq!(child::wait(child, child::LIMIT), child::SUCCESS);
    let text = table::text(&report, 80);
    let folded = report.folded.clone();
    let mut report = serde_json::to_value(&report).unwrap();
    report["text"] = text.into();
    let processes = report["processes"].as_array().unwrap().iter();
    let callers = processes.flat_map(|process| process["callers"].as_array().unwrap());
    let records = ["::often", "::seldom"].map(|name| {
        let own = callers
            .clone()
            .filter(|caller| caller["function"].as_str().unwrap().ends_with(name));
        own.map(|caller| caller["records"].as_u64().unwrap()).sum()
    });
    Some((records, report, folded))
}

#[inline(never)]
fn rounds() {
    for _ in 0..200 {
        often();
        seldom();
    }
}

/// Makes few records, so that all fit in one buffer.
#[test]
fn every_read_is_counted_with_its_callers_and_their_line() {
    for has_main_thread in [true, false] {
        let watched = watched(EXACT, has_main_thread, || (), rounds);
        let Some((records, report, folded)) = watched else {
            return;
        };
        assert_eq!(
            (records, report["lost"].as_u64()),
            ([600, 200], Some(0)),
            "{report:#}"
        );
        let is_chain = |line: &&String| line.contains("::rounds;vdso_who::known::often;");
        let reads = |line: &String| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(
            folded.iter().filter(is_chain).map(reads).sum::<u64>(),
            600,
            "{folded:#?}"
        );
        let most = &report["processes"][0]["callers"][0];
        // A guest's programs have no debug information.
        if let Some(file) = most["file"].as_str() {
            assert!(
                file.ends_with("tests/known.rs") && most["line"] == LINE,
                "{most}"
            );
        }
    }
}

/// Makes 9,000 records of more than 2 KiB, which do not fit in the buffer of a CPU, at most 16 MiB.
#[test]
fn lost_records_leave_each_caller_a_lower_bound_of_its_reads() {
    let fill = || {
        let mut one = CpuSet::new();
        one.set(sched_getcpu().unwrap()).unwrap();
        sched_setaffinity(Pid::from_raw(0), &one).unwrap();
        (0..3000).for_each(|_| often());
    };
    let drained = || {
        thread::sleep(Duration::from_millis(500));
        (0..100).for_each(|_| seldom());
    };
    let watched = watched(EXACT, true, fill, drained);
    let Some((records, report, _)) = watched else {
        return;
    };
    assert!(
        records[0] < 9000 && records[1] <= 100 && report["lost"] != 0,
        "{records:?} {report:#}"
    );
    assert!(report["reads"].as_u64() >= Some(9100), "{report:#}");
    let process = &report["processes"][0];
    let callers = process["callers"].as_array().unwrap().iter();
    for amounts in callers.chain([process]) {
        assert!(
            amounts["reads"].is_null() && amounts["reads_per_second"].is_null(),
            "{report:#}"
        );
        let bound = format!(" >= {}  ", amounts["records"]);
        assert!(
            report["text"].as_str().unwrap().contains(&bound),
            "{bound} {report:#}"
        );
    }
}

/// Does some work until the child used so much CPU time, because a busy machine gives it little.
fn use_cpu_time(most: Duration, work: impl Fn()) {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        usage.user_time() + usage.system_time()
    };
    while u128::from(used().num_microseconds().unsigned_abs()) < most.as_micros() {
        work();
    }
}

#[test]
fn the_sampled_share_of_a_caller_is_its_share_of_the_reads_within_10_percent() {
    let mut last = Value::Null;
    // Records are lost while debug information is read.
    for seconds in [1, 4, 16] {
        let work = move || use_cpu_time(Duration::from_secs(seconds), rounds);
        let watched = watched("--frequency=1999", true, || (), work);
        let Some(([in_often, in_seldom], report, _)) = watched else {
            return;
        };
        let all = in_often + in_seldom;
        if all > 500 {
            return assert!(
                (in_often * 1000).abs_diff(750 * all) <= 75 * all,
                "{report:#}"
            );
        }
        last = report;
    }
    panic!("no run has 500 samples: {last:#}");
}

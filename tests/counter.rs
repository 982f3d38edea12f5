//! The counter clock on the machine's own counter: its status, its nearness to the kernel's clock, its order across threads.

#![cfg(any(target_os = "linux", target_os = "android"))]
#![allow(unsafe_code, reason = "prctl(2) is called here")]

#[path = "support/counter.rs"]
mod counter_clock;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counter_clock::{assert_near, kernel, settle};
use test_support::{Cpus, allowed_cpus, child, not_run_here, pin};
use vdso_time::counter::{self, Status};
use vdso_time::{Clock, Counter};

#[test]
fn a_read_is_near_the_kernels_clock() {
    settle();
    for _ in 0..10_000 {
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic_ordered() as i64);
        assert_near(libc::CLOCK_MONOTONIC, || Counter::now().as_nanos());
        assert_near(libc::CLOCK_REALTIME, counter::realtime);
    }
}

#[test]
fn a_read_after_a_pause_is_the_vdsos_and_makes_a_line() {
    let used = settle().status == Status::Used;
    thread::sleep(Duration::from_millis(50));
    if used {
        // Another test's thread may have read meanwhile.
        assert!([Status::Stale, Status::Used].contains(&counter::status()));
    }
    assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
    assert_eq!(settle().status == Status::Used, used);
}

#[test]
fn ticks_and_their_number_in_a_second_agree_with_the_kernels_clock() {
    let status = settle().status;
    if status != Status::Used {
        return not_run_here("counter", format!("the counter is not used: {status}"));
    }
    let (ticks, nanos) = (counter::ticks_ordered(), kernel(libc::CLOCK_MONOTONIC));
    thread::sleep(Duration::from_millis(200));
    let (ticks, nanos) = (counter::ticks_ordered() - ticks, kernel(libc::CLOCK_MONOTONIC) - nanos);
    let frequency = settle().frequency.unwrap();
    let expected = (u128::from(frequency) * nanos as u128 / 1_000_000_000) as u64;
    // What it takes to be interrupted between two reads of two clocks.
    assert!(ticks.abs_diff(expected) < expected / 20, "{ticks} ticks, and not {expected}");
    assert!(counter::ticks() <= counter::ticks());
}

/// What threads saw that told each other the time.
#[derive(Default)]
struct Seen {
    reads: u64,
    back: u64,
    worst: u64,
}

/// Reads on a CPU after the other, and tells the others and itself; no thread ever sees its own time go back.
fn tell(cpus: &[usize], all: &Cpus, length: Duration, latest: &AtomicU64, read: impl Fn() -> u64) -> Seen {
    let mut seen = Seen::default();
    let start = Instant::now();
    for cpu in cpus.iter().cycle() {
        if start.elapsed() >= length || !pin(all, *cpu) {
            break;
        }
        let mut own = 0;
        for _ in 0..50_000 {
            // What was stored there happened before this read.
            let before = latest.load(Ordering::Acquire);
            let now = read();
            assert!(now >= own, "{now} after {own} in one thread");
            own = now;
            seen.reads += 1;
            seen.back += u64::from(now < before);
            seen.worst = seen.worst.max(before.saturating_sub(now));
            latest.store(now, Ordering::Release);
        }
    }
    seen
}

/// One thread for each list of CPUs.
fn tell_each_other(lists: &[Vec<usize>], all: &Cpus, read: impl Fn() -> u64 + Copy + Sync + Send) -> Seen {
    let seconds = std::env::var("VDSO_TIME_TEST_SECONDS").map_or(1.0, |text| text.parse().unwrap());
    let length = Duration::from_secs_f64(seconds);
    let latest = AtomicU64::new(0);
    thread::scope(|scope| {
        let latest = &latest;
        let workers: Vec<_> =
            lists.iter().map(|list| scope.spawn(move || tell(list, all, length, latest, read))).collect();
        workers.into_iter().fold(Seen::default(), |sum, worker| {
            let Seen { reads, back, worst } = worker.join().unwrap();
            Seen { reads: sum.reads + reads, back: sum.back + back, worst: sum.worst.max(worst) }
        })
    })
}

/// Four threads that hop over all the CPUs, as the kernel's time-warp-test did. `VDSO_TIME_TEST_SECONDS` says for how long.
#[test]
fn an_ordered_read_never_goes_back_on_any_cpu() {
    let Some(cpus) = allowed_cpus() else { return };
    let numbers = cpus.numbers();
    let mut lists: Vec<_> = (0..4).map(|_| numbers.clone()).collect();
    for (turn, list) in lists.iter_mut().enumerate() {
        list.rotate_left(turn % numbers.len());
    }
    let status = settle().status;
    let Seen { reads, back, worst } = tell_each_other(&lists, &cpus, counter::monotonic_ordered);
    println!("{status:?}; ordered: {back} of {reads} reads went back");
    assert_eq!(back, 0, "by {worst} ns at most");
    assert!(reads > 1000);
    assert_eq!(settle().status, status);
}

/// The test above can fail: a read that keeps no order does go back.
#[test]
fn an_unordered_read_goes_back_between_cpus() {
    let Some(cpus) = allowed_cpus() else { return };
    let lists: Vec<_> = cpus.numbers().into_iter().take(2).map(|cpu| vec![cpu]).collect();
    if cfg!(debug_assertions)
        || cfg!(not(target_arch = "x86_64"))
        || settle().status != Status::Used
        || lists.len() < 2
    {
        return not_run_here("unordered", "it takes fast code on two CPUs of x86_64");
    }
    // It is a matter of chance, and of what else the machine does.
    let back = (0..20).any(|_| {
        let Seen { reads, back, worst } = tell_each_other(&lists, &cpus, counter::monotonic);
        println!("unordered: {back} of {reads} reads went back, by {worst} ns at most");
        back > 0
    });
    assert!(back, "none went back");
}

#[test]
fn a_forked_child_goes_on() {
    let status = settle().status;
    child::forked(move || {
        assert_near(libc::CLOCK_MONOTONIC, || counter::monotonic() as i64);
        assert_eq!(settle().status, status);
    });
}

/// Denies this thread the counter.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn deny_counter() {
    // SAFETY: the two numbers are `PR_SET_TSC` and `PR_TSC_SIGSEGV`.
    assert_eq!(unsafe { libc::prctl(26, 2) }, 0);
}

/// It does not read the counter.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn a_check_says_that_this_thread_is_denied_the_counter() {
    if counter::check() != Ok(()) {
        return not_run_here("counter", format!("the counter is not used: {:?}", counter::check()));
    }
    child::forked(|| {
        deny_counter();
        assert_eq!(counter::check(), Err(Status::Denied));
    });
}

/// A thread that must not read the counter gets SIGSEGV, as it does in the vDSO.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn a_thread_that_is_denied_the_counter_gets_sigsegv_as_in_the_vdso() {
    const READS: [fn() -> bool; 2] =
        [|| counter::monotonic() > 0, || vdso_time::clock_gettime(vdso_time::ClockId::MONOTONIC).is_ok()];
    let status = settle().status;
    if status != Status::Used {
        return not_run_here("counter", format!("the counter is not used: {status}"));
    }
    for read in READS {
        let end = child::end_of(|| {
            deny_counter();
            assert!(read());
        });
        assert!(libc::WIFSIGNALED(end) && libc::WTERMSIG(end) == libc::SIGSEGV, "{end:#x}");
    }
}

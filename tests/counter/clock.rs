//! The counter clock's nearness to the kernel's clock, and its order across threads.

#![allow(unsafe_code, reason = "prctl(2) is called here")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{Cpus, child, not_run_here};
use vdso_time::counter::{self, Status};

use crate::{assert_near, is_used, kernel, settle};

#[test]
fn a_read_is_near_the_kernels_clock_also_after_a_pause() {
    child::forked(|| {
        let is_used = settle().status == Status::Used;
        (0..10_000).for_each(|_| assert_near());
        settle();
        thread::sleep(Duration::from_millis(50));
        assert!(!is_used || counter::status() == Status::Stale);
        assert_near();
        assert_eq!(settle().status == Status::Used, is_used);
    });
}

#[test]
fn ticks_and_their_frequency_agree_with_the_kernels_clock() {
    child::forked(|| {
        if !is_used() {
            return;
        }
        let (ticks, nanos) = (counter::ticks_ordered(), kernel(libc::CLOCK_MONOTONIC));
        thread::sleep(Duration::from_millis(200));
        let (ticks, nanos) = (counter::ticks_ordered() - ticks, kernel(libc::CLOCK_MONOTONIC) - nanos);
        let frequency = settle().frequency.unwrap();
        let expected = (u128::from(frequency) * nanos as u128 / 1_000_000_000) as u64;
        // The slack is for an interruption between two reads of two clocks.
        assert!(ticks.abs_diff(expected) < expected / 20, "{ticks} ticks, and not {expected}");
        assert!(counter::ticks() <= counter::ticks());
    });
}

/// What was seen by threads that pass each other the time.
#[derive(Default)]
struct Seen {
    reads: u64,
    back: u64,
    worst: u64,
}

/// How long the threads do so: `VDSO_TIME_TEST_SECONDS`.
fn length() -> Duration {
    let seconds = std::env::var("VDSO_TIME_TEST_SECONDS").map_or(1.0, |text| text.parse().unwrap());
    Duration::from_secs_f64(seconds)
}

/// Does `work` in a child that may take so many times that long.
#[track_caller]
fn forked_for(lengths: u32, work: impl FnOnce()) {
    let child = child::fork(|| {
        work();
        true
    });
    assert_eq!(child::wait(child, child::LIMIT + lengths * length()), child::WELL);
}

/// Reads on one CPU after the other, and passes the time on. A thread never sees its own go back.
fn pass_on(cpus: &[usize], all: &Cpus, latest: &AtomicU64, read: impl Fn() -> u64) -> Seen {
    let mut seen = Seen::default();
    let start = Instant::now();
    for cpu in cpus.iter().cycle() {
        if start.elapsed() >= length() || !all.pin(*cpu) {
            break;
        }
        let mut own = 0;
        for _ in 0..50_000 {
            // The read that was stored there happened before this one.
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
fn pass_around(lists: &[Vec<usize>], all: &Cpus, read: impl Fn() -> u64 + Copy + Sync + Send) -> Seen {
    let latest = AtomicU64::new(0);
    thread::scope(|scope| {
        let latest = &latest;
        let workers: Vec<_> =
            lists.iter().map(|list| scope.spawn(move || pass_on(list, all, latest, read))).collect();
        workers.into_iter().fold(Seen::default(), |sum, worker| {
            let Seen { reads, back, worst } = worker.join().unwrap();
            Seen { reads: sum.reads + reads, back: sum.back + back, worst: sum.worst.max(worst) }
        })
    })
}

/// Four threads that move over all the CPUs, as in the kernel's time-warp-test.
#[test]
fn an_ordered_read_never_goes_back_on_any_cpu() {
    forked_for(1, || {
        let Some(cpus) = Cpus::allowed() else { return };
        let numbers = cpus.numbers();
        let mut lists = vec![numbers.clone(); 4];
        for (turn, list) in lists.iter_mut().enumerate() {
            list.rotate_left(turn % numbers.len());
        }
        let status = settle().status;
        let Seen { reads, back, worst } = pass_around(&lists, &cpus, counter::monotonic_ordered);
        println!("{status:?}; ordered: {back} of {reads} reads went back");
        assert_eq!(back, 0, "by {worst} ns at most");
        assert!(reads > 1000);
        assert_eq!(settle().status, status);
    });
}

/// The test above can fail: a read that keeps no order does go back.
#[test]
fn an_unordered_read_goes_back_between_cpus() {
    const TRIES: u32 = 20;
    forked_for(TRIES, || {
        let Some(cpus) = Cpus::allowed() else { return };
        let lists: Vec<_> = cpus.numbers().into_iter().take(2).map(|cpu| vec![cpu]).collect();
        let is_fast = !cfg!(debug_assertions) && cfg!(target_arch = "x86_64");
        if !is_fast || lists.len() < 2 || settle().status != Status::Used {
            return not_run_here("unordered", "it takes fast code on two CPUs of x86_64");
        }
        // It depends on chance, and on what else the machine does.
        let back = (0..TRIES).any(|_| {
            let Seen { reads, back, worst } = pass_around(&lists, &cpus, counter::monotonic);
            println!("unordered: {back} of {reads} reads went back, by {worst} ns at most");
            back > 0
        });
        assert!(back, "none went back");
    });
}

#[test]
fn a_forked_child_goes_on() {
    child::forked(|| {
        let status = settle().status;
        child::forked(move || {
            assert_near();
            assert_eq!(settle().status, status);
        });
    });
}

/// A thread that must not read the counter gets SIGSEGV, as it does in the vDSO. `check` says so.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn a_thread_that_is_denied_the_counter_gets_sigsegv_as_in_the_vdso() {
    use test_support::nix;

    let deny_counter = || {
        // SAFETY: the two numbers are `PR_SET_TSC` and `PR_TSC_SIGSEGV`.
        assert_eq!(unsafe { libc::prctl(26, 2) }, 0);
    };
    let reads: [fn() -> bool; 2] =
        [|| counter::monotonic() > 0, || vdso_time::clock_gettime(vdso_time::ClockId::MONOTONIC).is_ok()];
    child::forked(|| {
        if !is_used() {
            return;
        }
        child::forked(|| {
            deny_counter();
            assert_eq!(counter::check(), Err(Status::Denied));
        });
        for read in reads {
            let end = child::end_of(|| {
                deny_counter();
                read()
            });
            assert_eq!(end, child::End::Signal(nix::sys::signal::Signal::SIGSEGV));
        }
    });
}

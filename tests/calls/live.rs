//! The promise: on both paths every function answers what the kernel answers, and no clock goes
//! back.

use std::thread;
use std::time::Duration;

use test_support::functions::{assert_all_right, tries};
use test_support::{CLOCKS, Cpus, FUNCTIONS, PATHS, assert_bracketed, not_run, oracle, settable};
use vdso_time::{ClockId, Errno, Timespec, syscall};

/// A reading between two of the kernel's is not stale, so repeating it finds a time that is cached.
#[test]
fn every_answer_lies_between_two_of_the_kernels() {
    for path in &PATHS {
        (0..2000).for_each(|_| assert_all_right(path));
    }
}

/// The kernel's selftest `correctness`, LTP's clock_gettime02 and vdsotest's `abi`.
#[test]
fn every_id_answers_as_the_kernel_does() {
    const UNKNOWN: [i32; 14] = [-1, 12, 13, 14, 15, 24, 25, 31, 32, 63, 64, 99, i32::MAX, i32::MIN];
    for path in &PATHS {
        for id in (0..12).chain(UNKNOWN) {
            for function in &FUNCTIONS {
                function.assert_right(path, ClockId::from_raw(id));
            }
        }
        for clock in UNKNOWN.map(ClockId::from_raw) {
            assert_eq!((path.clock_gettime)(clock), Err(Errno::EINVAL), "{} {clock:?}", path.name);
            assert_eq!((path.clock_getres)(clock), Err(Errno::EINVAL), "{} {clock:?}", path.name);
        }
    }
}

/// At the turn of a second, which `CLOCK_REALTIME` reaches up to a timer tick before time(2) does.
#[test]
fn time_is_the_second_of_the_coarse_clock() {
    let now = oracle::clock_gettime(libc::CLOCK_REALTIME).unwrap();
    let rest = u64::try_from(1_000_000_000 - now.tv_nsec).unwrap();
    thread::sleep(Duration::from_nanos(rest).saturating_sub(Duration::from_millis(20)));
    let start = oracle::seconds();
    let mut is_over = false;
    while !is_over {
        is_over = oracle::seconds() != start;
        for path in &PATHS {
            assert_bracketed(path.name, true, oracle::seconds, path.time);
        }
        assert_bracketed("try_time", true, oracle::seconds, vdso_time::try_time);
    }
}

/// LTP's clock_gettime04 and vdsotest's `verify`: no answer is before the last one of another way.
#[test]
fn no_clock_goes_back_from_one_path_to_another() {
    for clock in CLOCKS {
        let tries = tries(settable(clock.as_raw()));
        let failures: Vec<String> = (0..tries).map_while(|_| goes_back(clock).err()).collect();
        assert!(failures.len() < tries, "{}", failures.join("\n"));
    }
}

/// A way to a clock: its name, what it cuts off, and how it is asked.
type Way<'a> = (&'a str, i64, &'a dyn Fn(ClockId) -> Result<Timespec, Errno>);

fn goes_back(clock: ClockId) -> Result<(), String> {
    // gettimeofday cuts what CLOCK_REALTIME has below the microsecond.
    const CUT: i64 = 999;
    let kernel = |clock: ClockId| oracle::clock_gettime(clock.as_raw()).map_err(|_| Errno::EINVAL);
    let libc = |clock: ClockId| oracle::libc_clock_gettime(clock.as_raw()).ok_or(Errno::EOVERFLOW);
    let micros =
        |_| vdso_time::gettimeofday().map(|now| Timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_usec * 1000 });
    let ways: [Way<'_>; 5] = [
        ("libc", 0, &libc),
        ("system call", 0, &kernel),
        (PATHS[0].name, 0, &PATHS[0].clock_gettime),
        (PATHS[1].name, 0, &PATHS[1].clock_gettime),
        ("gettimeofday", CUT, &micros),
    ];
    let ways = if clock == ClockId::REALTIME { &ways[..] } else { &ways[..4] };
    let mut last = ("the start", 0);
    for round in 0..10_000 {
        for (name, cut, way) in ways {
            let now = match way(clock) {
                Ok(now) => now,
                // A 32-bit `time_t` after January 2038.
                Err(Errno::EOVERFLOW) if *name == "libc" => continue,
                Err(error) => panic!("{clock:?} from {name}: {error}"),
            };
            assert!((0..1_000_000_000).contains(&now.tv_nsec), "{clock:?} from {name}: {now:?}");
            if now.as_nanos() + cut < last.1 {
                return Err(format!("{clock:?}, round {round}: {name} {now:?} after {last:?}"));
            }
            last = (name, now.as_nanos());
        }
    }
    Ok(())
}

/// For an auxiliary clock the vDSO says 1 ns whether the clock exists or not (Linux 6.17 and
/// later).
#[test]
fn the_resolution_of_an_auxiliary_clock_is_the_vdsos_answer() {
    for clock in (0..8).map(ClockId::aux) {
        let kernel = oracle::clock_getres(clock.as_raw());
        let ours = vdso_time::clock_getres(clock).map_err(Errno::raw_os_error);
        let nanosecond = Ok(Timespec { tv_sec: 0, tv_nsec: 1 });
        assert!([kernel, nanosecond].contains(&ours), "{clock:?}: {ours:?}, {kernel:?}");
        assert_eq!(syscall::clock_getres(clock).map_err(Errno::raw_os_error), kernel, "{clock:?}");
    }
}

/// vdsotest's `verify` of getcpu: no answer survives the move to another CPU.
#[test]
fn getcpu_follows_a_thread_that_is_moved() {
    let Some(cpus) = Cpus::allowed() else { return };
    let numbers = cpus.numbers();
    if numbers.len() == 1 {
        not_run("there is one CPU, and the thread cannot be moved");
    }
    let some = &numbers[..numbers.len().min(32)];
    for path in &PATHS {
        for (from, to) in some.iter().flat_map(|from| some.iter().map(move |to| (*from, *to))) {
            for cpu in [from, to] {
                if cpus.pin(cpu) {
                    let here = (path.getcpu)().unwrap();
                    assert_eq!(here.cpu as usize, cpu, "{} from {from} to {to}", path.name);
                    assert_eq!(Ok((here.cpu, here.node)), oracle::getcpu(), "{}", path.name);
                }
            }
        }
        cpus.release();
        for _ in 0..1000 {
            let here = (path.getcpu)().unwrap().cpu as usize;
            assert!(numbers.contains(&here), "{}: CPU {here} is none of {numbers:?}", path.name);
        }
    }
}

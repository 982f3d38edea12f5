//! The promise: on both paths every clock answers what the kernel answers, and never goes back.

use std::thread;
use std::time::Duration;

use test_support::{PATHS, allowed_cpus, assert_bracketed, not_run, oracle, pin, settable};
use vdso_time::{ClockId, Cpu, Errno, Timespec, syscall};

/// The clocks that every kernel has.
const CLOCKS: [ClockId; 9] = [
    ClockId::REALTIME,
    ClockId::BOOTTIME,
    ClockId::TAI,
    ClockId::REALTIME_COARSE,
    ClockId::MONOTONIC,
    ClockId::MONOTONIC_RAW,
    ClockId::MONOTONIC_COARSE,
    ClockId::PROCESS_CPUTIME,
    ClockId::THREAD_CPUTIME,
];

fn bracket(path: &test_support::Path, clock: ClockId) {
    let id = clock.as_raw();
    assert_bracketed(
        &format!("{} {clock:?}", path.name),
        settable(id),
        || oracle::clock_gettime(id),
        || (path.clock_gettime)(clock),
    );
}

/// The kernel's selftest `abi`, and LTP's clock_gettime01.
#[test]
fn every_clock_gives_a_normalised_time() {
    for path in &PATHS {
        for clock in CLOCKS {
            let now = (path.clock_gettime)(clock).unwrap();
            assert!((0..1_000_000_000).contains(&now.tv_nsec), "{} {clock:?}: {now:?}", path.name);
            assert!(now.tv_sec >= 0, "{} {clock:?}: {now:?}", path.name);
            bracket(path, clock);
        }
        let now = (path.gettimeofday)().unwrap();
        assert!((0..1_000_000).contains(&now.tv_usec), "{}: {now:?}", path.name);
    }
    if oracle::seconds().unwrap() > 0 {
        assert!(vdso_time::time() > 0);
        assert!(vdso_time::try_time().unwrap() > 0);
        assert!(syscall::time().unwrap() > 0);
    } else {
        not_run("the wall clock stands before 1970-01-01 00:00:01");
    }
}

/// The kernel's selftest `correctness`.
#[test]
fn every_id_answers_as_the_kernel_does() {
    for path in &PATHS {
        for id in (0..=11).chain([-1, i32::MIN, i32::MAX]) {
            bracket(path, ClockId::from_raw(id));
        }
    }
}

/// A reading between two of the kernel's is not stale, so repeating it finds a slot that caches a time.
#[test]
fn every_reading_lies_between_two_of_the_kernel() {
    for path in &PATHS {
        for _ in 0..2000 {
            for clock in CLOCKS {
                bracket(path, clock);
            }
            let micros = || (path.gettimeofday)().map(|now| (now.tv_sec, now.tv_usec));
            assert_bracketed(&format!("{} gettimeofday", path.name), true, oracle::micros, micros);
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
    while oracle::seconds() == start {
        for path in &PATHS {
            assert_bracketed(&format!("{} time", path.name), true, oracle::seconds, path.time);
        }
        assert_bracketed("try_time", true, oracle::seconds, vdso_time::try_time);
    }
    for path in &PATHS {
        assert_bracketed(&format!("{} time", path.name), true, oracle::seconds, path.time);
    }
}

/// LTP's clock_gettime04 and vdsotest's `verify`: every way to a clock in turn, and no answer before the last one.
#[test]
fn no_clock_goes_back_from_one_path_to_another() {
    for clock in CLOCKS {
        // Somebody may set the clock back meanwhile; they will not do it three times.
        let tries = if settable(clock.as_raw()) { 3 } else { 1 };
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
            let nanos = now.as_nanos() + cut;
            if nanos < last.1 {
                return Err(format!("{clock:?}, round {round}: {name} {nanos} after {last:?}"));
            }
            last = (name, now.as_nanos());
        }
    }
    Ok(())
}

/// vdsotest's `verify` of clock_getres, and the kernel's selftests `abi` and `clock_getres`.
#[test]
fn a_resolution_is_the_kernels_and_stays() {
    for path in &PATHS {
        for id in (0..=11).chain([-1, i32::MIN, i32::MAX]) {
            let kernel = oracle::clock_getres(id);
            for _ in 0..100 {
                let ours = (path.clock_getres)(ClockId::from_raw(id)).map_err(Errno::raw_os_error);
                assert_eq!(ours, kernel, "{} {:?}", path.name, ClockId::from_raw(id));
            }
        }
        for clock in CLOCKS {
            let resolution = (path.clock_getres)(clock).unwrap();
            assert!(resolution > Timespec::default(), "{} {clock:?}: {resolution:?}", path.name);
        }
    }
}

/// For an auxiliary clock the vDSO says 1 ns without asking whether there is such a clock (Linux 6.17 and later).
#[test]
fn the_resolution_of_an_auxiliary_clock_is_the_vdsos_answer() {
    for clock in (0..8).map(ClockId::aux) {
        let kernel = oracle::clock_getres(clock.as_raw());
        let ours = vdso_time::clock_getres(clock).map_err(Errno::raw_os_error);
        assert!(
            [kernel, Ok(Timespec { tv_sec: 0, tv_nsec: 1 })].contains(&ours),
            "{clock:?}: {ours:?}, {kernel:?}"
        );
        assert_eq!(syscall::clock_getres(clock).map_err(Errno::raw_os_error), kernel, "{clock:?}");
    }
}

/// The kernel's selftest `correctness` of getcpu.
#[test]
fn getcpu_names_the_cpu_that_the_thread_is_pinned_to() {
    let Some(cpus) = allowed_cpus() else { return };
    for cpu in cpus.numbers() {
        if !pin(&cpus, cpu) {
            continue;
        }
        let kernel = oracle::getcpu().unwrap();
        assert_eq!(kernel.0 as usize, cpu);
        for path in &PATHS {
            let Cpu { cpu, node, .. } = (path.getcpu)().unwrap();
            assert_eq!((cpu, node), kernel, "{}", path.name);
        }
    }
}

/// vdsotest's `verify` of getcpu: no answer survives the move to another CPU.
#[test]
fn getcpu_follows_a_thread_that_is_moved() {
    let Some(cpus) = allowed_cpus() else { return };
    let numbers = cpus.numbers();
    let some = &numbers[..numbers.len().min(32)];
    if some.len() == 1 {
        not_run(format!("there is one CPU, {}, and nowhere to move", some[0]));
        return;
    }
    for path in &PATHS {
        for (&from, &to) in some.iter().flat_map(|from| some.iter().map(move |to| (from, to))) {
            for cpu in [from, to] {
                if pin(&cpus, cpu) {
                    assert_eq!(
                        (path.getcpu)().unwrap().cpu as usize,
                        cpu,
                        "{} from {from} to {to}",
                        path.name
                    );
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

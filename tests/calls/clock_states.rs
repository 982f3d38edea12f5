//! Clocks in states that a machine seldom has: past 2038, in a time namespace, with a clock source that is switched meanwhile.

#![allow(unsafe_code, reason = "unshare(2) is called here")]

use test_support::filter;

use std::fs;
use std::io;

use test_support::{
    PATHS, assert_bracketed, child, has_proc, is_required, not_run, not_run_here, oracle, settable,
};
use vdso_time::arch::NATIVE;
use vdso_time::{ClockId, Errno, SystemTime, Timespec, syscall};

/// Every clock without a number of a process or a file in it.
const CLOCKS: std::ops::Range<i32> = 0..12;

/// Every function's answer, on both paths, must be the kernel's.
#[track_caller]
fn assert_all_bracketed() {
    for path in &PATHS {
        let name = path.name;
        for id in CLOCKS {
            let kernel = || oracle::clock_gettime(id);
            let read = || (path.clock_gettime)(ClockId::from_raw(id));
            assert_bracketed(&format!("{name}: clock {id}"), settable(id), kernel, read);
        }
        let micros = || (path.gettimeofday)().map(|now| (now.tv_sec, now.tv_usec));
        assert_bracketed(&format!("{name}: gettimeofday"), true, oracle::micros, micros);
        assert_bracketed(&format!("{name}: time"), true, oracle::seconds, path.time);
    }
}

/// The wall clock stands where the test needs it: cargo xtask boots kernels in 2040.
#[test]
fn past_2038() {
    let kernel = oracle::clock_gettime(libc::CLOCK_REALTIME).unwrap().tv_sec;
    if kernel <= i64::from(i32::MAX) {
        return not_run_here(
            "2040",
            format!("the kernel says {kernel} s since the Epoch, which is before 2038"),
        );
    }
    // 2040 began 2208988800 s after the Epoch: 70 years, of which 18 are leap years.
    let year = 2_208_988_800..2_208_988_800 + 366 * 86_400;
    for path in &PATHS {
        assert!(year.contains(&(path.time)().unwrap()), "{}", path.name);
        assert!(year.contains(&(path.gettimeofday)().unwrap().tv_sec), "{}", path.name);
        for clock in [ClockId::REALTIME, ClockId::REALTIME_COARSE, ClockId::TAI] {
            assert!(year.contains(&(path.clock_gettime)(clock).unwrap().tv_sec), "{}: {clock:?}", path.name);
        }
    }
    assert!(year.contains(&(SystemTime::now().as_nanos() / 1_000_000_000)));
    assert_all_bracketed();
}

/// Past 2038 with nothing but calls of 32 bits: no wrong time, but an error.
#[test]
fn past_2038_without_64_bits() {
    let Some(abi) = NATIVE.filter(|abi| !abi.clock_gettime.time32_syscalls.is_empty()) else {
        return not_run("every call has 64 bits");
    };
    if oracle::clock_gettime(libc::CLOCK_REALTIME).unwrap().tv_sec <= i64::from(i32::MAX) {
        return not_run_here("2040", "it is before 2038");
    }
    for error in [libc::EPERM, libc::ENOSYS] {
        child::forked(|| {
            let calls = abi.functions().into_iter().take(4).flat_map(|(_, function)| function.syscalls);
            let wide: Vec<u32> = calls.map(|call| call.number).collect();
            if let Err(error) = filter::install(&mut filter::denying(abi, &wide, error)) {
                return not_run_here("seccomp", format!("seccomp: {error}"));
            }
            assert_eq!(syscall::clock_gettime(ClockId::REALTIME), Err(Errno::EOVERFLOW));
            assert_eq!(syscall::gettimeofday(), Err(Errno::EOVERFLOW));
            assert_eq!(syscall::time(), Err(Errno::EOVERFLOW));
            // It began to count at boot.
            assert!(syscall::clock_gettime(ClockId::MONOTONIC).is_ok());
            assert!(syscall::clock_getres(ClockId::REALTIME).is_ok());
        });
    }
}

/// include/uapi/linux/sched.h; libc has it not for every target.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// A namespace is its maker's children's (time_namespaces(7)): the vDSO's functions are where they were, its data page is another.
#[test]
fn in_a_time_namespace() {
    if !has_proc() {
        return;
    }
    let before: Vec<Timespec> =
        [ClockId::MONOTONIC, ClockId::BOOTTIME].map(|clock| vdso_time::clock_gettime(clock).unwrap()).into();
    assert_all_bracketed();
    child::forked(|| {
        // SAFETY: it takes a number.
        if unsafe { libc::unshare(CLONE_NEWTIME) } != 0 {
            return not_run_here("timens", format!("unshare: {}", io::Error::last_os_error()));
        }
        let offsets = "monotonic 100000 0\nboottime 200000 0\n";
        if let Err(error) = fs::write("/proc/self/timens_offsets", offsets) {
            return not_run_here("timens", format!("/proc/self/timens_offsets: {error}"));
        }
        child::forked(|| {
            for path in &PATHS {
                let now = |clock| (path.clock_gettime)(clock).unwrap().tv_sec;
                // Not much more than the offset has gone by.
                let (monotonic, boottime) = (now(ClockId::MONOTONIC), now(ClockId::BOOTTIME));
                let shift = [monotonic - before[0].tv_sec - 100_000, boottime - before[1].tv_sec - 200_000];
                assert!(shift.iter().all(|shift| (0..100).contains(shift)), "{}: {shift:?}", path.name);
            }
            assert_all_bracketed();
        });
    });
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// It is the whole system's clock source that is switched, so this is for a system that is there for the test.
#[test]
fn while_the_clock_source_is_switched() {
    let word = "clocksource-switch";
    if !is_required(word) {
        return not_run_here(word, "it would switch the clock source of the whole system");
    }
    let file = |name| format!("{CLOCK_SOURCE}/{name}_clocksource");
    let current = || fs::read_to_string(file("current")).unwrap().trim().to_owned();
    let available = fs::read_to_string(file("available")).unwrap();
    let first = Restored { name: current(), file: file("current") };
    // The slots are filled while the first is there.
    assert_all_bracketed();
    let mut switched = 0;
    let mut last = vdso_time::clock_gettime(ClockId::MONOTONIC);
    for name in available.split_whitespace().chain([&*first.name]) {
        let before = current();
        fs::write(file("current"), name).unwrap();
        // The kernel may know better, and stay with what it has.
        switched += u32::from(current() != before);
        for _ in 0..1000 {
            let now = vdso_time::clock_gettime(ClockId::MONOTONIC);
            assert!(now.is_ok() && last <= now, "{name}: {last:?}, then {now:?}");
            last = now;
        }
        assert_all_bracketed();
    }
    assert!(switched > 0, "the kernel stays with {} of {available}", first.name);
}

/// A clock source that is put back, whatever happens.
struct Restored {
    name: String,
    file: String,
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = fs::write(&self.file, &self.name);
    }
}

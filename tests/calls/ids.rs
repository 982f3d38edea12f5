//! The promise: an id that the kernel does not know is `EINVAL`, one that it makes up as it goes reaches it, and ids and
//! errors print their names.

#![allow(unsafe_code, reason = "libc is asked for the same ids")]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::id;

use test_support::{PATHS, assert_bracketed, not_run, oracle};
use vdso_time::{ClockId, Errno, Timespec, Timeval, arch};

/// A process or file number that is never given: Linux has at most 2^22 processes, and as many files as they open.
const NOBODY: i32 = 200_000_000;

fn tid() -> i32 {
    // SAFETY: gettid(2) takes nothing.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// LTP's clock_gettime02 and clock_getres01, and vdsotest's `abi`.
#[test]
fn an_unknown_id_is_einval() {
    for path in &PATHS {
        for id in [-1, 10, 12, 13, 14, 15, 24, 25, 31, 32, 63, 64, 99, 4095, 65_536, i32::MAX, i32::MIN] {
            let clock = ClockId::from_raw(id);
            assert_eq!((path.clock_gettime)(clock), Err(Errno::EINVAL), "{} clock_gettime({id})", path.name);
            assert_eq!((path.clock_getres)(clock), Err(Errno::EINVAL), "{} clock_getres({id})", path.name);
        }
    }
}

#[test]
fn a_cpu_time_clock_is_the_kernels() {
    let own = id() as i32;
    for clock in [
        ClockId::process_cpu(0),
        ClockId::process_cpu(own),
        ClockId::thread_cpu(0),
        ClockId::thread_cpu(tid()),
        ClockId::PROCESS_CPUTIME,
        ClockId::THREAD_CPUTIME,
    ] {
        for path in &PATHS {
            let kernel = || oracle::clock_gettime(clock.as_raw());
            assert_bracketed(&format!("{} {clock:?}", path.name), false, kernel, || {
                (path.clock_gettime)(clock)
            });
            let before = (path.clock_gettime)(clock).unwrap();
            // The kernel may count CPU time in timer ticks.
            while kernel().unwrap() <= before {}
            assert!((path.clock_gettime)(clock).unwrap() > before, "{} {clock:?} stands still", path.name);
            let resolution = (path.clock_getres)(clock).map_err(Errno::raw_os_error);
            assert_eq!(resolution, oracle::clock_getres(clock.as_raw()), "{} {clock:?}", path.name);
        }
    }
}

#[test]
fn the_clock_of_a_process_or_thread_has_the_id_that_libc_gives_it() {
    let (own, mut process, mut thread) = (id() as i32, 0, 0);
    // SAFETY: libc writes the id there.
    assert_eq!(unsafe { libc::clock_getcpuclockid(own, &raw mut process) }, 0);
    // SAFETY: pthread_self(3) takes nothing.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the thread is this one, and libc writes the id there.
    assert_eq!(unsafe { libc::pthread_getcpuclockid(this, &raw mut thread) }, 0);
    assert_eq!(ClockId::process_cpu(own).as_raw(), process);
    assert_eq!(ClockId::thread_cpu(tid()).as_raw(), thread);
}

#[test]
fn a_clock_of_nobody_fails_as_it_does_in_the_kernel() {
    let open = File::open("/dev/null").unwrap();
    for clock in [
        ClockId::process_cpu(NOBODY),
        ClockId::thread_cpu(NOBODY),
        ClockId::from_fd(NOBODY),
        ClockId::from_fd(open.as_raw_fd()),
        ClockId::thread_cpu(1), // a thread of another process, or no thread at all
    ] {
        let kernel = oracle::clock_gettime(clock.as_raw());
        assert!(kernel.is_err() || id() == 1, "{clock:?}: {kernel:?}");
        for path in &PATHS {
            let ours = (path.clock_gettime)(clock).map_err(Errno::raw_os_error);
            assert_eq!(ours.is_err(), kernel.is_err(), "{} {clock:?}", path.name);
            assert_eq!(ours.err(), kernel.err(), "{} {clock:?}", path.name);
        }
    }
}

#[test]
fn a_hardware_clock_reaches_its_driver() {
    let Ok(device) = File::open("/dev/ptp0") else {
        not_run("/dev/ptp0 cannot be opened");
        return;
    };
    let clock = ClockId::from_fd(device.as_raw_fd());
    for path in &PATHS {
        let kernel = || oracle::clock_gettime(clock.as_raw());
        assert_bracketed(&format!("{} {clock:?}", path.name), true, kernel, || (path.clock_gettime)(clock));
    }
}

macro_rules! named {
    ($($Ours:ident = $libc:ident),* $(,)?) => {
        [$((ClockId::$Ours, libc::$libc, stringify!($libc))),*]
    };
}

#[test]
fn an_id_has_libcs_number_and_prints_libcs_name() {
    for (clock, number, name) in named![
        REALTIME = CLOCK_REALTIME,
        MONOTONIC = CLOCK_MONOTONIC,
        PROCESS_CPUTIME = CLOCK_PROCESS_CPUTIME_ID,
        THREAD_CPUTIME = CLOCK_THREAD_CPUTIME_ID,
        MONOTONIC_RAW = CLOCK_MONOTONIC_RAW,
        REALTIME_COARSE = CLOCK_REALTIME_COARSE,
        MONOTONIC_COARSE = CLOCK_MONOTONIC_COARSE,
        BOOTTIME = CLOCK_BOOTTIME,
        REALTIME_ALARM = CLOCK_REALTIME_ALARM,
        BOOTTIME_ALARM = CLOCK_BOOTTIME_ALARM,
        TAI = CLOCK_TAI,
    ] {
        assert_eq!(clock.as_raw(), number, "{name}");
        assert_eq!(ClockId::from_raw(number), clock, "{name}");
        assert_eq!(format!("{clock:?}"), name);
        assert_eq!(format!("{clock:>26?}"), format!("{name:>26}"));
    }
}

#[test]
fn an_id_without_a_name_prints_what_made_it() {
    for n in 0..8 {
        assert_eq!(format!("{:?}", ClockId::aux(n)), format!("CLOCK_AUX{n}"));
        assert_eq!(ClockId::aux(n).as_raw(), 16 + i32::from(n));
    }
    for number in [0, 1, 42, NOBODY] {
        assert_eq!(format!("{:?}", ClockId::process_cpu(number)), format!("process_cpu({number})"));
        assert_eq!(format!("{:?}", ClockId::thread_cpu(number)), format!("thread_cpu({number})"));
        assert_eq!(format!("{:?}", ClockId::from_fd(number)), format!("from_fd({number})"));
    }
    for id in [10, 12, 15, 24, i32::MAX, i32::MIN, -1] {
        assert_eq!(format!("{:?}", ClockId::from_raw(id)), format!("ClockId({id})"));
    }
}

macro_rules! errors {
    ($($name:ident),* $(,)?) => {
        [$((libc::$name, stringify!($name))),*]
    };
}

/// A name that the crate learns must be added here.
#[test]
fn an_error_prints_libcs_name_for_its_number() {
    let known = errors![
        EPERM, ENOENT, ESRCH, EINTR, EIO, ENXIO, EBADF, EAGAIN, ENOMEM, EACCES, EFAULT, EBUSY, ENODEV,
        EINVAL, ENOTTY, ERANGE, ENOSYS, EOVERFLOW, EOPNOTSUPP,
    ];
    for number in 1..=4095 {
        let error = Errno::from_raw_os_error(number).unwrap();
        assert_eq!(error.raw_os_error(), number);
        let name = known.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
        // The numbers above 34 differ between architectures, and only those that have a table know them.
        let name = name.filter(|_| number <= 34 || arch::NATIVE.is_some());
        let text = name.map_or_else(|| format!("errno {number}"), str::to_owned);
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), text);
    }
    for number in [i32::MIN, -22, -1, 0, 4096, 65_558, i32::MAX] {
        assert_eq!(Errno::from_raw_os_error(number), None);
    }
}

#[test]
fn the_errors_with_a_constant_have_libcs_numbers() {
    assert_eq!(Errno::EPERM.raw_os_error(), libc::EPERM);
    assert_eq!(Errno::EFAULT.raw_os_error(), libc::EFAULT);
    assert_eq!(Errno::EINVAL.raw_os_error(), libc::EINVAL);
    assert_eq!(Errno::ENOSYS.raw_os_error(), libc::ENOSYS);
    assert_eq!(Errno::EOVERFLOW.raw_os_error(), libc::EOVERFLOW);
}

#[cfg(feature = "std")]
#[test]
fn an_error_becomes_the_one_of_std() {
    for number in 1..=4095 {
        let error = std::io::Error::from(Errno::from_raw_os_error(number).unwrap());
        assert_eq!(error.raw_os_error(), Some(number));
        assert_eq!(error.kind(), std::io::Error::from_raw_os_error(number).kind());
    }
}

/// Whatever the fraction: one that is no part of a second too.
#[test]
fn nanoseconds_become_microseconds() {
    for nanos in
        [0, 999, 1000, 999_999_999, -1500, i64::from(u32::MAX), i64::from(u32::MAX) + 1, i64::MAX, i64::MIN]
    {
        let micros = Timeval::from(Timespec { tv_sec: 7, tv_nsec: nanos });
        assert_eq!(micros, Timeval { tv_sec: 7, tv_usec: nanos / 1000 });
    }
}

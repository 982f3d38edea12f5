//! The promise: an id that the kernel makes for a process, thread or file reaches it, and ids and
//! errors print their names.

#![allow(unsafe_code, reason = "libc is asked for the same ids")]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::id;

use test_support::functions::assert_clock_right;
use test_support::nix::{self, unistd::gettid};
use test_support::{PATHS, not_run_here, oracle};
use vdso_time::{ClockId, Errno};

/// The number of no process and no file: Linux has at most 2^22 processes.
const UNUSED: u32 = 200_000_000;

/// The largest number that an id holds.
const MOST: u32 = (1 << 28) - 1;

#[test]
fn a_cpu_time_clock_is_the_kernels() {
    let own = id();
    let thread = gettid().as_raw().unsigned_abs();
    for clock in [
        ClockId::process_cpu(0),
        ClockId::process_cpu(own),
        ClockId::thread_cpu(0),
        ClockId::thread_cpu(thread),
        ClockId::PROCESS_CPUTIME,
        ClockId::THREAD_CPUTIME,
    ] {
        assert_clock_right(clock);
        for path in &PATHS {
            let before = (path.clock_gettime)(clock).unwrap();
            // The kernel may count CPU time in timer ticks.
            while oracle::clock_gettime(clock.as_raw()).unwrap() <= before {}
            assert!(
                (path.clock_gettime)(clock).unwrap() > before,
                "{} {clock:?} stands still",
                path.name
            );
        }
    }
    let mut of_process = 0;
    // SAFETY: libc writes the id there.
    let error = unsafe { libc::clock_getcpuclockid(own as i32, &raw mut of_process) };
    assert_eq!(error, 0);
    assert_eq!(ClockId::process_cpu(own).as_raw(), of_process);
}

#[test]
fn a_clock_of_no_process_or_file_fails_as_it_does_in_the_kernel() {
    let open = File::open("/dev/null").unwrap();
    for clock in [
        ClockId::process_cpu(UNUSED),
        ClockId::thread_cpu(UNUSED),
        ClockId::from_fd(UNUSED as i32),
        ClockId::from_fd(open.as_raw_fd()),
        ClockId::thread_cpu(1), // a thread of another process, or no thread at all
    ] {
        assert!(
            oracle::clock_gettime(clock.as_raw()).is_err() || id() == 1,
            "{clock:?}"
        );
        assert_clock_right(clock);
    }
}

/// Each of these named a clock that exists: -1 the thread's CPU time or a coarse clock, 2^29 this
/// process.
#[test]
fn a_number_that_is_out_of_range_names_no_clock() {
    let mut clocks = vec![];
    for number in [MOST + 1, 1 << 29, 1 << 31, u32::MAX - 1, u32::MAX] {
        clocks.push(ClockId::process_cpu(number));
        clocks.push(ClockId::thread_cpu(number));
        clocks.push(ClockId::from_fd(number as i32));
    }
    for clock in clocks {
        assert_eq!(clock, ClockId::from_raw(i32::MAX));
        for path in &PATHS {
            assert_eq!((path.clock_gettime)(clock), Err(Errno::EINVAL));
        }
    }
    // The largest numbers give the ids of the kernel's macro.
    assert_eq!(ClockId::process_cpu(MOST).as_raw(), i32::MIN | 2);
    assert_eq!(ClockId::thread_cpu(MOST).as_raw(), i32::MIN | 6);
    assert_eq!(ClockId::from_fd(MOST as i32).as_raw(), i32::MIN | 3);
}

#[test]
fn a_hardware_clock_reaches_its_driver() {
    match File::open("/dev/ptp0") {
        Ok(device) => assert_clock_right(ClockId::from_fd(device.as_raw_fd())),
        Err(error) => not_run_here(format!("/dev/ptp0: {error}")),
    }
}

macro_rules! named {
    ($($ours:ident = $libc:ident),* $(,)?) => {
        [$((ClockId::$ours, libc::$libc, stringify!($libc))),*]
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
        assert_eq!(format!("{clock:>26?}"), format!("{name:>26}"));
        assert_eq!(name.parse(), Ok(clock));
    }
    for n in 0..8 {
        assert_eq!(format!("{:?}", ClockId::aux(n)), format!("CLOCK_AUX{n}"));
        assert_eq!(ClockId::aux(n).as_raw(), 16 + i32::from(n));
        assert_eq!(format!("CLOCK_AUX{n}").parse(), Ok(ClockId::aux(n)));
    }
    for unknown in [
        "",
        "CLOCK_",
        "CLOCK_AUX",
        "CLOCK_AUX8",
        "CLOCK_AUX01",
        "clock_tai",
        " CLOCK_TAI",
        "7",
    ] {
        assert!(unknown.parse::<ClockId>().is_err(), "{unknown}");
    }
    for number in [0, 1, 42, UNUSED, MOST] {
        let ids = [
            ClockId::process_cpu(number),
            ClockId::thread_cpu(number),
            ClockId::from_fd(number as i32),
        ];
        let names =
            ["process_cpu", "thread_cpu", "from_fd"].map(|name| format!("{name}({number})"));
        assert_eq!(ids.map(|id| format!("{id:?}")), names);
    }
    for id in [10, 12, 15, 24, i32::MAX, i32::MIN, -1] {
        assert_eq!(
            format!("{:?}", ClockId::from_raw(id)),
            format!("ClockId({id})")
        );
    }
}

macro_rules! errors {
    ($($NAME:ident),* $(,)?) => {
        [$((Errno::$NAME, libc::$NAME, stringify!($NAME))),*]
    };
}

/// Numbers above 34 differ between architectures.
#[test]
fn an_error_prints_libcs_name_and_becomes_the_one_of_std() {
    for number in 1..=4095 {
        let error = Errno::from_raw_os_error(number).unwrap();
        assert_eq!(error.raw_os_error(), number);
        assert_eq!(error.to_string(), format!("{error:?}"));
        let is_named = !error.to_string().starts_with("errno ");
        assert!(is_named || error.to_string() == format!("errno {number}"));
        let names = nix::errno::Errno::from_raw(number);
        assert!(
            !is_named || error.to_string() == format!("{names:?}"),
            "{error}"
        );
        #[cfg(feature = "std")]
        {
            assert_eq!(std::io::Error::from(error).raw_os_error(), Some(number));
            assert_eq!(Errno::try_from(std::io::Error::from(error)).unwrap(), error);
        }
    }
    #[cfg(feature = "std")]
    for other in [
        std::io::Error::from(std::io::ErrorKind::NotFound),
        std::io::Error::from_raw_os_error(0),
    ] {
        let kind = other.kind();
        assert_eq!(Errno::try_from(other).unwrap_err().kind(), kind);
    }
    for number in [i32::MIN, -22, -1, 0, 4096, 65_558, i32::MAX] {
        assert_eq!(Errno::from_raw_os_error(number), None);
    }
    let constants = errors![
        EPERM, ENOENT, ESRCH, EINTR, EIO, ENXIO, EBADF, EAGAIN, ENOMEM, EACCES, EFAULT, EBUSY,
        ENODEV, EINVAL, ENOTTY, ERANGE, ENOSYS, EOVERFLOW, EOPNOTSUPP,
    ];
    for (error, number, name) in constants {
        assert_eq!(error.raw_os_error(), number, "{name}");
        assert_eq!(error.to_string(), name);
    }
    let is_named = |number: &i32| {
        let error = Errno::from_raw_os_error(*number).unwrap();
        !error.to_string().starts_with("errno ")
    };
    assert_eq!((1..=4095).filter(is_named).count(), constants.len());
}

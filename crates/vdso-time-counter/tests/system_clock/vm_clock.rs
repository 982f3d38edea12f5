//! The limits of the true time on a machine that is restored: QEMU's VM clock device, or a file.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use test_support::nix::{sys::stat::Mode, unistd::mkfifo};
use test_support::system_clock::turn;
use test_support::{Need, child, not_run};
use vdso_time_counter::{ClockStatus, realtime_bounded};

use super::true_time::{adjtimex, chronyd, reset};

/// The device, and a field of its page (include/uapi/linux/vmclock-abi.h).
const DEVICE: &str = "/dev/vmclock0";
const MARKER: u64 = 16;

/// Creating this file asks the runner to save and restore the machine
/// (tools/vdso-time-kernel-runner/src/protocol.rs).
const RESTORE: &str = "/restore";

/// In this time, the kernel is asked again.
const LATER: Duration = Duration::from_millis(1_500);

/// The `disruption_marker`, read through the driver (drivers/ptp/ptp_vmclock.c). That gives up if
/// the page changes during the read and 100 ms have passed.
fn marker() -> u64 {
    let device = File::open(DEVICE).unwrap();
    let mut marker = [0; 8];
    while let Err(error) = device.read_exact_at(&mut marker, MARKER) {
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
    u64::from_le_bytes(marker)
}

fn status() -> ClockStatus {
    realtime_bounded().unwrap().status
}

/// A daemon states an error of some milliseconds, each time another one.
fn state(round: i32) {
    adjtimex(|change| {
        chronyd(0, change);
        change.maxerror += libc::c_long::from(round);
    });
}

/// Each status from now on, until the kernel was asked again.
#[track_caller]
fn assert_stays(expected: ClockStatus) {
    let start = Instant::now();
    while start.elapsed() < LATER {
        assert_eq!(status(), expected);
    }
}

#[track_caller]
fn wait_for(expected: ClockStatus) {
    let start = Instant::now();
    while status() != expected {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}, and not {expected:?}", status());
    }
}

#[test]
fn a_restored_machine_has_no_bound_until_an_error_is_stated() {
    let Some(_turn) = turn(Need::VmClock) else { return };
    child::forked(|| {
        let _ = status();
        for round in 1..=3 {
            state(2 * round);
            wait_for(ClockStatus::Synchronized);
            let old = marker();
            File::create(RESTORE).unwrap();
            let start = Instant::now();
            loop {
                // The call comes after the look at the device, so it must know at least as much.
                let is_restored = marker() != old;
                let status = status();
                if is_restored {
                    assert_eq!(status, ClockStatus::Disrupted, "restore {round}");
                    break;
                }
                assert!(start.elapsed() < Duration::from_secs(60), "restore {round}");
            }
            assert_eq!(marker(), old + 1);
            assert_stays(ClockStatus::Disrupted);
            state(2 * round + 1);
            wait_for(ClockStatus::Synchronized);
            assert_stays(ClockStatus::Synchronized);
        }
    });
    // A new process does not know whether an error was stated since.
    child::forked(|| {
        assert_stays(ClockStatus::Disrupted);
        state(100);
        wait_for(ClockStatus::Synchronized);
    });
    reset();
}

/// The page of a VM clock device, as a hypervisor writes it (include/uapi/linux/vmclock-abi.h).
#[test]
fn a_new_disruption_marker_is_seen_at_once() {
    let Some(_turn) = turn(Need::OwnClock) else { return };
    if cfg!(not(feature = "libc")) || fs::exists(DEVICE).unwrap() {
        return not_run(format!("the feature `libc` is missing, or {DEVICE} is real"));
    }
    let mut page = [0; 4096];
    page[..4].copy_from_slice(b"VCLK");
    fs::write(DEVICE, page).unwrap();
    let end = child::end_of(|| {
        state(0);
        assert_eq!(status(), ClockStatus::Synchronized);
        let device = File::options().write(true).open(DEVICE).unwrap();
        for marker in 1..=3 {
            device.write_all_at(&u64::to_le_bytes(marker), MARKER).unwrap();
            assert_stays(ClockStatus::Disrupted);
            state(marker as i32);
            wait_for(ClockStatus::Synchronized);
        }
        true
    });
    reset();
    fs::remove_file(DEVICE).unwrap();
    assert_eq!(end, child::WELL);
}

/// A container has an empty file or a pipe in the place of a device that it hides.
#[test]
fn what_is_not_a_vm_clock_neither_stops_nor_ends_the_process() {
    let Some(_turn) = turn(Need::OwnClock) else { return };
    if fs::exists(DEVICE).unwrap() {
        return not_run(format!("{DEVICE} is real"));
    }
    let create: [fn(); 4] = [
        || fs::write(DEVICE, "").unwrap(),
        || fs::write(DEVICE, "VCLK").unwrap(),
        || fs::create_dir(DEVICE).unwrap(),
        || mkfifo(DEVICE, Mode::S_IRWXU).unwrap(),
    ];
    for create in create {
        create();
        // The first call looks for the device.
        let end = child::end_of(|| {
            let _ = status();
            true
        });
        fs::remove_file(DEVICE).or_else(|_| fs::remove_dir(DEVICE)).unwrap();
        assert_eq!(end, child::WELL);
    }
}

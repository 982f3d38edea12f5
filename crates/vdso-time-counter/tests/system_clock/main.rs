//! The counter clock while root changes the system's clock: its clock source, its rate and its wall
//! time.
//!
//! That concerns the whole system, so these tests run only in one that was started for them. By its
//! name this program runs after all others.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod true_time;
mod vm_clock;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use test_support::nix::{sys::stat::Mode, unistd::mkfifo};
use test_support::system_clock::{SWITCH, read, switch, turn};
use test_support::{child, not_run_here, oracle};
use true_time::{OWN, adjtimex};
use vdso_time_counter::{self as counter, Status};

fn kernel() -> i64 {
    oracle::clock_gettime(libc::CLOCK_MONOTONIC).unwrap().as_nanos() as i64
}

/// Reads until the status is this. A new verdict of the kernel takes up to 10 s of reads, and a
/// calibration some more on a busy machine.
#[track_caller]
fn settle(expected: Status) {
    let start = Instant::now();
    while counter::status() != expected {
        let _ = counter::monotonic();
        let status = counter::status();
        assert!(start.elapsed() < Duration::from_secs(60), "{status:?}, and not {expected:?}");
    }
}

/// Whether the counter is used after calibration; says so if not.
fn is_used() -> bool {
    let start = Instant::now();
    let mut status = counter::status();
    while status != Status::Used && start.elapsed() < Duration::from_secs(5) {
        let _ = counter::monotonic();
        status = counter::status();
    }
    if status != Status::Used {
        not_run_here("counter", format!("the counter is not used: {status}"));
    }
    status == Status::Used
}

/// Changes the kernel's rate by thousandths, in ticks, and by ppm.
fn adjust([tick, ppm]: [i16; 2]) {
    adjtimex(|change| {
        change.modes = libc::ADJ_TICK | libc::ADJ_FREQUENCY;
        change.tick = (10_000 + 10 * tick).into();
        change.freq = (i32::from(ppm) << 16).into();
    });
}

/// A clock that stands still for longer fails.
const STANDSTILL: i64 = 10_000;

#[test]
fn slews_of_ten_percent_keep_the_clock_within_its_bound_and_moving() {
    let Some(_turn) = turn(OWN) else { return };
    let end = child::end_of(|| {
        if !is_used() {
            return true;
        }
        let rates = [[100, 500], [-100, -500], [0, 500], [1, 0], [-83, 0], [0, -500]];
        let (mut last, mut last_since) = (0, kernel());
        let (mut largest, mut longest) = (0, 0);
        for rate in rates.iter().cycle().take(100) {
            adjust(*rate);
            let start = kernel();
            while kernel() - start < 40_000_000 {
                let first = kernel();
                let bound = counter::error_bound();
                let (before, now, after) = (kernel(), counter::monotonic_ordered() as i64, kernel());
                let bound = bound.max(counter::error_bound()) as i64;
                let error = (before - now).max(now - after);
                // If the guest rests between these calls, one segment can err, and the next one
                // mend it: by up to a fifth of the time, from -10 % to +10 %.
                let bound = bound + (kernel() - first) / 5;
                assert!(error <= bound, "{rate:?}: {error} ns, and not {bound}");
                assert!(now >= last, "{rate:?}: {now} after {last}");
                if now > last {
                    (last, last_since) = (now, after);
                }
                assert!(
                    before - last_since <= STANDSTILL,
                    "{rate:?}: it stands still for {} ns",
                    before - last_since
                );
                (largest, longest) = (error.max(largest), (before - last_since).max(longest));
            }
        }
        adjust([0, 0]);
        println!("largest error {largest} ns, longest standstill {longest} ns");
        settle(Status::Used);
        true
    });
    adjust([0, 0]);
    assert_eq!(end, child::WELL);
}

#[test]
fn a_switched_clock_source_is_followed_both_ways() {
    let Some(_turn) = turn(SWITCH) else { return };
    let first = read("current_clocksource");
    let available = read("available_clocksource");
    let Some(other) = available.split_whitespace().find(|name| *name != first) else {
        return not_run_here(SWITCH, format!("the kernel has no clock source but {first}"));
    };
    // A process that is calibrated, and one that starts under the other clock source.
    for is_calibrated in [true, false] {
        let end = child::fork(|| {
            if let Err(status) = counter::check() {
                not_run_here("counter", format!("the counter is not used: {status}"));
                return true;
            }
            if is_calibrated && !is_used() {
                return true;
            }
            switch(other);
            settle(Status::ClockSource);
            switch(&first);
            settle(Status::Used);
            true
        });
        let end = child::wait(end, 2 * child::LIMIT);
        switch(&first);
        assert_eq!(end, child::WELL);
    }
}

/// The VM clock device, and a field of its page (include/uapi/linux/vmclock-abi.h).
const DEVICE: &str = "/dev/vmclock0";
const MARKER: u64 = 16;

/// Creating this file asks the runner to save and restore the machine
/// (crates/vdso-time-kernel-runner/src/protocol.rs).
const RESTORE: &str = "/restore";

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

#[test]
fn a_restored_machine_begins_a_calibration_and_its_clock_stays_right() {
    let Some(_turn) = turn("vmclock") else { return };
    child::forked(|| {
        assert!(is_used(), "{}", counter::status());
        let mut last = 0;
        for round in 1..=3 {
            let (old, before) = (marker(), counter::statistics().calibrations);
            File::create(RESTORE).unwrap();
            let start = Instant::now();
            let (mut restored, mut reads) = (None, 0);
            while restored.is_none()
                || counter::statistics().calibrations == before
                || counter::status() != Status::Used
            {
                let first = counter::error_bound();
                let (earlier, now, later) = (kernel(), counter::monotonic_ordered() as i64, kernel());
                let bound = first.max(counter::error_bound()) as i64;
                let error = (earlier - now).max(now - later);
                assert!(error <= bound, "restore {round}: {error} ns, and not {bound}");
                assert!(now >= last, "restore {round}: {now} after {last}");
                (last, reads) = (now, reads + 1);
                if restored.is_none() && marker() != old {
                    restored = Some(reads);
                }
                assert!(
                    start.elapsed() < Duration::from_secs(60),
                    "restore {round}: {restored:?} of {reads}"
                );
            }
            assert_eq!(marker(), old + 1);
        }
    });
}

/// The page of a VM clock device, as a hypervisor writes it (include/uapi/linux/vmclock-abi.h).
#[test]
fn a_new_disruption_marker_of_a_vm_clock_begins_a_calibration() {
    let Some(_turn) = turn(OWN) else { return };
    if cfg!(not(feature = "libc")) || fs::exists(DEVICE).unwrap() {
        return not_run_here("libc", format!("the feature `libc` is missing, or {DEVICE} is real"));
    }
    let mut page = [0; 4096];
    page[..4].copy_from_slice(b"VCLK");
    fs::write(DEVICE, page).unwrap();
    let end = child::end_of(|| {
        if !is_used() {
            return true;
        }
        let device = File::options().write(true).open(DEVICE).unwrap();
        for marker in 1..=5_u64 {
            let before = counter::statistics().calibrations;
            device.write_all_at(&marker.to_le_bytes(), MARKER).unwrap();
            let start = Instant::now();
            while counter::statistics().calibrations == before {
                let _ = counter::monotonic();
                assert!(start.elapsed() < Duration::from_secs(60), "marker {marker}: no calibration");
            }
            settle(Status::Used);
        }
        true
    });
    fs::remove_file(DEVICE).unwrap();
    assert_eq!(end, child::WELL);
}

/// A container has an empty file or a pipe in the place of a device that it hides.
#[test]
fn what_is_not_a_vm_clock_neither_stops_nor_ends_the_process() {
    let Some(_turn) = turn(OWN) else { return };
    if fs::exists(DEVICE).unwrap() {
        return not_run_here("libc", format!("{DEVICE} is real"));
    }
    let create: [fn(); 4] = [
        || fs::write(DEVICE, "").unwrap(),
        || fs::write(DEVICE, "VCLK").unwrap(),
        || fs::create_dir(DEVICE).unwrap(),
        || mkfifo(DEVICE, Mode::S_IRWXU).unwrap(),
    ];
    for create in create {
        create();
        // The check looks for the device.
        let end = child::end_of(|| {
            let _ = counter::check();
            true
        });
        fs::remove_file(DEVICE).or_else(|_| fs::remove_dir(DEVICE)).unwrap();
        assert_eq!(end, child::WELL);
    }
}

//! The limits of the true time, while the calls of each program that keeps the clock are replayed,
//! root steps it, and a leap second comes.
//!
//! The clock is set wrong by a known time first. The arguments of the calls are those of the
//! programs' sources, which the documentation of `Interval` names.

#![allow(unsafe_code, reason = "adjtimex(2) is called here")]

use std::io;
use std::mem::zeroed;

use test_support::system_clock::turn;
use test_support::{child, oracle};
use vdso_time_counter::{ClockStatus, Interval, realtime_bounded};

/// Whether root may change the system's clock.
pub(super) const OWN: &str = "own-clock";

const MICRO: i64 = 1_000;
pub(super) const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// Changes the system's clock, and returns what the kernel says then (adjtimex(2)).
pub(super) fn adjtimex(prepare: impl FnOnce(&mut libc::timex)) -> libc::timex {
    // SAFETY: every field is a number.
    let mut change: libc::timex = unsafe { zeroed() };
    prepare(&mut change);
    // SAFETY: the call reads and writes one `timex`.
    let status = unsafe { libc::adjtimex(&raw mut change) };
    assert!(status >= 0, "adjtimex: {}", io::Error::last_os_error());
    change
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC_RAW`, by the reads that took the least time.
pub(super) fn wall_offset() -> i64 {
    let read = |id| oracle::clock_gettime(id).unwrap().as_nanos() as i64;
    let measure = |_| {
        let before = read(libc::CLOCK_MONOTONIC_RAW);
        let wall = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC_RAW);
        (after - before, wall - before - (after - before) / 2)
    };
    (0..100).map(measure).min().unwrap().1
}

/// Steps the wall clock. The kernel then sets `STA_UNSYNC`, and `maxerror` to 16 s
/// (kernel/time/ntp.c, `ntp_clear`).
pub(super) fn step(nanos: i64) {
    adjtimex(|change| {
        change.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
        change.time.tv_sec = nanos.div_euclid(SECOND) as _;
        change.time.tv_usec = nanos.rem_euclid(SECOND) as _;
    });
}

/// The true time: that of the wall clock before the first step, and `CLOCK_MONOTONIC_RAW` since,
/// which nobody slews.
pub(super) struct Truth(i64);

impl Truth {
    pub(super) fn of_the_wall_clock() -> Self {
        // If the machine was ever restored, only what is stated after the first call counts.
        let _ = realtime_bounded();
        Self(wall_offset())
    }

    pub(super) fn now(&self) -> i64 {
        self.0 + oracle::clock_gettime(libc::CLOCK_MONOTONIC_RAW).unwrap().as_nanos() as i64
    }

    /// Makes the wall clock fast by so many nanoseconds.
    pub(super) fn set_wrong_by(&self, error: i64) {
        step(self.0 + error - wall_offset());
    }

    /// Fails unless the truth is within the limits.
    pub(super) fn check(&self, what: &str) -> Interval {
        let before = self.now();
        let limits = realtime_bounded().unwrap();
        let after = self.now();
        let [earliest, latest] = nanos(&limits);
        assert!(
            earliest <= after && before <= latest,
            "{what}: {before} to {after}, and not {earliest} to {latest}: {limits:?}"
        );
        limits
    }
}

fn nanos(limits: &Interval) -> [i64; 2] {
    [limits.earliest, limits.latest].map(|limit| limit.as_nanos() as i64)
}

fn width(limits: &Interval) -> i64 {
    let [earliest, latest] = nanos(limits);
    latest.saturating_sub(earliest)
}

/// What a program tells the kernel of a clock that is fast by `error`.
struct Replay {
    program: &'static str,
    error: i64,
    call: fn(i64, &mut libc::timex),
    status: ClockStatus,
    /// The error that the program states, in nanoseconds, with what the kernel has yet to correct.
    stated: i64,
}

/// systemd-timesyncd, `manager_adjust_clock`: a slew.
fn timesyncd(error: i64, change: &mut libc::timex) {
    change.modes = libc::ADJ_STATUS
        | libc::ADJ_NANO
        | libc::ADJ_OFFSET
        | libc::ADJ_TIMECONST
        | libc::ADJ_MAXERROR
        | libc::ADJ_ESTERROR;
    change.status = libc::STA_PLL;
    change.offset = -error as _;
    change.constant = 1;
}

/// ntpd, `local_clock`.
fn ntpd(error: i64, change: &mut libc::timex) {
    timesyncd(error, change);
    change.constant = 6;
    change.maxerror = 12_345;
    change.esterror = 678;
}

/// chronyd, `set_sync_status` of `sys_timex.c`.
pub(super) fn chronyd(error: i64, change: &mut libc::timex) {
    change.modes = libc::ADJ_STATUS | libc::ADJ_MAXERROR | libc::ADJ_ESTERROR;
    change.maxerror = ((error.abs() + 12_345 * MICRO) / MICRO) as _;
    change.esterror = 678;
}

const REPLAYS: &[Replay] = &[
    Replay {
        program: "no program",
        error: 300 * MILLI,
        call: |_, _| {},
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "systemd-timesyncd, a slew",
        error: 300 * MILLI,
        call: timesyncd,
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "systemd-timesyncd, a step",
        error: 0,
        call: |_, change| {
            change.modes = libc::ADJ_STATUS
                | libc::ADJ_NANO
                | libc::ADJ_SETOFFSET
                | libc::ADJ_MAXERROR
                | libc::ADJ_ESTERROR;
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "systemd-timesyncd with the RTC in local time",
        error: -300 * MILLI,
        call: |error, change| {
            timesyncd(error, change);
            change.status |= libc::STA_UNSYNC;
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "phc2sys and ptp4l, sysclk_set_sync",
        error: 300 * MILLI,
        call: |_, change| change.modes = libc::ADJ_STATUS | libc::ADJ_MAXERROR,
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "BusyBox ntpd, older",
        error: 300 * MILLI,
        call: |error, change| {
            change.modes = libc::ADJ_OFFSET | libc::ADJ_STATUS | libc::ADJ_TIMECONST;
            change.status = libc::STA_PLL;
            change.offset = (-error / MICRO) as _;
            change.constant = 1;
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "BusyBox ntpd",
        error: -90_321 * MICRO,
        call: |error, change| {
            ntpd(error / MICRO, change);
            change.modes &= !libc::ADJ_NANO;
            (change.maxerror, change.constant) = (102_777, 2);
        },
        status: ClockStatus::Synchronized,
        stated: (90_321 + 102_777) * MICRO,
    },
    Replay {
        program: "ClockBound, apply_phase_correction",
        error: 70_111 * MICRO,
        call: |error, change| {
            ntpd(error, change);
            (change.maxerror, change.esterror, change.constant) = (71_234, 71_234, 2);
        },
        status: ClockStatus::Synchronized,
        stated: (70_111 + 71_234) * MICRO,
    },
    Replay {
        program: "ntpd, before it is synchronized",
        error: 300 * MILLI,
        call: |_, change| {
            ntpd(0, change);
            change.status |= libc::STA_UNSYNC;
            (change.maxerror, change.esterror) = (16_000_000, 16_000_000);
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "ntpd, a slew",
        error: 100 * MILLI,
        call: ntpd,
        status: ClockStatus::Synchronized,
        stated: 112_345 * MICRO,
    },
    Replay {
        program: "ntpd, a slew, in microseconds and as fast as the kernel can",
        error: -120 * MILLI,
        call: |error, change| {
            ntpd(error / MICRO, change);
            change.modes = (change.modes & !libc::ADJ_NANO) | libc::ADJ_MICRO;
            (change.maxerror, change.constant) = (12_101, -4);
        },
        status: ClockStatus::Synchronized,
        stated: 132_101 * MICRO,
    },
    Replay {
        program: "ntpd with the kernel's PPS",
        error: 0,
        call: |error, change| {
            ntpd(error, change);
            change.status |= libc::STA_PPSTIME | libc::STA_PPSFREQ;
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
    Replay {
        program: "chronyd with rtcsync",
        error: -80_123 * MICRO,
        call: chronyd,
        status: ClockStatus::Synchronized,
        stated: 92_468 * MICRO,
    },
    Replay {
        program: "chronyd without rtcsync",
        error: 80_321 * MICRO,
        call: |error, change| {
            chronyd(error, change);
            change.status = libc::STA_UNSYNC;
        },
        status: ClockStatus::FreeRunning,
        stated: 92_666 * MICRO,
    },
    Replay {
        program: "chronyd with rtcsync, while it slews",
        error: 80_432 * MICRO,
        call: |error, change| {
            chronyd(error, change);
            change.modes |= libc::ADJ_TICK;
            change.tick = 10_000 - 833;
        },
        status: ClockStatus::Synchronized,
        stated: 92_777 * MICRO,
    },
    Replay {
        program: "chronyd without a source",
        error: 300 * MILLI,
        call: |_, change| {
            chronyd(0, change);
            change.status = libc::STA_UNSYNC;
            (change.maxerror, change.esterror) = (16_000_000, 16_000_000);
        },
        status: ClockStatus::Unknown,
        stated: 0,
    },
];

/// Ends what a replay left in the kernel: a slew, a pending correction, a leap second.
pub(super) fn reset() {
    adjtimex(|change| {
        change.modes = libc::ADJ_TICK | libc::ADJ_FREQUENCY | libc::ADJ_STATUS | libc::ADJ_OFFSET;
        change.tick = 10_000;
        change.status = libc::STA_PLL | libc::STA_UNSYNC;
    });
    adjtimex(|change| {
        change.modes = libc::ADJ_STATUS;
        change.status = libc::STA_UNSYNC;
    });
}

#[test]
fn the_true_time_is_within_the_limits_under_each_program_that_keeps_the_clock() {
    let Some(_turn) = turn(OWN) else { return };
    child::forked(|| {
        let truth = Truth::of_the_wall_clock();
        let mut replies = Vec::new();
        for Replay { program, error, call, status, stated } in REPLAYS {
            truth.set_wrong_by(*error);
            adjtimex(|change| call(*error, change));
            // The kernel is asked once a second. The answers before that are of the call before.
            let (start, mut samples) = (truth.now(), 0);
            let mut limits = truth.check(program);
            while truth.now() - start < 1_500 * MILLI {
                limits = truth.check(program);
                samples += 1;
            }
            let width = width(&limits);
            println!("{program}: {:?}, {} us wide, {samples} samples", limits.status, width / MICRO);
            replies.push((program, limits.status, *status));
            // What the kernel slews by `tick` in a second adds to it.
            let is_slewing = program.contains("while it slews");
            let most = 2 * (stated * 4 / 3 + if is_slewing { 100 * MILLI } else { 10 * MILLI });
            if *stated > 0 {
                assert!(width < most, "{program}: {width} ns wide, and not {most}");
            }
            reset();
        }
        truth.set_wrong_by(0);
        for (program, status, expected) in replies {
            assert_eq!(status, expected, "{program}");
        }
    });
}

#[test]
fn the_true_time_is_within_the_limits_while_root_steps_the_wall_clock() {
    let Some(_turn) = turn(OWN) else { return };
    child::forked(|| {
        let truth = Truth::of_the_wall_clock();
        for (error, round) in [100, -100, 0, 700, 0].into_iter().zip(1..) {
            truth.set_wrong_by(error * MILLI);
            // Unlike the last one and some times 500 us, so that it is surely a statement.
            adjtimex(|change| {
                chronyd(error * MILLI, change);
                change.maxerror += round;
            });
            let (start, mut narrow) = (truth.now(), 0);
            // The kernel is asked once a second, and an emulated machine may be slow.
            while narrow <= 10 {
                let limits = truth.check("a step");
                narrow += u32::from(width(&limits) < (2 * error.abs() + 50) * MILLI);
                assert!(truth.now() - start < 20 * SECOND, "{error} ms: the kernel was not asked again");
            }
        }
        reset();
    });
}

/// The kernel inserts a second by a step back at midnight. Until the daemon has cleared the flag,
/// it would do so each day.
#[test]
fn no_bound_is_known_near_a_leap_second() {
    const DAY: i64 = 86_400 * SECOND;
    let Some(_turn) = turn(OWN) else { return };
    child::forked(|| {
        let truth = Truth::of_the_wall_clock();
        let midnight = (truth.now() / DAY + 1) * DAY;
        // The wall clock is right by a truth that begins five seconds before midnight.
        let truth = Truth(truth.0 + midnight - 5 * SECOND - truth.now());
        truth.set_wrong_by(0);
        adjtimex(|change| {
            chronyd(0, change);
            change.status = libc::STA_INS;
        });
        let (mut before, mut near, mut after) = (0, 0, 0);
        while truth.now() < midnight + 6 * SECOND {
            // Around midnight it is not one time, so `check` is not called.
            let earlier = truth.now() - midnight;
            let limits = realtime_bounded().unwrap();
            let later = truth.now() - midnight;
            let is_bounded = limits.status.is_bounded();
            if earlier >= -SECOND && later < 2 * SECOND {
                assert!(!is_bounded, "{earlier} to {later} ns after midnight: {limits:?}");
                near += 1;
            } else if is_bounded {
                // After the inserted second, the wall clock is a second behind.
                let inserted = if earlier < 0 { 0 } else { SECOND };
                let [earliest, latest] = nanos(&limits).map(|limit| limit - midnight + inserted);
                assert!(
                    earliest <= later && earlier <= latest,
                    "{earlier} to {later}, and not {earliest} to {latest} ns after midnight"
                );
                *(if earlier < 0 { &mut before } else { &mut after }) += 1;
            }
        }
        reset();
        truth.set_wrong_by(0);
        assert!(before > 10 && near > 10 && after > 10, "{before} {near} {after}");
        println!("{before} samples before, {near} near, {after} after");
    });
}

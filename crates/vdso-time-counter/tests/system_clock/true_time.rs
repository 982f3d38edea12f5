//! The limits of the true time, while the calls of each program that keeps the clock are replayed,
//! root steps it, and a leap second comes.
//!
//! The clock is set wrong by a known time first. The arguments of the calls are those of the
//! programs' sources, which the documentation of `Interval` names.

#![allow(unsafe_code, reason = "adjtimex(2) is called here")]

use std::io;
use std::mem::zeroed;
use std::thread::sleep;
use std::time::Duration;

use libc::{
    ADJ_ESTERROR, ADJ_FREQUENCY, ADJ_MAXERROR, ADJ_MICRO, ADJ_NANO, ADJ_OFFSET, ADJ_SETOFFSET, ADJ_STATUS,
    ADJ_TICK, ADJ_TIMECONST, STA_INS, STA_PLL, STA_PPSFREQ, STA_PPSTIME, STA_UNSYNC, timex,
};
use test_support::system_clock::turn;
use test_support::{Need, child, oracle};
use vdso_time_counter::ClockStatus::{Disrupted, FreeRunning, Synchronized, Unknown};
use vdso_time_counter::{ClockStatus, Interval, realtime_bounded};

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

/// Between samples, so that an emulated machine does not keep a CPU busy.
const PAUSE: Duration = Duration::from_millis(1);

/// Changes the system's clock (adjtimex(2)).
pub(super) fn adjtimex(prepare: impl FnOnce(&mut timex)) {
    // SAFETY: every field is a number.
    let mut change: timex = unsafe { zeroed() };
    prepare(&mut change);
    // SAFETY: the call reads and writes one `timex`.
    let status = unsafe { libc::adjtimex(&raw mut change) };
    assert!(status >= 0, "adjtimex: {}", io::Error::last_os_error());
}

/// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC_RAW`, by the reads that took the least time.
fn wall_offset() -> i64 {
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
fn step(nanos: i64) {
    adjtimex(|change| {
        change.modes = ADJ_SETOFFSET | ADJ_NANO;
        change.time.tv_sec = nanos.div_euclid(SECOND) as _;
        change.time.tv_usec = nanos.rem_euclid(SECOND) as _;
    });
}

/// The true time: that of the wall clock before the first step, and `CLOCK_MONOTONIC_RAW` since,
/// which nobody slews.
struct Truth(i64);

impl Truth {
    fn of_the_wall_clock() -> Self {
        // If the machine was ever restored, only what is stated after the first call counts.
        let _ = realtime_bounded();
        Self(wall_offset())
    }

    fn now(&self) -> i64 {
        self.0 + oracle::clock_gettime(libc::CLOCK_MONOTONIC_RAW).unwrap().as_nanos() as i64
    }

    /// Makes the wall clock fast by so many nanoseconds.
    fn set_wrong_by(&self, error: i64) {
        step(self.0 + error - wall_offset());
    }

    /// Fails unless the truth is within the limits.
    fn check(&self, what: &str) -> Interval {
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

/// Writes an error, and whether the clock is synchronized.
const STATES: u32 = ADJ_STATUS | ADJ_MAXERROR | ADJ_ESTERROR;
/// Makes the kernel correct its clock by `offset`.
const SLEWS: u32 = ADJ_OFFSET | ADJ_TIMECONST;

/// chronyd, `set_sync_status` of `sys_timex.c`.
pub(super) fn chronyd(error: i64, change: &mut timex) {
    change.modes = STATES;
    (change.maxerror, change.esterror) = ((error.abs() / MICRO + 12_345) as _, 678);
}

fn chronyd_without_rtcsync(error: i64, change: &mut timex) {
    chronyd(error, change);
    change.status = STA_UNSYNC;
}

fn chronyd_without_source(_: i64, change: &mut timex) {
    chronyd_without_rtcsync(0, change);
    (change.maxerror, change.esterror) = (16_000_000, 16_000_000);
}

fn chronyd_that_slews(error: i64, change: &mut timex) {
    chronyd(error, change);
    change.modes |= ADJ_TICK;
    change.tick = 10_000 - 833;
}

/// systemd-timesyncd, `manager_adjust_clock`: a slew.
fn timesyncd(error: i64, change: &mut timex) {
    change.modes = STATES | SLEWS | ADJ_NANO;
    (change.status, change.offset, change.constant) = (STA_PLL, -error as _, 1);
}

/// The same with the RTC in local time.
fn timesyncd_local(error: i64, change: &mut timex) {
    timesyncd(error, change);
    change.status |= STA_UNSYNC;
}

fn old_busybox(error: i64, change: &mut timex) {
    timesyncd(error / MICRO, change);
    change.modes = ADJ_STATUS | SLEWS;
}

/// ntpd, `local_clock`.
fn ntpd(error: i64, change: &mut timex) {
    timesyncd(error, change);
    (change.maxerror, change.esterror, change.constant) = (12_345, 678, 6);
}

/// The same before it is synchronized.
fn ntpd_without_source(_: i64, change: &mut timex) {
    ntpd(0, change);
    change.status |= STA_UNSYNC;
    (change.maxerror, change.esterror) = (16_000_000, 16_000_000);
}

/// The same in microseconds, and as fast as the kernel can.
fn fast_ntpd(error: i64, change: &mut timex) {
    ntpd(error / MICRO, change);
    change.modes = (change.modes & !ADJ_NANO) | ADJ_MICRO;
    (change.maxerror, change.constant) = (12_101, -4);
}

fn ntpd_with_pps(error: i64, change: &mut timex) {
    ntpd(error, change);
    change.status |= STA_PPSTIME | STA_PPSFREQ;
}

fn busybox(error: i64, change: &mut timex) {
    ntpd(error / MICRO, change);
    change.modes &= !ADJ_NANO;
    (change.maxerror, change.constant) = (102_777, 2);
}

/// ClockBound, `apply_phase_correction`.
fn clockbound(error: i64, change: &mut timex) {
    ntpd(error, change);
    (change.maxerror, change.esterror, change.constant) = (71_234, 71_234, 2);
}

/// What a program tells the kernel of a clock that is fast by so many microseconds. Then the
/// status, and the stated error in microseconds, with what the kernel has yet to correct.
type Replay = (&'static str, fn(i64, &mut timex), i64, ClockStatus, i64);

const REPLAYS: &[Replay] = &[
    ("no program", |_, _| {}, 300_000, Unknown, 0),
    ("timesyncd, a slew", timesyncd, 300_000, Unknown, 0),
    ("timesyncd, a step", |_, to| to.modes = STATES | ADJ_NANO | ADJ_SETOFFSET, 0, Unknown, 0),
    ("timesyncd with the RTC in local time", timesyncd_local, -300_000, Unknown, 0),
    ("phc2sys and ptp4l", |_, to| to.modes = ADJ_STATUS | ADJ_MAXERROR, 300_000, Unknown, 0),
    ("BusyBox ntpd, older", old_busybox, 300_000, Unknown, 0),
    ("BusyBox ntpd", busybox, -90_321, Synchronized, 90_321 + 102_777),
    ("ClockBound", clockbound, 70_111, Synchronized, 70_111 + 71_234),
    ("ntpd, before it is synchronized", ntpd_without_source, 300_000, Unknown, 0),
    ("ntpd, a slew", ntpd, 100_000, Synchronized, 100_000 + 12_345),
    ("ntpd, a slew in microseconds", fast_ntpd, -120_000, Synchronized, 120_000 + 12_101),
    ("ntpd with the kernel's PPS", ntpd_with_pps, 0, Unknown, 0),
    ("chronyd with rtcsync", chronyd, -80_123, Synchronized, 80_123 + 12_345),
    ("chronyd without rtcsync", chronyd_without_rtcsync, 80_321, FreeRunning, 80_321 + 12_345),
    ("chronyd, a slew by `tick`", chronyd_that_slews, 80_432, Synchronized, 80_432 + 12_345),
    ("chronyd without a source", chronyd_without_source, 300_000, Unknown, 0),
];

/// Ends what a replay left in the kernel: a slew, a pending correction, a leap second.
pub(super) fn reset() {
    adjtimex(|change| {
        change.modes = ADJ_TICK | ADJ_FREQUENCY | ADJ_STATUS | ADJ_OFFSET;
        change.tick = 10_000;
        change.status = STA_PLL | STA_UNSYNC;
    });
    adjtimex(|change| (change.modes, change.status) = (ADJ_STATUS, STA_UNSYNC));
}

#[test]
fn the_true_time_is_within_the_limits_under_each_program_that_keeps_the_clock() {
    let Some(_turn) = turn(Need::OwnClock) else { return };
    child::forked(|| {
        let truth = Truth::of_the_wall_clock();
        let mut replies = Vec::new();
        for &(program, call, error, expected, stated) in REPLAYS {
            truth.set_wrong_by(error * MICRO);
            adjtimex(|change| call(error * MICRO, change));
            // The kernel is asked once a second. The answers before that are of the call before.
            let (start, mut samples) = (truth.now(), 0);
            let mut limits = truth.check(program);
            while truth.now() - start < 1_500 * MILLI {
                sleep(PAUSE);
                limits = truth.check(program);
                samples += 1;
            }
            let width = width(&limits);
            println!("{program}: {:?}, {} us wide, {samples} samples", limits.status, width / MICRO);
            replies.push((program, limits.status, expected));
            // What the kernel slews by `tick` in a second adds to it.
            let slewed = if program.contains("by `tick`") { 100 * MILLI } else { 10 * MILLI };
            let most = 2 * (stated * MICRO * 4 / 3 + slewed);
            assert!(stated == 0 || width < most, "{program}: {width} ns wide, and not {most}");
            reset();
        }
        truth.set_wrong_by(0);
        for (program, status, expected) in replies {
            // A step by a program that states what was stated before looks like a resume.
            let looks_resumed = expected == Unknown && status == Disrupted;
            assert!(looks_resumed || status == expected, "{program}: {status:?}, and not {expected:?}");
        }
    });
}

#[test]
fn the_true_time_is_within_the_limits_while_root_steps_the_wall_clock() {
    let Some(_turn) = turn(Need::OwnClock) else { return };
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
                sleep(PAUSE);
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
    let Some(_turn) = turn(Need::OwnClock) else { return };
    child::forked(|| {
        let truth = Truth::of_the_wall_clock();
        let midnight = (truth.now() / DAY + 1) * DAY;
        // The wall clock is right by a truth that begins five seconds before midnight.
        let truth = Truth(truth.0 + midnight - 5 * SECOND - truth.now());
        truth.set_wrong_by(0);
        adjtimex(|change| {
            chronyd(0, change);
            change.status = STA_INS;
        });
        let (mut before, mut near, mut after) = (0, 0, 0);
        while truth.now() < midnight + 6 * SECOND {
            sleep(PAUSE);
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

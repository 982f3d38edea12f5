//! The promise: `SystemTime` has std's range, and every operation has std's result or, where std
//! panics, a panic. `tests/calls/instant.rs` has the arithmetic of an `Instant`.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod cases;

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, SystemTime as StdSystemTime, UNIX_EPOCH};

use cases::check;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use vdso_time::{RealtimeCoarse, SystemTime, Timespec};

const NANOS_PER_SEC: u32 = 1_000_000_000;

/// Chooses nanoseconds below a second, often next to 0 or to a second.
fn nanos() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(NANOS_PER_SEC - 1), 0..NANOS_PER_SEC]
}

/// Chooses seconds of any size, often next to 0 or to an end of 64 bits, in seconds or nanoseconds.
fn seconds() -> impl Strategy<Value = i64> {
    let ends = prop_oneof![
        Just(0),
        Just(i64::MAX),
        Just(i64::MIN),
        Just(i64::MAX / i64::from(NANOS_PER_SEC)),
        Just(i64::MIN / i64::from(NANOS_PER_SEC)),
        Just(253_402_300_799),
    ];
    prop_oneof![
        any::<i64>(),
        (ends, -3..=3_i64).prop_map(|(end, near)| end.saturating_add(near)),
        (any::<i64>(), 0..63_u32).prop_map(|(seconds, shift)| seconds >> shift),
    ]
}

fn durations() -> impl Strategy<Value = Duration> {
    let seconds = prop_oneof![seconds().prop_map(i64::unsigned_abs), any::<u64>()];
    (seconds, nanos()).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
}

/// Returns the same time as both types, each made from the digits in its own way.
fn times() -> impl Strategy<Value = (SystemTime, StdSystemTime)> {
    (seconds(), nanos()).prop_map(|(tv_sec, nanos)| {
        let ours = Timespec {
            tv_sec,
            tv_nsec: nanos.into(),
        }
        .try_into()
        .unwrap();
        let seconds = Duration::from_secs(tv_sec.unsigned_abs());
        let std = if tv_sec < 0 {
            UNIX_EPOCH - seconds
        } else {
            UNIX_EPOCH + seconds
        };
        (ours, std + Duration::from_nanos(nanos.into()))
    })
}

/// Compares the printed forms of both types, which contain every digit of a time.
fn assert_same(ours: SystemTime, std: StdSystemTime) {
    assert_eq!(format!("{ours:?} {ours:#?}"), format!("{std:?} {std:#?}"));
}

/// Returns what an operation returns, or the text of its panic.
fn outcome<T>(operation: impl FnOnce() -> T) -> Result<T, String> {
    let panic = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().expect("a text")).into(),
    };
    panic::catch_unwind(AssertUnwindSafe(operation)).map_err(panic)
}

/// Compares an operation in std and here. Returns whether it overflowed.
fn both(ours: Result<SystemTime, String>, std: Result<StdSystemTime, String>) -> bool {
    match (ours, std) {
        (Ok(ours), Ok(std)) => assert_same(ours, std),
        (Err(ours), Err(std)) => {
            assert_eq!(ours, std);
            return true;
        }
        (ours, std) => panic!("{ours:?}, and not {std:?}"),
    }
    false
}

/// Runs without printing the panics: they are expected, and there are thousands.
fn without_their_texts<T>(run: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    result.unwrap_or_else(|panic| panic!("{:?}", panic.downcast_ref::<String>()))
}

#[test]
fn a_moved_system_time_is_that_of_std_or_panics_as_std() {
    let cases = (times(), durations());
    let overflow = without_their_texts(|| {
        check(20_000, &cases, |((ours, std), distance)| {
            assert_same(ours, std);
            let added = both(outcome(|| ours + distance), outcome(|| std + distance));
            let subtracted = both(outcome(|| ours - distance), outcome(|| std - distance));
            let mut later = ours;
            let mut earlier = ours;
            assert_eq!(outcome(|| later += distance).is_err(), added);
            assert_eq!(outcome(|| earlier -= distance).is_err(), subtracted);
            assert_eq!(ours.checked_add(distance), (!added).then_some(later));
            assert_eq!(ours.checked_sub(distance), (!subtracted).then_some(earlier));
            let of_timespec =
                |tv_sec, tv_nsec| SystemTime::from_timespec(Timespec { tv_sec, tv_nsec }).unwrap();
            let first = of_timespec(i64::MIN, 0);
            let last = of_timespec(i64::MAX, 999_999_999);
            assert_eq!(
                ours.saturating_add(distance),
                if added { last } else { later }
            );
            assert_eq!(
                ours.saturating_sub(distance),
                if subtracted { first } else { earlier }
            );
            added || subtracted
        })
    });
    assert!((0.1..0.9).contains(&overflow), "{overflow}");
}

/// Divides nanoseconds in 128 bits, which are exact, as the oracle.
#[test]
fn whole_units_are_the_nanoseconds_rounded_down_and_saturate() {
    check(20_000, &times(), |(time, _)| {
        let nanos = time.as_nanos();
        let unit = |size| {
            nanos
                .div_euclid(size)
                .clamp(i64::MIN.into(), i64::MAX.into())
        };
        assert_eq!(i128::from(time.as_secs()), nanos.div_euclid(1_000_000_000));
        assert_eq!(
            i128::from(time.subsec_nanos()),
            nanos.rem_euclid(1_000_000_000)
        );
        assert_eq!(i128::from(time.as_millis()), unit(1_000_000));
        assert_eq!(i128::from(time.as_micros()), unit(1_000));
        assert_eq!(SystemTime::from_nanos(nanos), time);
        true
    });
    let too_late = (i128::from(i64::MAX) + 1) * 1_000_000_000;
    without_their_texts(|| {
        assert!(outcome(|| SystemTime::from_nanos(too_late)).is_err());
        assert!(outcome(|| SystemTime::from_nanos(too_late - 1)).is_ok());
    });
}

#[test]
fn every_system_time_of_std_converts_and_back() {
    check(20_000, &times(), |(ours, std)| {
        assert_eq!(
            (SystemTime::from(std), StdSystemTime::from(ours)),
            (ours, std)
        );
        let coarse = SystemTime::<RealtimeCoarse>::try_from(Timespec::from(ours)).unwrap();
        assert_eq!(StdSystemTime::from(coarse), std);
        true
    });
}

#[test]
fn the_order_and_the_distance_of_two_system_times_are_those_of_std() {
    let later = check(
        20_000,
        &(times(), times()),
        |((ours, std), (our_other, std_other))| {
            assert_eq!(ours.cmp(&our_other), std.cmp(&std_other));
            assert_eq!(
                (ours == our_other, ours < our_other),
                (std == std_other, std < std_other)
            );
            let here = ours
                .duration_since(our_other)
                .map_err(|error| error.duration());
            let there = std
                .duration_since(std_other)
                .map_err(|error| error.duration());
            assert_eq!(here, there);
            here.is_ok()
        },
    );
    assert!((0.3..0.7).contains(&later), "{later}");
}

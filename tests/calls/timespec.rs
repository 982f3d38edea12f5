//! The promise: a `Timespec` converts exactly or to an error.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use vdso_time::{Errno, Instant, SystemTime, Tai, Timespec, Timeval};

const fn time(seconds: i64, nanos: i64) -> Timespec {
    Timespec {
        tv_sec: seconds,
        tv_nsec: nanos,
    }
}

/// The last nanosecond of 64 bits, and the first: in 2262 and in 1677.
const LAST: Timespec = time(9_223_372_036, 854_775_807);
const FIRST: Timespec = time(-9_223_372_037, 145_224_192);

#[test]
fn nanoseconds_and_digits_are_exact() {
    for (time, nanos, digits) in [
        (time(0, 0), 0, "0.000000000"),
        (time(0, 1), 1, "0.000000001"),
        (time(-1, 999_999_999), -1, "-0.000000001"),
        (time(2, 5), 2_000_000_005, "2.000000005"),
        (time(-1, 0), -1_000_000_000, "-1.000000000"),
        (time(-3, 999_999_999), -2_000_000_001, "-2.000000001"),
        (
            time(1_700_000_000, 123_456_789),
            1_700_000_000_123_456_789,
            "1700000000.123456789",
        ),
        (LAST, i64::MAX, "9223372036.854775807"),
        (FIRST, i64::MIN, "-9223372036.854775808"),
    ] {
        assert_eq!(time.as_nanos(), nanos.into());
        assert_eq!(Timespec::from_nanos(nanos), time);
        assert_eq!(time.to_string(), digits);
        assert_eq!(
            SystemTime::try_from(time),
            Ok(SystemTime::<Tai>::from_clock_nanos(nanos.into()))
        );
        assert_eq!(
            SystemTime::<Tai>::from_clock_nanos(nanos.into()).as_nanos(),
            nanos.into()
        );
        assert_eq!(Instant::try_from(time), Ok(Instant::from_nanos(nanos)));
        assert_eq!(Timespec::from(Instant::from_nanos(nanos)), time);
        assert_eq!(
            Timespec::from(SystemTime::<Tai>::from_clock_nanos(nanos.into())),
            time
        );
    }
    assert_eq!(
        time(i64::MAX, 999_999_999).to_string(),
        "9223372036854775807.999999999"
    );
    assert_eq!(
        time(i64::MIN, 0).to_string(),
        "-9223372036854775808.000000000"
    );
}

#[test]
fn a_timespec_that_does_not_fit_is_an_error() {
    for (time, nanos) in [
        (
            time(LAST.tv_sec, LAST.tv_nsec + 1),
            i128::from(i64::MAX) + 1,
        ),
        (
            time(i64::MAX, 999_999_999),
            (i128::from(i64::MAX) + 1) * 1_000_000_000 - 1,
        ),
        (time(32_503_680_000, 0), 32_503_680_000_000_000_000),
        (
            time(FIRST.tv_sec, FIRST.tv_nsec - 1),
            i128::from(i64::MIN) - 1,
        ),
        (time(i64::MIN, 0), i128::from(i64::MIN) * 1_000_000_000),
    ] {
        assert_eq!(
            Instant::<Tai>::try_from(time),
            Err(Errno::EOVERFLOW),
            "{time}"
        );
        assert_eq!(time.as_nanos(), nanos, "{time}");
        let here = SystemTime::<Tai>::try_from(time);
        assert_eq!(
            here.map(|here| (here.as_nanos(), here.into())),
            Ok((nanos, time)),
            "{time}"
        );
    }
    for nanos in [
        -1,
        1_000_000_000,
        i64::from(u32::MAX) + 1,
        i64::MAX,
        i64::MIN,
    ] {
        assert_eq!(
            SystemTime::<Tai>::try_from(time(7, nanos)),
            Err(Errno::EINVAL),
            "{nanos}"
        );
        assert_eq!(
            Instant::<Tai>::try_from(time(7, nanos)),
            Err(Errno::EINVAL),
            "{nanos}"
        );
        assert_eq!(
            Duration::try_from(time(7, nanos)),
            Err(Errno::EINVAL),
            "{nanos}"
        );
    }
    for too_long in [Duration::new(1 << 63, 0), Duration::MAX] {
        assert_eq!(Timespec::try_from(too_long), Err(Errno::EOVERFLOW));
    }
    for negative in [time(-1, 999_999_999), time(-1, 0), time(i64::MIN, 0)] {
        assert_eq!(Duration::try_from(negative), Err(Errno::EOVERFLOW));
    }
}

#[test]
fn a_moved_timespec_is_exact_or_none() {
    let second = Duration::from_secs(1);
    for (start, duration, later) in [
        (
            time(1, 999_999_999),
            Duration::from_nanos(1),
            Some(time(2, 0)),
        ),
        (
            time(-1, 0),
            Duration::from_millis(1500),
            Some(time(0, 500_000_000)),
        ),
        (
            time(i64::MIN, 0),
            Duration::MAX,
            Some(time(i64::MAX, 999_999_999)),
        ),
        (time(i64::MAX, 0), second, None),
    ] {
        assert_eq!(start.checked_add(duration), later, "{start} + {duration:?}");
        let Some(later) = later else { continue };
        let mut moved = start;
        moved += duration;
        assert_eq!((start + duration, moved), (later, later));
        moved -= duration;
        assert_eq!((later - duration, moved), (start, start));
        assert_eq!(later.checked_duration_since(start), Some(duration));
        assert_eq!(start.checked_duration_since(later), None);
    }
    assert_eq!(time(i64::MIN, 0).checked_sub(second), None);
    // Out-of-range nanoseconds are carried into the seconds.
    assert_eq!(time(0, 2_000_000_000) + second, time(3, 0));
    let first = time(i64::MIN, i64::MIN);
    let far = time(i64::MAX, i64::MAX).checked_duration_since(first);
    assert_eq!(far, None);
    let most = Duration::new(u64::MAX, 999_999_999);
    let last = time(i64::MAX, 999_999_999);
    assert_eq!(last.checked_duration_since(time(i64::MIN, 0)), Some(most));
}

/// The times in order, each row with the same time in other fields.
const ORDERED: [[(i64, i64); 3]; 4] = [
    [(-2, 999_999_999), (-1, -1), (-3, 1_999_999_999)],
    [(0, 0), (-1, 1_000_000_000), (1, -1_000_000_000)],
    [(0, 1), (-1, 1_000_000_001), (1, -999_999_999)],
    [(2, 5), (0, 2_000_000_005), (3, -999_999_995)],
];

fn hash(time: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    time.hash(&mut hasher);
    hasher.finish()
}

fn assert_ordered<T: Ord + Hash + Debug>(a: &T, b: &T, expected: Ordering) {
    assert_eq!(a.cmp(b), expected, "{a:?} {b:?}");
    assert_eq!(a.partial_cmp(b), Some(expected));
    assert_eq!(a == b, expected.is_eq());
    assert_eq!(hash(a) == hash(b), expected.is_eq());
}

#[test]
fn times_of_the_same_value_are_equal_whatever_their_fields_are() {
    let micros = |tv_sec, nanos: i64| Timeval {
        tv_sec,
        tv_usec: nanos * 1_000_000 / 1_000_000_000,
    };
    for (n, a) in ORDERED.iter().enumerate() {
        for (m, b) in ORDERED.iter().enumerate() {
            for (a, b) in a.iter().zip(b.iter().rev()) {
                let expected = n.cmp(&m);
                assert_ordered(&time(a.0, a.1), &time(b.0, b.1), expected);
            }
        }
    }
    assert_ordered(&micros(0, 1_000_000_000), &micros(1, 0), Ordering::Equal);
    assert_ordered(&micros(-1, 2_000_000_000), &micros(1, 0), Ordering::Equal);
    assert_ordered(&micros(0, 999_999_000), &micros(1, 0), Ordering::Less);
    assert_ordered(
        &micros(i64::MAX, 0),
        &micros(i64::MIN, 0),
        Ordering::Greater,
    );
}

#[test]
fn a_timeval_converts_exactly_or_to_an_error() {
    let timeval = |tv_sec, tv_usec| Timeval { tv_sec, tv_usec };
    for (from, to, digits) in [
        (timeval(12, 345), time(12, 345_000), "12.000345"),
        (timeval(-1, 999_999), time(-1, 999_999_000), "-0.000001"),
        (
            timeval(i64::MIN, 0),
            time(i64::MIN, 0),
            "-9223372036854775808.000000",
        ),
    ] {
        assert_eq!(
            (Timespec::try_from(from), from.to_string().as_str()),
            (Ok(to), digits)
        );
        assert_eq!(SystemTime::try_from(from), SystemTime::from_timespec(to));
        assert_eq!(Duration::try_from(from), Duration::try_from(to));
    }
    for micros in [-1, 1_000_000, i64::MAX, i64::MIN] {
        assert_eq!(
            Timespec::try_from(timeval(7, micros)),
            Err(Errno::EINVAL),
            "{micros}"
        );
    }
}

#[test]
fn a_duration_converts_to_a_timespec_and_back() {
    for (duration, timespec) in [
        (Duration::ZERO, time(0, 0)),
        (Duration::from_nanos(1), time(0, 1)),
        (Duration::from_millis(1500), time(1, 500_000_000)),
        (
            Duration::new(i64::MAX as u64, 999_999_999),
            time(i64::MAX, 999_999_999),
        ),
    ] {
        assert_eq!(Duration::try_from(timespec), Ok(duration));
        assert_eq!(Timespec::try_from(duration), Ok(timespec));
    }
}

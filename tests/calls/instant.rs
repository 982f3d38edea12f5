//! The promise: times are exact to the nanosecond, come from the clock that their type names, and
//! an operation whose result does not fit panics or returns `None`, as std's.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use test_support::{assert_bracketed, oracle, settable};
use vdso_time::{
    Boottime, Errno, Instant, Monotonic, MonotonicClock, MonotonicCoarse, MonotonicRaw,
    ProcessCpuTime, Realtime, RealtimeCoarse, SystemTime, Tai, ThreadCpuTime, Timespec, WallClock,
};

const NANO: Duration = Duration::from_nanos(1);

/// The derives require each trait of the clock `C`, as they do of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Span<C>(Instant<C>, SystemTime<C>);

type Read = fn() -> Result<Timespec, Errno>;

/// Fails unless these reads are of the kernel's clock of this id.
fn is_clock<C>(id: i32, reads: [Read; 4])
where
    Span<C>: Copy + Debug + Ord + Hash,
{
    let kernel = || oracle::clock_gettime(id);
    for read in reads.iter().cycle().take(1000) {
        assert_bracketed(&format!("clock {id}"), settable(id), kernel, read);
    }
}

/// The time that has elapsed since 0 is the clock's own value.
macro_rules! is_clock {
    ($Clock:ident: $Trait:ident, $id:ident, $elapsed:expr) => {
        is_clock::<$Clock>(
            libc::$id,
            [
                || $Clock::try_now().map(Timespec::from),
                || Ok($Clock::now().into()),
                || <$Clock as $Trait>::try_now().map(Timespec::from),
                || Ok(Timespec::try_from($elapsed).unwrap()),
            ],
        )
    };
    ($Clock:ident, $id:ident) => {
        is_clock!($Clock: MonotonicClock, $id, Instant::<$Clock>::EPOCH.elapsed())
    };
    (wall $Clock:ident, $id:ident) => {
        is_clock!($Clock: WallClock, $id, SystemTime::<$Clock>::EPOCH.elapsed().unwrap())
    };
}

#[test]
fn a_marker_reads_its_clock() {
    is_clock!(Monotonic, CLOCK_MONOTONIC);
    is_clock!(MonotonicRaw, CLOCK_MONOTONIC_RAW);
    is_clock!(MonotonicCoarse, CLOCK_MONOTONIC_COARSE);
    is_clock!(Boottime, CLOCK_BOOTTIME);
    is_clock!(ProcessCpuTime, CLOCK_PROCESS_CPUTIME_ID);
    is_clock!(ThreadCpuTime, CLOCK_THREAD_CPUTIME_ID);
    is_clock!(wall Realtime, CLOCK_REALTIME);
    is_clock!(wall RealtimeCoarse, CLOCK_REALTIME_COARSE);
    is_clock!(wall Tai, CLOCK_TAI);
    // The default parameters.
    let start: Instant<Monotonic> = Instant::now();
    let stamp: SystemTime<Realtime> = SystemTime::now();
    assert!(start <= Instant::try_now().unwrap() && stamp.elapsed().is_ok());
    assert_eq!(Instant::from_nanos(i64::MAX).elapsed(), Duration::ZERO);
    assert!(SystemTime::from_nanos(i64::MAX.into()).elapsed().is_err());
}

/// Compares with nanoseconds in 128 bits, also where the time is before the zero.
#[test]
fn a_time_is_made_of_any_unit_and_gives_it_back() {
    for number in [i64::MIN, -1_500_001, -1, 0, 1, 1_999_999, i64::MAX] {
        let wide = i128::from(number);
        let secs = SystemTime::from_secs(number);
        let millis = SystemTime::from_millis(number);
        let micros = SystemTime::from_micros(number);
        assert_eq!(secs.as_nanos(), wide * 1_000_000_000);
        assert_eq!(millis.as_nanos(), wide * 1_000_000);
        assert_eq!(micros.as_nanos(), wide * 1_000);
        assert_eq!(secs.as_secs(), number);
        assert_eq!(millis.as_millis(), number);
        assert_eq!(micros.as_micros(), number);
        assert_eq!(i128::from(millis.subsec_millis()), wide.rem_euclid(1000));
        let below = wide.rem_euclid(1_000_000);
        assert_eq!(i128::from(micros.subsec_micros()), below);
        assert_eq!(i128::from(micros.subsec_millis()), below / 1000);
    }
    for number in [-9_223_372_036_854, -1, 0, 9_223_372_036_854] {
        assert_eq!(Instant::from_millis(number).as_nanos(), number * 1_000_000);
        assert_eq!(Instant::from_micros(number).as_nanos(), number * 1_000);
    }
    for number in [i64::MIN, i64::MAX] {
        for from in [Instant::from_millis, Instant::from_micros] {
            assert_does(None, FAR, || from(number));
        }
    }
    assert_eq!(Instant::<Frozen>::EPOCH.as_nanos(), 0);
    assert_eq!(SystemTime::UNIX_EPOCH, SystemTime::from_secs(0));
}

/// A clock that stands, and one that a sandbox denies.
enum Frozen {}
enum Denied {}

impl MonotonicClock for Frozen {
    fn try_now() -> Result<Instant<Self>, Errno> {
        const STANDING: Instant<Frozen> = Instant::from_clock_nanos(1_500_000_000);
        Ok(STANDING)
    }
}

impl WallClock for Frozen {
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        Ok(SystemTime::from_clock_nanos(-1_500_000_000))
    }
}

impl MonotonicClock for Denied {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Err(Errno::EPERM)
    }
}

#[test]
fn a_program_can_implement_its_own_clock() {
    assert_eq!(<Frozen as MonotonicClock>::now().elapsed(), Duration::ZERO);
    assert_eq!(
        Instant::<Frozen>::EPOCH.elapsed(),
        Duration::from_millis(1500)
    );
    let early = SystemTime::<Frozen>::EPOCH.elapsed().unwrap_err();
    assert_eq!(early.duration(), Duration::from_millis(1500));
    assert_eq!(early.to_string(), "the other time is 1.5s later");
}

#[test]
#[should_panic(expected = "::Denied: EPERM (try_now() returns this error)")]
fn a_clock_that_is_denied_panics_with_the_error() {
    let _ = Denied::now();
}

const FAR: &str = "an `Instant` is at most 292 years from its zero";
const ADDING: &str = "overflow when adding duration to instant";
const SUBTRACTING: &str = "overflow when subtracting duration from instant";

/// Fails unless the operation has this result, or panics if there is none.
fn assert_does<T: Debug + PartialEq>(
    expected: Option<T>,
    message: &str,
    operation: impl Fn() -> T,
) {
    let result = catch_unwind(AssertUnwindSafe(operation));
    let result = result.map_err(|panic| panic.downcast_ref::<String>().cloned());
    assert_eq!(result, expected.ok_or(Some(message.into())));
}

const INSTANTS: [i64; 9] = [
    i64::MIN,
    i64::MIN + 1,
    -1_000_000_007,
    -1,
    0,
    5,
    1_999_999_999,
    i64::MAX - 9,
    i64::MAX,
];

fn at(nanos: i64) -> Instant<Frozen> {
    Instant::from_clock_nanos(nanos)
}

/// Fails unless a time moved by this distance is the exact one, or none.
fn assert_moves(nanos: i64, distance: Duration) {
    let time = at(nanos);
    let far = distance.as_nanos() as i128;
    let later = i64::try_from(i128::from(nanos) + far).ok().map(at);
    let earlier = i64::try_from(i128::from(nanos) - far).ok().map(at);
    assert_eq!(time.checked_add(distance), later);
    assert_eq!(time.checked_sub(distance), earlier);
    let last = at(i64::MAX);
    assert_eq!(time.saturating_add(distance), later.unwrap_or(last));
    let first = at(i64::MIN);
    assert_eq!(time.saturating_sub(distance), earlier.unwrap_or(first));
    assert_does(later, ADDING, || time + distance);
    assert_does(earlier, SUBTRACTING, || time - distance);
}

/// Fails unless the duration between two times is the exact one, or 0.
fn assert_differs(nanos: i64, other: i64) {
    let time = at(nanos);
    let early = at(other);
    let exact = if other <= nanos {
        Some(Duration::from_nanos(nanos.abs_diff(other)))
    } else {
        None
    };
    assert_eq!(time.checked_duration_since(early), exact);
    let nearest = exact.unwrap_or_default();
    assert_eq!(time.saturating_duration_since(early), nearest);
    assert_eq!(time.duration_since(early), nearest);
    assert_eq!(time - early, nearest);
    assert_eq!(time.cmp(&early), nanos.cmp(&other));
    let distinct = 1 + usize::from(other != nanos);
    assert_eq!(HashSet::from([time, early]).len(), distinct);
}

/// Compares with 128-bit arithmetic, however far, and at both ends of 64 bits.
/// `dev/properties/std_times.rs` compares every operation of a `SystemTime` with std's. The same
/// macro makes its operators.
#[test]
fn instant_arithmetic_is_exact_or_panics() {
    for nanos in INSTANTS {
        for other in INSTANTS {
            assert_moves(nanos, Duration::from_nanos(nanos.abs_diff(other)));
            assert_differs(nanos, other);
        }
        assert_moves(nanos, NANO);
        assert_moves(nanos, Duration::MAX);
    }
    let longer = Duration::from_nanos(u64::MAX) + NANO;
    assert_eq!(at(i64::MIN).checked_add(longer), None);
    assert_eq!(at(i64::MAX).checked_sub(longer), None);
    assert_eq!(
        format!("{:?}", at(12_000_000_345)),
        "Instant { tv_sec: 12, tv_nsec: 345 }"
    );
    assert_eq!(
        format!("{:?}", at(-1)),
        "Instant { tv_sec: -1, tv_nsec: 999999999 }"
    );
}

#[test]
fn an_option_of_a_system_time_takes_no_more_than_a_system_time() {
    // 16 bytes, or 12 where an `i64` is aligned to 4.
    let stds = size_of::<std::time::SystemTime>();
    let sizes = (
        size_of::<Instant>(),
        size_of::<SystemTime>(),
        size_of::<Option<SystemTime>>(),
    );
    assert_eq!(sizes, (8, stds, stds));
}

//! The promise: times are exact to the nanosecond, saturate at both ends of 64 bits, and come from
//! the clock that their type names.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use test_support::{assert_bracketed, oracle, settable};
use vdso_time::{
    Boottime, Clock, Errno, Instant, KernelClock, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime,
    Realtime, RealtimeCoarse, SystemTime, Tai, ThreadCpuTime, Timespec, WallClock,
};

const NANO: Duration = Duration::from_nanos(1);

/// A derive asks of the clock what it asks of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Span<C>(Instant<C>, SystemTime<C>);

/// Fails unless the marker names the kernel's clock of this id, and these reads are of that clock.
fn is_marker<C: KernelClock>(id: i32, reads: [fn() -> Result<i64, Errno>; 3])
where
    Span<C>: Copy + Debug + Ord + Hash,
{
    assert_eq!(C::ID.as_raw(), id);
    let resolution = C::resolution().map(nanos).map_err(Errno::raw_os_error);
    assert_eq!(resolution, oracle::clock_getres(id).map(Timespec::as_nanos), "clock {id}");
    let kernel = || oracle::clock_gettime(id).map(Timespec::as_nanos);
    for read in reads.iter().cycle().take(1000) {
        assert_bracketed(&format!("clock {id}"), settable(id), kernel, read);
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap()
}

/// From 0 on the clock, what has elapsed is the clock's own reading.
fn is_instants<C: Clock + KernelClock>(id: i32)
where
    Span<C>: Copy + Debug + Ord + Hash,
{
    let elapsed = || Ok(nanos(Instant::<C>::from_nanos(0).elapsed()));
    is_marker::<C>(id, [|| C::try_now().map(Instant::as_nanos), || Ok(C::now().as_nanos()), elapsed]);
}

fn is_system_times<C: WallClock + KernelClock>(id: i32)
where
    Span<C>: Copy + Debug + Ord + Hash,
{
    let elapsed = || Ok(nanos(C::UNIX_EPOCH.elapsed().unwrap()));
    is_marker::<C>(id, [|| C::try_now().map(SystemTime::as_nanos), || Ok(C::now().as_nanos()), elapsed]);
}

#[test]
fn a_marker_reads_its_clock_and_has_its_id_and_resolution() {
    is_instants::<Monotonic>(libc::CLOCK_MONOTONIC);
    is_instants::<MonotonicRaw>(libc::CLOCK_MONOTONIC_RAW);
    is_instants::<MonotonicCoarse>(libc::CLOCK_MONOTONIC_COARSE);
    is_instants::<Boottime>(libc::CLOCK_BOOTTIME);
    is_instants::<ProcessCpuTime>(libc::CLOCK_PROCESS_CPUTIME_ID);
    is_instants::<ThreadCpuTime>(libc::CLOCK_THREAD_CPUTIME_ID);
    is_system_times::<Realtime>(libc::CLOCK_REALTIME);
    is_system_times::<RealtimeCoarse>(libc::CLOCK_REALTIME_COARSE);
    is_system_times::<Tai>(libc::CLOCK_TAI);
    // The default parameters.
    let start: Instant<Monotonic> = Instant::now();
    let stamp: SystemTime<Realtime> = SystemTime::now();
    assert!(start <= Instant::try_now().unwrap() && stamp.elapsed().is_ok());
    assert_eq!(Instant::<Monotonic>::from_nanos(i64::MAX).elapsed(), Duration::ZERO);
    assert!(SystemTime::<Realtime>::from_nanos(i64::MAX).elapsed().is_err());
}

#[test]
fn a_coarse_time_becomes_a_time_of_its_clock() {
    for nanos in [i64::MIN, -1, 0, 1_700_000_000_123_456_789, i64::MAX] {
        let instant: Instant = Instant::<MonotonicCoarse>::from_nanos(nanos).into();
        let time: SystemTime = SystemTime::<RealtimeCoarse>::from_nanos(nanos).into();
        assert_eq!((instant.as_nanos(), time.as_nanos()), (nanos, nanos));
    }
}

/// A clock that stands, and one that a sandbox denies.
enum Frozen {}
enum Denied {}

impl Clock for Frozen {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Ok(Instant::from_nanos(1_500_000_000))
    }
}

impl WallClock for Frozen {
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        Ok(SystemTime::from_nanos(-1_500_000_000))
    }
}

impl Clock for Denied {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Err(Errno::EPERM)
    }
}

#[test]
fn a_program_can_implement_its_own_clock() {
    assert_eq!(<Frozen as Clock>::now().elapsed(), Duration::ZERO);
    assert_eq!(Instant::<Frozen>::from_nanos(0).elapsed(), Duration::from_millis(1500));
    let early = Frozen::UNIX_EPOCH.elapsed().unwrap_err();
    assert_eq!(early.duration(), Duration::from_millis(1500));
    assert_eq!(early.to_string(), "the other time is 1.5s later");
}

#[test]
#[should_panic(expected = "the clock cannot be read: EPERM")]
fn a_clock_that_is_denied_panics_with_the_error() {
    let _ = Denied::now();
}

const TIMES: [i64; 9] =
    [i64::MIN, i64::MIN + 1, -1_000_000_007, -1, 0, 5, 1_999_999_999, i64::MAX - 9, i64::MAX];

/// Every distance between two times, and some that are longer.
fn distances() -> impl Iterator<Item = Duration> {
    let exact = TIMES.iter().flat_map(|time| TIMES.map(|other| Duration::from_nanos(time.abs_diff(other))));
    exact.chain([NANO, Duration::from_nanos(u64::MAX) + NANO, Duration::MAX])
}

macro_rules! arithmetic {
    ($name:ident, $Point:ty) => {
        /// By the arithmetic of 128 bits, however far, and at both ends of 64 bits.
        #[test]
        fn $name() {
            let at = <$Point>::from_nanos;
            for (time, distance) in TIMES.iter().flat_map(|time| distances().map(move |far| (*time, far))) {
                let nanos = distance.as_nanos() as i128;
                let expected = [i128::from(time) + nanos, i128::from(time) - nanos];
                let exact = expected.map(|nanos| i64::try_from(nanos).ok().map(at));
                let nearest = expected.map(|nanos| at(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64));
                let (time, mut later, mut earlier) = (at(time), at(time), at(time));
                later += distance;
                earlier -= distance;
                assert_eq!([time.checked_add(distance), time.checked_sub(distance)], exact);
                assert_eq!([time + distance, time - distance], nearest);
                assert_eq!([later, earlier], nearest);
            }
            for (early, late) in TIMES.iter().flat_map(|early| TIMES.map(|late| (*early, late))) {
                let exact = (early <= late).then_some(Duration::from_nanos(late.abs_diff(early)));
                assert_eq!(at(late).checked_duration_since(at(early)), exact);
                assert_eq!(at(late).saturating_duration_since(at(early)), exact.unwrap_or_default());
                assert_eq!(at(late).cmp(&at(early)), late.cmp(&early));
                assert_eq!(HashSet::from([at(late), at(early)]).len(), 1 + usize::from(early != late));
            }
            // Seconds on the clock, every digit.
            let name = stringify!($Point).split('<').next().unwrap().trim();
            assert_eq!(format!("{:?}", at(12_000_000_345)), format!("{name}(12.000000345)"));
            assert_eq!(format!("{:?}", at(i64::MIN)), format!("{name}(-9223372036.854775808)"));
        }
    };
}

arithmetic!(instant_arithmetic_is_exact_or_saturates, Instant<Frozen>);
arithmetic!(system_time_arithmetic_is_exact_or_saturates, SystemTime<Tai>);

#[test]
fn an_earlier_instant_is_zero_away_and_an_earlier_system_time_is_an_error() {
    let (early, late) = (Instant::<Monotonic>::from_nanos(-3), Instant::from_nanos(4));
    assert_eq!((late.duration_since(early), late - early), (7 * NANO, 7 * NANO));
    assert_eq!((early.duration_since(late), early - late), (Duration::ZERO, Duration::ZERO));

    let (early, late) = (SystemTime::<Tai>::from_nanos(i64::MIN), SystemTime::from_nanos(i64::MAX));
    assert_eq!(late.duration_since(early), Ok(Duration::from_nanos(u64::MAX)));
    assert_eq!(early.duration_since(late).unwrap_err().duration(), Duration::from_nanos(u64::MAX));
    assert_eq!(late.duration_since(late), Ok(Duration::ZERO));
    assert_eq!((Tai::UNIX_EPOCH.as_nanos(), SystemTime::UNIX_EPOCH.as_nanos()), (0, 0));
}

//! The promise: times are exact to the nanosecond, saturate at both ends of 64 bits, and come from the clock that their
//! type names.

use std::collections::HashSet;
use std::time::Duration;

use test_support::{assert_bracketed, oracle, settable};
use vdso_time::{
    Boottime, Clock, Errno, Instant, KernelClock, Monotonic, MonotonicCoarse, MonotonicRaw, ProcessCpuTime,
    Realtime, RealtimeCoarse, SystemTime, Tai, ThreadCpuTime, WallClock,
};

const NANO: Duration = Duration::from_nanos(1);

/// Fails unless a marker's clock is the kernel's of this id.
fn is_clock(id: i32, read: impl Fn() -> Result<i64, Errno>) {
    let kernel = || oracle::clock_gettime(id).map(|time| time.tv_sec * 1_000_000_000 + time.tv_nsec);
    for _ in 0..1000 {
        assert_bracketed(&format!("clock {id}"), settable(id), kernel, &read);
    }
}

#[test]
fn a_marker_reads_its_clock() {
    is_clock(libc::CLOCK_MONOTONIC, || Monotonic::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_MONOTONIC, || Ok(Monotonic::now().as_nanos()));
    is_clock(libc::CLOCK_MONOTONIC, || Instant::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_MONOTONIC, || Ok(Instant::now().as_nanos()));
    is_clock(libc::CLOCK_MONOTONIC_RAW, || MonotonicRaw::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_MONOTONIC_COARSE, || MonotonicCoarse::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_BOOTTIME, || Boottime::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_REALTIME, || Realtime::try_now().map(SystemTime::as_nanos));
    is_clock(libc::CLOCK_REALTIME, || Ok(Realtime::now().as_nanos()));
    is_clock(libc::CLOCK_REALTIME, || SystemTime::try_now().map(SystemTime::as_nanos));
    is_clock(libc::CLOCK_REALTIME, || Ok(SystemTime::now().as_nanos()));
    is_clock(libc::CLOCK_REALTIME_COARSE, || RealtimeCoarse::try_now().map(SystemTime::as_nanos));
    is_clock(libc::CLOCK_TAI, || Tai::try_now().map(SystemTime::as_nanos));
    is_clock(libc::CLOCK_PROCESS_CPUTIME_ID, || ProcessCpuTime::try_now().map(Instant::as_nanos));
    is_clock(libc::CLOCK_THREAD_CPUTIME_ID, || ThreadCpuTime::try_now().map(Instant::as_nanos));
}

#[test]
fn a_marker_has_the_id_and_the_resolution_of_its_clock() {
    fn is_named<C: KernelClock>(id: i32) {
        assert_eq!(C::ID.as_raw(), id);
        let kernel =
            oracle::clock_getres(id).map(|time| Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
        assert_eq!(C::resolution().map_err(Errno::raw_os_error), kernel, "clock {id}");
    }
    is_named::<Monotonic>(libc::CLOCK_MONOTONIC);
    is_named::<MonotonicRaw>(libc::CLOCK_MONOTONIC_RAW);
    is_named::<MonotonicCoarse>(libc::CLOCK_MONOTONIC_COARSE);
    is_named::<Boottime>(libc::CLOCK_BOOTTIME);
    is_named::<ProcessCpuTime>(libc::CLOCK_PROCESS_CPUTIME_ID);
    is_named::<ThreadCpuTime>(libc::CLOCK_THREAD_CPUTIME_ID);
    is_named::<Realtime>(libc::CLOCK_REALTIME);
    is_named::<RealtimeCoarse>(libc::CLOCK_REALTIME_COARSE);
    is_named::<Tai>(libc::CLOCK_TAI);
}

/// A derive asks of the clock what it asks of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Span<C> {
    start: Instant<C>,
    end: Instant<C>,
}

#[test]
fn a_struct_that_is_generic_over_the_clock_derives_everything() {
    fn derives<C>()
    where
        Span<C>: Copy + std::fmt::Debug + Ord + std::hash::Hash,
    {
        let span = Span::<C> { start: Instant::from_nanos(1), end: Instant::from_nanos(2) };
        assert!(span < Span { end: Instant::from_nanos(3), ..span });
        assert_eq!(HashSet::from([span, span]).len(), 1);
    }
    derives::<Monotonic>();
    derives::<MonotonicRaw>();
    derives::<MonotonicCoarse>();
    derives::<Boottime>();
    derives::<ProcessCpuTime>();
    derives::<ThreadCpuTime>();
    derives::<Realtime>();
    derives::<RealtimeCoarse>();
    derives::<Tai>();
}

#[test]
fn a_coarse_time_becomes_a_time_of_its_clock() {
    for nanos in [i64::MIN, -1, 0, 1_700_000_000_123_456_789, i64::MAX] {
        let instant: Instant = Instant::<MonotonicCoarse>::from_nanos(nanos).into();
        let time: SystemTime = SystemTime::<RealtimeCoarse>::from_nanos(nanos).into();
        assert_eq!((instant.as_nanos(), time.as_nanos()), (nanos, nanos));
    }
}

/// `elapsed` reads the clock of its own time: from 0 on the clock it is the clock's own reading.
#[test]
fn what_has_elapsed_is_read_from_the_same_clock() {
    fn since_zero<C: Clock>() -> Duration {
        Instant::<C>::from_nanos(0).elapsed()
    }
    fn since_epoch<C: WallClock>() -> Duration {
        C::UNIX_EPOCH.elapsed().unwrap()
    }
    fn shows(id: i32, elapsed: fn() -> Duration) {
        is_clock(id, || Ok(i64::try_from(elapsed().as_nanos()).unwrap()));
    }
    shows(libc::CLOCK_MONOTONIC, since_zero::<Monotonic>);
    shows(libc::CLOCK_MONOTONIC_RAW, since_zero::<MonotonicRaw>);
    shows(libc::CLOCK_BOOTTIME, since_zero::<Boottime>);
    shows(libc::CLOCK_THREAD_CPUTIME_ID, since_zero::<ThreadCpuTime>);
    shows(libc::CLOCK_REALTIME, since_epoch::<Realtime>);
    shows(libc::CLOCK_TAI, since_epoch::<Tai>);
    assert_eq!(Instant::<Monotonic>::from_nanos(i64::MAX).elapsed(), Duration::ZERO);
    assert!(SystemTime::<Realtime>::from_nanos(i64::MAX).elapsed().is_err());
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

impl WallClock for Denied {
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        Err(Errno::ENOSYS)
    }
}

#[test]
fn a_program_may_bring_its_own_clock() {
    assert_eq!(<Frozen as Clock>::now().elapsed(), Duration::ZERO);
    assert_eq!(Instant::<Frozen>::from_nanos(0).elapsed(), Duration::from_millis(1500));
    let early = Frozen::UNIX_EPOCH.elapsed().unwrap_err();
    assert_eq!(early.duration(), Duration::from_millis(1500));
    assert_eq!(early.to_string(), "the other time is 1.5s later");
}

#[test]
#[should_panic(expected = "the clock cannot be read: EPERM")]
fn an_instant_that_is_denied_panics_with_the_error() {
    let _ = <Denied as Clock>::now();
}

#[test]
#[should_panic(expected = "the clock cannot be read: ENOSYS")]
fn a_system_time_that_is_denied_panics_with_the_error() {
    let _ = <Denied as WallClock>::now();
}

macro_rules! arithmetic {
    ($name:ident, $Point:ty) => {
        #[test]
        fn $name() {
            let at = <$Point>::from_nanos;
            let (first, last) = (at(i64::MIN), at(i64::MAX));
            let all = Duration::from_nanos(u64::MAX);

            // Exact, however far: no reading is rounded through a float or through microseconds.
            for (time, step) in [(0, 1), (-1, 1), (1_999_999_999, 1), (-5, 1_000_000_007), (i64::MAX - 9, 9)]
            {
                let duration = Duration::from_nanos(step as u64);
                assert_eq!((at(time) + duration).as_nanos(), time + step);
                assert_eq!(at(time + step) - duration, at(time));
                assert_eq!(at(time).checked_add(duration), Some(at(time + step)));
                assert_eq!(at(time + step).checked_sub(duration), Some(at(time)));
                assert_eq!(at(time + step).checked_duration_since(at(time)), Some(duration));
                assert_eq!(at(time).checked_duration_since(at(time + step)), None);
                assert_eq!(at(time + step).saturating_duration_since(at(time)), duration);
                assert_eq!(at(time).saturating_duration_since(at(time + step)), Duration::ZERO);
                let mut moved = at(time);
                moved += duration;
                assert_eq!(moved, at(time + step));
                moved -= duration;
                assert_eq!(moved, at(time));
            }
            assert_eq!(at(7).checked_duration_since(at(7)), Some(Duration::ZERO));

            // From one end to the other is all of 64 bits, and one more does not fit.
            assert_eq!(first.checked_add(all), Some(last));
            assert_eq!(last.checked_sub(all), Some(first));
            assert_eq!(last.checked_duration_since(first), Some(all));
            for (time, too_much) in [(last, NANO), (first, all + NANO), (at(0), Duration::MAX)] {
                assert_eq!(time.checked_add(too_much), None);
                assert_eq!(time + too_much, last);
            }
            for (time, too_much) in [(first, NANO), (last, all + NANO), (at(0), Duration::MAX)] {
                assert_eq!(time.checked_sub(too_much), None);
                assert_eq!(time - too_much, first);
            }

            // Order, equality and hash are those of the count.
            let mut sorted = [last, at(1), first, at(0), at(-1)];
            assert_ne!(at(1), at(0));
            assert_ne!(at(-1), at(0));
            sorted.sort_unstable();
            assert_eq!(sorted, [first, at(-1), at(0), at(1), last]);
            let some: HashSet<$Point> = sorted.into_iter().chain(sorted).collect();
            assert_eq!(some.len(), sorted.len());
            assert!(some.contains(&at(-1)) && !some.contains(&at(2)));

            // Seconds on the clock, every digit.
            let name = stringify!($Point).split('<').next().unwrap().trim();
            assert_eq!(format!("{:?}", at(12_000_000_345)), format!("{name}(12.000000345)"));
            assert_eq!(format!("{:?}", at(-1)), format!("{name}(-0.000000001)"));
            assert_eq!(format!("{first:?}"), format!("{name}(-9223372036.854775808)"));
            assert_eq!(format!("{last:?}"), format!("{name}(9223372036.854775807)"));
        }
    };
}

arithmetic!(the_arithmetic_of_an_instant, Instant<Monotonic>);
arithmetic!(the_arithmetic_of_another_clocks_instant, Instant<Frozen>);
arithmetic!(the_arithmetic_of_a_system_time, SystemTime<Realtime>);
arithmetic!(the_arithmetic_of_another_clocks_system_time, SystemTime<Tai>);

#[test]
fn the_distance_between_two_times() {
    let (early, late) = (Instant::<Monotonic>::from_nanos(-3), Instant::from_nanos(4));
    assert_eq!(late.duration_since(early), Duration::from_nanos(7));
    assert_eq!(late - early, Duration::from_nanos(7));
    assert_eq!(early.duration_since(late), Duration::ZERO);
    assert_eq!(early - late, Duration::ZERO);

    let (early, late) = (SystemTime::<Tai>::from_nanos(i64::MIN), SystemTime::from_nanos(i64::MAX));
    assert_eq!(late.duration_since(early), Ok(Duration::from_nanos(u64::MAX)));
    assert_eq!(early.duration_since(late).unwrap_err().duration(), Duration::from_nanos(u64::MAX));
    assert_eq!(late.duration_since(late), Ok(Duration::ZERO));
    assert_eq!((Tai::UNIX_EPOCH.as_nanos(), SystemTime::UNIX_EPOCH.as_nanos()), (0, 0));
}

#[cfg(feature = "std")]
mod std_times {
    use super::{Duration, Errno, NANO, RealtimeCoarse, SystemTime, assert_bracketed, oracle};
    use std::time::{SystemTime as Std, UNIX_EPOCH};

    #[test]
    fn a_time_survives_the_way_to_std_and_back() {
        for nanos in [i64::MIN, i64::MIN + 1, -1_000_000_001, -1, 0, 1, 1_999_999_999, i64::MAX] {
            let time: SystemTime = SystemTime::from_nanos(nanos);
            let distance = Duration::from_nanos(nanos.unsigned_abs());
            let there = if nanos < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance };
            assert_eq!(Std::from(time), there, "{nanos}");
            assert_eq!(Std::from(SystemTime::<RealtimeCoarse>::from_nanos(nanos)), there, "{nanos}");
            assert_eq!(SystemTime::try_from(there), Ok(time), "{nanos}");
        }
    }

    #[test]
    fn a_time_of_std_that_does_not_fit_is_an_error() {
        let ends: [SystemTime; 2] = [i64::MIN, i64::MAX].map(SystemTime::from_nanos);
        let [first, last] = ends.map(Std::from);
        for more in [NANO, Duration::from_secs(1), Duration::from_secs(1 << 40)] {
            assert_eq!(SystemTime::try_from(last + more), Err(Errno::EOVERFLOW), "{more:?}");
            assert_eq!(SystemTime::try_from(first - more), Err(Errno::EOVERFLOW), "{more:?}");
        }
    }

    #[test]
    fn both_have_the_same_epoch() {
        let kernel = || oracle::clock_gettime(libc::CLOCK_REALTIME).map(|now| (now.tv_sec, now.tv_nsec));
        assert_bracketed("std::time::SystemTime", true, kernel, || {
            let now = Std::from(SystemTime::now()).duration_since(UNIX_EPOCH).unwrap();
            Ok((now.as_secs() as i64, i64::from(now.subsec_nanos())))
        });
    }
}

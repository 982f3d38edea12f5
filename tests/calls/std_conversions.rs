//! The promise: times go to those of `std::time` and back without a panic. Only one constant offset
//! of `Instant` is not exact. The clock of a file is made of its number.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant as Std, SystemTime as StdSystem, UNIX_EPOCH};

use test_support::{assert_bracketed, oracle};
use vdso_time::{ClockId, Errno, Instant, RealtimeCoarse, SystemTime, clock_gettime};

const NANO: Duration = Duration::from_nanos(1);

/// Far more than the offset, and far less than the error of a wrong clock: `CLOCK_BOOTTIME` where
/// the machine was suspended, or `CLOCK_REALTIME`.
const SLACK: Duration = Duration::from_millis(5);

#[test]
fn a_converted_time_is_now_where_the_other_clock_is_now() {
    for _ in 0..100 {
        let before = Std::now();
        let converted = Std::try_from(Instant::now()).unwrap();
        assert!(before <= converted + SLACK && converted <= Std::now() + SLACK);

        let before = Instant::now();
        let converted = Instant::try_from(Std::now()).unwrap();
        assert!(before <= converted + SLACK && converted <= Instant::now() + SLACK);
    }
    let kernel = || oracle::clock_gettime(libc::CLOCK_REALTIME).map(|now| (now.tv_sec, now.tv_nsec));
    assert_bracketed("std::time::SystemTime", true, kernel, || {
        let now = StdSystem::from(SystemTime::now()).duration_since(UNIX_EPOCH).unwrap();
        Ok((now.as_secs() as i64, i64::from(now.subsec_nanos())))
    });
}

#[test]
fn differences_and_order_are_exact_and_the_way_back_gives_the_same_time() {
    let (ours, std) = (Instant::now(), Std::now());
    let (ours_there, std_here) = (Std::try_from(ours).unwrap(), Instant::try_from(std).unwrap());
    for nanos in [0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_000, 1 << 62] {
        let distance = Duration::from_nanos(nanos);
        assert_eq!(Std::try_from(ours + distance), Ok(ours_there + distance));
        assert_eq!(Std::try_from(ours - distance).ok(), ours_there.checked_sub(distance));
        assert_eq!(Instant::try_from(std + distance), Ok(std_here + distance));
        assert_eq!(std.checked_sub(distance).map(Instant::try_from), Some(Ok(std_here - distance)));
        assert_eq!(Instant::try_from(ours_there + distance), Ok(ours + distance));
        assert_eq!(Std::try_from(std_here - distance).ok(), std.checked_sub(distance));
    }
    for nanos in [i64::MIN, i64::MIN + 1, -1_000_000_001, -1, 0, 1, 1_999_999_999, i64::MAX] {
        let time: SystemTime = SystemTime::from_nanos(nanos);
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        let there = if nanos < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance };
        assert_eq!(StdSystem::from(time), there, "{nanos}");
        assert_eq!(StdSystem::from(SystemTime::<RealtimeCoarse>::from_nanos(nanos)), there, "{nanos}");
        assert_eq!(SystemTime::try_from(there), Ok(time), "{nanos}");
    }
}

#[test]
fn every_time_fits_in_std_and_std_has_some_that_do_not_fit_here() {
    let ends: [Instant; 2] = [i64::MIN, i64::MAX].map(Instant::from_nanos);
    let [first, last] = ends.map(|end| Std::try_from(end).unwrap());
    assert_eq!([first, last].map(Instant::try_from), ends.map(Ok));
    for more in [NANO, Duration::from_secs(1 << 60)] {
        assert_eq!(Instant::try_from(last + more), Err(Errno::EOVERFLOW));
        assert_eq!(first.checked_sub(more).map(Instant::try_from), Some(Err(Errno::EOVERFLOW)));
    }
    let ends: [SystemTime; 2] = [i64::MIN, i64::MAX].map(SystemTime::from_nanos);
    let [first, last] = ends.map(StdSystem::from);
    for more in [NANO, Duration::from_secs(1), Duration::from_secs(1 << 40)] {
        assert_eq!(SystemTime::try_from(last + more), Err(Errno::EOVERFLOW), "{more:?}");
        assert_eq!(SystemTime::try_from(first - more), Err(Errno::EOVERFLOW), "{more:?}");
    }
}

#[test]
fn a_borrowed_file_names_the_clock_of_its_number() {
    let null = File::open("/dev/null").unwrap();
    // FD_TO_CLOCKID of clock_getres(2).
    let expected = ((!null.as_raw_fd() as u32) << 3) | 3;
    let clock = ClockId::from(null.as_fd());
    assert_eq!(clock.as_raw(), expected as i32);
    assert_eq!(clock.to_string(), format!("from_fd({})", null.as_raw_fd()));
    assert_eq!(clock_gettime(clock), Err(Errno::EINVAL));
}

//! The promise: times convert to `std::time` and back without a panic, and exactly but for
//! one constant offset of `Instant`. `dev/properties/std_times.rs` converts every `SystemTime`. A
//! file's descriptor gives its clock.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant as Std, SystemTime as StdSystem, UNIX_EPOCH};

use test_support::{assert_bracketed, child, oracle};
use vdso_time::{ClockId, Errno, Instant, SystemTime, Timespec, clock_gettime};

const NANO: Duration = Duration::from_nanos(1);

/// Far more than the offset on an idle machine, even in an emulator.
const MOST: Duration = Duration::from_micros(100);

/// Returns the time of a std `Instant`, which only its `Debug` shows: `tv_sec` and `tv_nsec`.
fn shown(std: Std) -> Instant {
    let text = format!("{std:?}");
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok());
    Instant::try_from(Timespec {
        tv_sec: numbers.next().unwrap(),
        tv_nsec: numbers.next().unwrap(),
    })
    .unwrap()
}

fn distance(a: Instant, b: Instant) -> Duration {
    a.max(b).duration_since(a.min(b))
}

/// Tries several processes, because the first conversion of each fixes the offset. A busy machine
/// may delay every read of one process, but not of all of them.
#[test]
fn both_instants_are_of_one_clock_and_a_converted_one_is_off_by_less_than_their_reads_take() {
    let is_near = || {
        let ours = Instant::now();
        let std = Std::now();
        let there = distance(shown(Std::from(ours)), ours);
        let back = distance(Instant::try_from(std).unwrap(), shown(std));
        there < MOST && back < MOST
    };
    assert!((0..20).any(|_| child::end_of(is_near) == child::SUCCESS));
}

#[test]
fn a_converted_system_time_is_now() {
    let kernel =
        || oracle::clock_gettime(libc::CLOCK_REALTIME).map(|now| (now.tv_sec, now.tv_nsec));
    assert_bracketed("std::time::SystemTime", true, kernel, || {
        let now = StdSystem::from(SystemTime::now())
            .duration_since(UNIX_EPOCH)
            .unwrap();
        Ok((now.as_secs() as i64, i64::from(now.subsec_nanos())))
    });
}

#[test]
fn differences_and_order_are_exact_and_the_way_back_gives_the_same_time() {
    let ours = Instant::now();
    let std = Std::now();
    let ours_there = Std::from(ours);
    let std_here = Instant::try_from(std).unwrap();
    for nanos in [
        0,
        1,
        999_999_999,
        1_000_000_000,
        86_400_000_000_000,
        1 << 62,
    ] {
        let distance = Duration::from_nanos(nanos);
        assert_eq!(Std::from(ours + distance), ours_there + distance);
        assert_eq!(
            Some(Std::from(ours - distance)),
            ours_there.checked_sub(distance)
        );
        assert_eq!(Instant::try_from(std + distance), Ok(std_here + distance));
        assert_eq!(
            std.checked_sub(distance).map(Instant::try_from),
            Some(Ok(std_here - distance))
        );
        assert_eq!(
            Instant::try_from(ours_there + distance),
            Ok(ours + distance)
        );
        assert_eq!(
            Some(Std::from(std_here - distance)),
            std.checked_sub(distance)
        );
    }
}

#[test]
fn every_instant_fits_in_std_and_std_has_some_that_do_not_fit_here() {
    let ends: [Instant; 2] = [i64::MIN, i64::MAX].map(Instant::from_nanos);
    let first = Std::from(ends[0]);
    let last = Std::from(ends[1]);
    assert_eq!(last - first, Duration::from_nanos(u64::MAX));
    assert_eq!(Instant::try_from(first), Ok(ends[0]));
    assert_eq!(Instant::try_from(last), Ok(ends[1]));
    for more in [NANO, Duration::from_secs(1 << 60)] {
        assert_eq!(Instant::try_from(last + more), Err(Errno::EOVERFLOW));
        assert_eq!(
            first.checked_sub(more).map(Instant::try_from),
            Some(Err(Errno::EOVERFLOW))
        );
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

//! The promise: times go to `std::time::Instant` and back without a panic, and only one constant
//! offset is not exact; the clock of a file is made of its number.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant as Std};

use vdso_time::{ClockId, Errno, Instant, clock_gettime};

/// Far more than the offset, and far less than a wrong clock is off: `CLOCK_BOOTTIME` where the
/// machine was suspended, or `CLOCK_REALTIME`.
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
}

#[test]
fn every_time_fits_in_std_and_std_has_some_that_do_not_fit_here() {
    let [first, last]: [Instant; 2] = [i64::MIN, i64::MAX].map(Instant::from_nanos);
    for end in [first, last] {
        assert_eq!(Instant::try_from(Std::try_from(end).unwrap()), Ok(end));
    }
    let [first, last] = [first, last].map(|end| Std::try_from(end).unwrap());
    for more in [Duration::from_nanos(1), Duration::from_secs(1 << 60)] {
        assert_eq!(Instant::try_from(last + more), Err(Errno::EOVERFLOW));
        assert_eq!(first.checked_sub(more).map(Instant::try_from), Some(Err(Errno::EOVERFLOW)));
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

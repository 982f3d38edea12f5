//! The promise: a clock is a type and also a value, a mock is one for each test and is seen by all
//! its threads, and only times that are on one scale convert.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use test_support::{assert_bracketed, oracle};
use vdso_time::{
    Boottime, Errno, Instant, InstantSource, Monotonic, MonotonicClock, MonotonicCoarse,
    MonotonicRaw, ProcessCpuTime, Realtime, RealtimeCoarse, SameScale, SystemTime,
    SystemTimeSource, Tai, ThreadCpuTime, Timespec, WallClock,
};

/// Fails unless a value reads the kernel's clock of this id, itself and through each pointer.
macro_rules! reads {
    ($Source:ident, $value:expr, $id:ident) => {
        let kernel = || oracle::clock_gettime(libc::$id);
        let what = stringify!($value);
        let clock = $value;
        let boxed: Box<dyn $Source<_>> = Box::new(clock);
        let shared: Arc<dyn $Source<_>> = Arc::new(clock);
        // A wall clock may be set between two reads.
        let is_settable = test_support::settable(libc::$id);
        assert_bracketed(what, is_settable, kernel, || {
            $Source::try_now(&clock).map(Timespec::from)
        });
        assert_bracketed(
            what,
            is_settable,
            kernel,
            || Ok($Source::now(&clock).into()),
        );
        assert_bracketed(what, is_settable, kernel, || {
            Ok($Source::now(&&clock).into())
        });
        assert_bracketed(what, is_settable, kernel, || {
            boxed.try_now().map(Timespec::from)
        });
        // A box is a source itself only with `std`.
        #[cfg(feature = "std")]
        assert_bracketed(
            what,
            is_settable,
            kernel,
            || Ok($Source::now(&boxed).into()),
        );
        assert_bracketed(what, is_settable, kernel, || Ok(shared.now().into()));
    };
}

#[test]
fn a_value_reads_its_clock_through_every_pointer() {
    reads!(InstantSource, Monotonic, CLOCK_MONOTONIC);
    reads!(InstantSource, MonotonicRaw, CLOCK_MONOTONIC_RAW);
    reads!(InstantSource, MonotonicCoarse, CLOCK_MONOTONIC_COARSE);
    reads!(InstantSource, Boottime, CLOCK_BOOTTIME);
    reads!(InstantSource, ProcessCpuTime, CLOCK_PROCESS_CPUTIME_ID);
    reads!(
        InstantSource,
        ThreadCpuTime::default(),
        CLOCK_THREAD_CPUTIME_ID
    );
    reads!(SystemTimeSource, Realtime, CLOCK_REALTIME);
    reads!(SystemTimeSource, RealtimeCoarse, CLOCK_REALTIME_COARSE);
    reads!(SystemTimeSource, Tai, CLOCK_TAI);
}

/// A scale of the program's own.
struct AppTime;

/// A clock whose time the test moves.
#[derive(Default)]
struct Mock(AtomicI64);

impl InstantSource<AppTime> for Mock {
    fn try_now(&self) -> Result<Instant<AppTime>, Errno> {
        Ok(Instant::from_clock_nanos(self.0.load(Relaxed)))
    }
}

impl SystemTimeSource<AppTime> for Mock {
    fn try_now(&self) -> Result<SystemTime<AppTime>, Errno> {
        Err(Errno::EPERM)
    }
}

#[test]
fn the_time_of_a_mock_is_that_of_its_test_and_seen_by_its_threads() {
    let mock = Arc::new(Mock::default());
    let other = Mock::default();
    let clock: Arc<dyn InstantSource<AppTime> + Send + Sync> = mock.clone();
    let start = clock.now();
    let is_moved = Barrier::new(2);
    let seen = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            is_moved.wait();
            clock.now() - start
        });
        mock.0.store(3_601_000_000_000, Relaxed);
        is_moved.wait();
        worker.join().unwrap()
    });
    assert_eq!(seen, Duration::from_secs(3601));
    assert_eq!(InstantSource::now(&other), Instant::EPOCH);
}

#[test]
#[should_panic(expected = "::Mock: EPERM (try_now() returns this error)")]
fn a_source_that_is_denied_panics_with_the_error() {
    let source: Box<dyn SystemTimeSource<AppTime>> = Box::new(Mock::default());
    let _ = source.now();
}

/// A clock on the scale of both default clocks, as a user has it.
enum Turn {}

impl MonotonicClock for Turn {
    fn try_now() -> Result<Instant<Self>, Errno> {
        Ok(Instant::from_clock_nanos(7))
    }
}

impl WallClock for Turn {
    fn try_now() -> Result<SystemTime<Self>, Errno> {
        Ok(SystemTime::from_clock_nanos(-7))
    }
}

impl SameScale<Monotonic> for Turn {}
impl SameScale<Realtime> for Turn {}

#[test]
fn a_time_on_the_same_scale_keeps_its_number() {
    for nanos in [i64::MIN, -1_000_000_007, -1, 0, 5, i64::MAX] {
        let coarse = Instant::<MonotonicCoarse>::from_clock_nanos(nanos);
        let own = Instant::<Turn>::from_clock_nanos(nanos);
        assert_eq!(<Instant>::from(coarse).as_nanos(), nanos);
        assert_eq!(<Instant>::from(own).as_nanos(), nanos);
        let coarse = SystemTime::<RealtimeCoarse>::from_clock_nanos(nanos.into());
        let own = SystemTime::<Turn>::from_clock_nanos(nanos.into());
        assert_eq!(<SystemTime>::from(coarse).as_nanos(), nanos.into());
        assert_eq!(<SystemTime>::from(own).as_nanos(), nanos.into());
    }
    let instant: Instant = <Turn as MonotonicClock>::now().into();
    let time: SystemTime = <Turn as WallClock>::now().into();
    assert_eq!(instant, Instant::from_nanos(7));
    assert_eq!(time, SystemTime::from_nanos(-7));
}

#[cfg(feature = "std")]
#[test]
fn a_time_on_the_same_scale_converts_to_that_of_std() {
    use std::time::Instant as Std;

    let now = Instant::now();
    let own = Instant::<Turn>::from_clock_nanos(now.as_nanos());
    assert_eq!(Std::from(own), Std::from(now));
    let own = SystemTime::<Turn>::from_clock_nanos(-1);
    let before = std::time::UNIX_EPOCH - Duration::from_nanos(1);
    assert_eq!(std::time::SystemTime::from(own), before);
}

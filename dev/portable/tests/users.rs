//! Idioms of users of other crates: each compiles, and gives the right result.

use std::error::Error;
use std::time::{Duration, SystemTime as StdSystemTime};

use vdso_time::{
    ClockId, Errno, Instant, InstantSource, Monotonic, MonotonicClock, MonotonicCoarse, Realtime,
    RealtimeCoarse, SameScale, SystemTime, SystemTimeSource, Timespec, UNIX_EPOCH, WallClock,
    clock_gettime, gettimeofday,
};

/// The seconds of 2023-11-14, which every time stamp here is after.
const PAST: i64 = 1_700_000_000;

#[test]
fn std() -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now();
    assert!(now.duration_since(SystemTime::UNIX_EPOCH)? == now.duration_since(UNIX_EPOCH)?);
    assert!(now.duration_since(UNIX_EPOCH)?.as_secs_f64() > PAST as f64);
    let start = Instant::now();
    let deadline = start
        .checked_add(Duration::from_secs(1))
        .ok_or("too late")?;
    assert_eq!(
        deadline.saturating_duration_since(start),
        Duration::from_secs(1)
    );
    assert!(std::time::Instant::from(deadline) > std::time::Instant::from(start));
    let error: std::io::Error = Errno::EINVAL.into();
    assert_eq!(Errno::try_from(error)?, Errno::EINVAL);
    Ok(())
}

/// Makes a deadline of a time-out that a caller chose, as crossbeam, flume and wasmtime do.
#[test]
fn a_time_out_without_end() {
    let start = Instant::now();
    for timeout in [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::from_secs(60),
    ] {
        assert!(start.saturating_add(timeout) > start);
    }
    assert!(start.saturating_sub(Duration::MAX) < start);
}

/// Reads milliseconds of the coarse wall clock, as tikv, restate and vector do.
#[test]
fn milliseconds() -> Result<(), Box<dyn Error>> {
    let now = RealtimeCoarse::now();
    let millis = now.as_millis();
    assert_eq!(
        u64::try_from(millis)?,
        now.duration_since(SystemTime::EPOCH)?.as_millis() as u64
    );
    assert_eq!(now.as_micros() / 1000, millis);
    assert_eq!(millis / 1000, now.as_secs());
    assert!(now.as_secs() > PAST);
    let from_disk = SystemTime::from_millis(millis);
    assert!(from_disk <= SystemTime::from(now));
    Ok(())
}

/// Takes seconds and nanoseconds since 1970 as a pair and as a `Duration`, as uuid and rustls do.
#[test]
fn seconds_and_nanoseconds() -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now();
    let pair = (now.as_secs() as u64, now.subsec_nanos());
    assert_eq!(
        now.duration_since(UNIX_EPOCH)?,
        Duration::new(pair.0, pair.1)
    );
    let Timespec { tv_sec, tv_nsec } = now.into();
    assert_eq!((tv_sec as u64, tv_nsec as u32), pair);
    assert_eq!(
        SystemTime::from_timespec(now.into())?.as_nanos(),
        now.as_nanos()
    );
    assert_eq!(SystemTime::from(StdSystemTime::from(now)), now);
    let micros = gettimeofday()?;
    assert!(
        SystemTime::try_from(micros)?.elapsed()? < Duration::from_secs(60),
        "{micros}"
    );
    Ok(())
}

/// Computes with the `timespec` of a clock by its number, as users of rustix and libc do.
#[test]
fn timespecs() -> Result<(), Box<dyn Error>> {
    let clock: ClockId = "CLOCK_MONOTONIC".parse()?;
    let start = clock_gettime(clock)?;
    let end = clock_gettime(clock)?;
    assert!(end.checked_duration_since(start).is_some());
    assert_eq!(
        (start + Duration::from_nanos(1)).checked_sub(Duration::from_nanos(1)),
        Some(start)
    );
    assert!(Instant::from_timespec(end)? >= Instant::from_timespec(start)?);
    Ok(())
}

/// Keeps a clock that is chosen at run time, as services and their tests do.
#[test]
fn a_clock_that_is_a_value() {
    struct Fixed(Instant);
    impl InstantSource for Fixed {
        fn try_now(&self) -> Result<Instant, Errno> {
            Ok(self.0)
        }
    }
    struct Service {
        clock: Box<dyn InstantSource>,
        started: Instant,
    }
    let started = Instant::from_millis(500);
    let service = |clock| Service { clock, started };
    let later = started + Duration::from_secs(1);
    let fixed = service(Box::new(Fixed(later)));
    assert_eq!(fixed.clock.now() - fixed.started, Duration::from_secs(1));
    let real = service(Box::new(Monotonic));
    assert!(real.clock.now() <= Instant::now());
    let wall: &dyn SystemTimeSource = &Realtime;
    assert!(wall.now().as_secs() > PAST);
}

/// Converts the times of a clock of the program, which are `CLOCK_MONOTONIC`'s, for other crates.
#[test]
fn a_deadline_of_a_clock_on_the_same_scale() {
    struct Turn;
    impl MonotonicClock for Turn {
        fn try_now() -> Result<Instant<Self>, Errno> {
            Ok(Instant::from_clock_nanos(Monotonic::try_now()?.as_nanos()))
        }
    }
    impl SameScale<Monotonic> for Turn {}
    fn wait_until(deadline: std::time::Instant) -> bool {
        deadline > std::time::Instant::now()
    }
    let minute = Duration::from_secs(60);
    assert!(wait_until((Turn::now() + minute).into()));
    assert!(wait_until((MonotonicCoarse::now() + minute).into()));
}

/// Runs code that is generic over its clock, as tick, embedded-time and Sans-IO libraries have it.
#[test]
fn a_generic_clock() {
    struct Lease<C> {
        end: Instant<C>,
    }
    impl<C: MonotonicClock> Lease<C> {
        fn new(length: Duration) -> Self {
            Self {
                end: C::now().saturating_add(length),
            }
        }
        fn left(&self) -> Duration {
            self.end.saturating_duration_since(C::now())
        }
    }
    enum Stopped {}
    impl MonotonicClock for Stopped {
        fn try_now() -> Result<Instant<Self>, Errno> {
            Ok(Instant::from_clock_nanos(5))
        }
    }
    const START: Instant<Stopped> = Instant::from_clock_nanos(5);
    assert_eq!(
        Lease::<Stopped>::new(Duration::MAX).left(),
        Duration::from_nanos(i64::MAX as u64 - 5)
    );
    assert_eq!(START.elapsed(), Duration::ZERO);
    assert!(Lease::<MonotonicCoarse>::new(Duration::from_secs(60)).left() > Duration::ZERO);
    fn age<C: WallClock>(made: SystemTime<C>) -> Duration {
        C::now().duration_since(made).unwrap_or_default()
    }
    let coarse = age::<RealtimeCoarse>(SystemTime::EPOCH);
    assert!(age::<Realtime>(UNIX_EPOCH) >= coarse);
    assert_eq!(SystemTime::<Realtime>::EPOCH, UNIX_EPOCH);
    assert_eq!(Instant::from_nanos(5).as_nanos(), 5);
}

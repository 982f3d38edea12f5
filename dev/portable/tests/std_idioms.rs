//! The promise: a program that replaces `use std::time` by `use vdso_time` compiles and does the
//! same.
//!
//! The idioms are compiled twice: with the types of std, which shows that these are std's idioms,
//! and with the types of this crate. Only one `use` line differs.

#![allow(
    clippy::pedantic,
    reason = "programs write it, though there are better ways"
)]

macro_rules! idioms {
    ($module:ident, $($time:tt)+) => {
        mod $module {
            use std::collections::HashSet;
            use std::error::Error;
            use std::fmt::Debug;
            use std::hash::Hash;
            use std::io;
            use std::ops::{Add, AddAssign, Sub, SubAssign};
            use std::panic::{RefUnwindSafe, UnwindSafe};
            use std::sync::LazyLock;
            use std::thread;

            use $($time)+ as time;
            use $($time)+::{
                Duration, Instant, SystemTime, SystemTimeError, TryFromFloatSecsError, UNIX_EPOCH,
            };

            const SECOND: Duration = Duration::from_secs(1);

            /// Every method and constant of std's two types at Rust 1.85 and 1.95.
            mod signatures {
                use super::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

                const _: fn() -> Instant = Instant::now;
                const _: fn(&Instant, Instant) -> Duration = Instant::duration_since;
                const _: fn(&Instant, Instant) -> Option<Duration> = Instant::checked_duration_since;
                const _: fn(&Instant, Instant) -> Duration = Instant::saturating_duration_since;
                const _: fn(&Instant) -> Duration = Instant::elapsed;
                const _: [fn(&Instant, Duration) -> Option<Instant>; 2] =
                    [Instant::checked_add, Instant::checked_sub];

                const _: [SystemTime; 2] = [SystemTime::UNIX_EPOCH, UNIX_EPOCH];
                const _: fn() -> SystemTime = SystemTime::now;
                const _: fn(&SystemTime, SystemTime) -> Result<Duration, SystemTimeError> =
                    SystemTime::duration_since;
                const _: fn(&SystemTime) -> Result<Duration, SystemTimeError> = SystemTime::elapsed;
                const _: [fn(&SystemTime, Duration) -> Option<SystemTime>; 2] =
                    [SystemTime::checked_add, SystemTime::checked_sub];

                const _: fn(&SystemTimeError) -> Duration = SystemTimeError::duration;
            }

            #[test]
            fn the_types_have_the_traits_of_std() {
                fn is_sound<T>()
                where
                    T: Debug + Send + Sync + 'static,
                    T: Unpin + UnwindSafe + RefUnwindSafe,
                {
                }
                fn is_time<T>()
                where
                    T: Copy + Eq + Ord + Hash,
                    T: AddAssign<Duration> + SubAssign<Duration>,
                {
                }
                fn moves<T>()
                where
                    T: Add<Duration, Output = T>,
                    T: Sub<Duration, Output = T>,
                {
                }
                fn subtracts<T: Sub<T, Output = Duration>>() {}
                fn is_error<T: Error + Clone>() {}

                is_sound::<Instant>();
                is_sound::<SystemTime>();
                is_sound::<SystemTimeError>();
                is_time::<Instant>();
                is_time::<SystemTime>();
                moves::<Instant>();
                moves::<SystemTime>();
                subtracts::<Instant>();
                is_error::<SystemTimeError>();
            }

            #[test]
            fn the_seconds_since_the_epoch() -> Result<(), SystemTimeError> {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
                let later = SystemTime::UNIX_EPOCH.elapsed()?;
                assert!(later.as_secs() >= since_epoch.as_secs());
                let stamp = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
                assert!(SystemTime::now() > stamp);
                assert!(stamp - SECOND > UNIX_EPOCH);
                Ok(())
            }

            #[test]
            fn seconds_of_a_floating_point_number() {
                fn parsed(seconds: f64) -> Result<time::Duration, TryFromFloatSecsError> {
                    time::Duration::try_from_secs_f64(seconds)
                }
                assert_eq!(parsed(1.0), Ok(SECOND));
                assert!(parsed(-1.0).is_err());
            }

            #[test]
            fn an_error_says_by_how_much() {
                fn boxed(now: SystemTime) -> Result<Duration, Box<dyn Error + Send + Sync>> {
                    Ok(now.duration_since(now + SECOND)?)
                }
                let now = SystemTime::now();
                let error: SystemTimeError = now.duration_since(now + SECOND).unwrap_err();
                assert_eq!(error.duration(), SECOND);
                assert_eq!(io::Error::other(error).kind(), io::ErrorKind::Other);
                assert!(boxed(now).unwrap_err().downcast_ref::<SystemTimeError>().is_some());
            }

            /// The default parameters apply: neither type needs a clock to be named.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            struct Event {
                at: Instant,
                stamp: Option<SystemTime>,
            }

            #[test]
            fn a_time_is_kept_and_goes_to_another_thread() {
                static START: LazyLock<Instant> = LazyLock::new(Instant::now);
                let event = Event {
                    at: *START,
                    stamp: None,
                };
                let later = Event {
                    at: event.at + SECOND,
                    ..event
                };
                assert!(later > event);
                assert_eq!(HashSet::from([event, event]).len(), 1);
                let elapsed = [event.at].iter().map(Instant::elapsed).max();
                assert!(elapsed <= Some(START.elapsed()));
                let clock: Box<dyn Fn() -> Instant + Send + Sync> = Box::new(Instant::now);
                let there = thread::scope(|scope| scope.spawn(&clock).join().unwrap());
                assert!(there >= *START);
            }
        }
    };
}

idioms!(with_std, std::time);
idioms!(with_vdso_time, vdso_time);

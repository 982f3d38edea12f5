//! The promise: a program that says `use vdso_time` where it said `use std::time` compiles and
//! means the same.
//!
//! The idioms are compiled twice: with the types of std, which shows that these are std's idioms,
//! and with the types of this crate. Only one `use` line differs.

#![allow(clippy::pedantic, reason = "programs write it, though there are better ways")]

macro_rules! idioms {
    ($module:ident, $($time:tt)+) => {
        mod $module {
            use std::cell::Cell;
            use std::cmp::Reverse;
            use std::collections::{BinaryHeap, HashSet};
            use std::error::Error;
            use std::fmt::Debug;
            use std::hash::Hash;
            use std::io;
            use std::ops::{Add, AddAssign, Sub, SubAssign};
            use std::panic::{RefUnwindSafe, UnwindSafe};
            use std::sync::{LazyLock, mpsc};
            use std::thread;

            use $($time)+::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

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
                fn is_sound<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
                fn is_time<T: Copy + Eq + Ord + Hash + AddAssign<Duration> + SubAssign<Duration>>() {}
                fn moves<T: Add<Duration, Output = T> + Sub<Duration, Output = T>>() {}
                fn subtracts<T: Sub<T, Output = Duration>>() {}
                fn is_error<T: Error + Clone>() {}
                is_sound::<(Instant, SystemTime, SystemTimeError)>();
                is_time::<Instant>();
                is_time::<SystemTime>();
                moves::<Instant>();
                moves::<SystemTime>();
                subtracts::<Instant>();
                is_error::<SystemTimeError>();
            }

            #[test]
            fn a_duration_is_measured_and_an_instant_moves() {
                let start = Instant::now();
                let elapsed = start.elapsed();
                assert!(Instant::now().duration_since(start) >= elapsed && Instant::now() - start >= elapsed);
                println!("{start:?} {elapsed:.2?} {} ms {} s", elapsed.as_millis(), elapsed.as_secs_f64());
                let later = start + SECOND;
                assert_eq!((later.duration_since(start), start.duration_since(later)), (SECOND, Duration::ZERO));
                assert_eq!(start - later, Duration::ZERO);
                assert_eq!(later.checked_duration_since(start), Some(SECOND));
                assert_eq!(start.checked_duration_since(later), None);
                assert_eq!(start.saturating_duration_since(later), Duration::ZERO);
                assert_eq!(Instant::checked_add(&start, SECOND), Some(later));
                assert_eq!(Instant::checked_sub(&later, SECOND), Some(start));
                assert_eq!(start.checked_add(Duration::MAX), None);
                let mut moving = start;
                moving += 3 * SECOND;
                moving -= SECOND;
                assert_eq!((moving, moving - 2 * SECOND), (start + 2 * SECOND, start));
                assert_eq!((start.max(moving), start.min(moving)), (moving, start));
                assert_eq!((start - SECOND).clamp(start, moving), start);
            }

            /// A trait like governor's `Reference`, whose methods have the inherent ones' names.
            trait Moment: Sized {
                fn duration_since(&self, earlier: Self) -> Duration;
                fn checked_add(&self, duration: Duration) -> Option<Self>;
                fn elapsed(&self) -> Option<Duration>;
            }

            impl Moment for Instant {
                fn duration_since(&self, earlier: Self) -> Duration {
                    self.duration_since(earlier)
                }
                fn checked_add(&self, duration: Duration) -> Option<Self> {
                    self.checked_add(duration)
                }
                fn elapsed(&self) -> Option<Duration> {
                    Some(self.elapsed())
                }
            }

            impl Moment for SystemTime {
                fn duration_since(&self, earlier: Self) -> Duration {
                    self.duration_since(earlier).unwrap_or_default()
                }
                fn checked_add(&self, duration: Duration) -> Option<Self> {
                    self.checked_add(duration)
                }
                fn elapsed(&self) -> Option<Duration> {
                    self.elapsed().ok()
                }
            }

            #[test]
            fn a_trait_of_the_same_method_names_does_not_call_itself() {
                fn a_second_later<T: Moment + Copy>(time: T) -> Option<Duration> {
                    assert!(time.elapsed().is_some());
                    Some(time.checked_add(SECOND)?.duration_since(time))
                }
                assert_eq!(a_second_later(Instant::now()), Some(SECOND));
                assert_eq!(a_second_later(UNIX_EPOCH), Some(SECOND));
            }

            #[test]
            fn the_seconds_since_the_epoch() -> Result<(), SystemTimeError> {
                const STAMP: u64 = 1_700_000_000;
                static EPOCH: SystemTime = UNIX_EPOCH;
                let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
                assert!(SystemTime::UNIX_EPOCH.elapsed()?.as_secs() >= seconds);
                let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
                assert!(nanos < 1_000_000_000);
                match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
                    Ok(since) => println!("1970-01-01 00:00:00 UTC was {} seconds ago!", since.as_secs()),
                    Err(_) => panic!("SystemTime before UNIX EPOCH!"),
                }
                let stamp = SystemTime::UNIX_EPOCH + Duration::from_secs(STAMP);
                assert_eq!(UNIX_EPOCH.checked_add(Duration::from_secs(STAMP)), Some(stamp));
                assert_eq!(stamp.duration_since(EPOCH).map(|since| since.as_secs()).ok(), Some(STAMP));
                assert!(SystemTime::now() > stamp && stamp > UNIX_EPOCH);
                let mut moving = stamp;
                moving += SECOND;
                moving -= 2 * SECOND;
                assert_eq!((moving, stamp.checked_sub(SECOND)), (stamp - SECOND, Some(moving)));
                Ok(())
            }

            #[test]
            fn an_error_says_by_how_much() {
                fn boxed(now: SystemTime) -> Result<Duration, Box<dyn Error + Send + Sync>> {
                    Ok(now.duration_since(now + SECOND)?)
                }
                let now = SystemTime::now();
                let error: SystemTimeError = now.duration_since(now + SECOND).unwrap_err();
                assert_eq!(error.duration(), SECOND);
                assert!((now + 3600 * SECOND).elapsed().is_err_and(|error| error.duration() > SECOND));
                assert!(!error.to_string().is_empty());
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
            fn a_time_is_kept_in_structs_collections_and_cells() {
                static START: LazyLock<Instant> = LazyLock::new(Instant::now);
                let event = Event { at: *START, stamp: None };
                assert!(Event { at: event.at + SECOND, ..event } > event);
                assert_eq!(HashSet::from([event, event]).len(), 1);
                let mut queue = BinaryHeap::from([Reverse(event.at + SECOND), Reverse(event.at)]);
                assert_eq!(queue.pop(), Some(Reverse(event.at)));
                let last = Cell::new(None::<Instant>);
                assert!(last.replace(event.stamp.map(|_| event.at)).unwrap_or_else(Instant::now) >= *START);
                let elapsed = [event.at].iter().map(Instant::elapsed).max();
                assert!(elapsed <= Some(START.elapsed()));
            }

            #[test]
            fn a_deadline_bounds_a_wait_and_a_time_goes_to_another_thread() {
                let deadline = Instant::now() + Duration::from_millis(1);
                let left = || deadline.saturating_duration_since(Instant::now());
                let (_sender, receiver) = mpsc::channel::<()>();
                assert!(receiver.recv_timeout(left()).is_err());
                while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                    thread::sleep(left);
                }
                assert!(Instant::now() >= deadline && left().is_zero());
                let there = thread::spawn(move || (deadline.elapsed(), Instant::now())).join().unwrap();
                assert!(there.1 >= deadline && there.1 - deadline >= there.0);
                let clock: Box<dyn Fn() -> Instant + Send + Sync> = Box::new(Instant::now);
                assert!(thread::scope(|scope| scope.spawn(&clock).join().unwrap()) >= deadline);
            }
        }
    };
}

idioms!(with_std, std::time);
#[cfg(any(target_os = "linux", target_os = "android"))]
idioms!(with_vdso_time, vdso_time);

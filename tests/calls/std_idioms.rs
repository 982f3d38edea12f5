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
            use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
            use std::error::Error;
            use std::fmt::Debug;
            use std::hash::Hash;
            use std::io;
            use std::ops::{Add, AddAssign, Sub, SubAssign};
            use std::panic::{RefUnwindSafe, UnwindSafe};
            use std::sync::{Condvar, LazyLock, Mutex, OnceLock, mpsc};
            use std::thread;

            use $($time)+::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

            const SECOND: Duration = Duration::from_secs(1);

            /// Every method and constant of std's two types, at Rust 1.85 and 1.95, with its signature.
            mod signatures {
                use super::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

                const _: fn() -> Instant = Instant::now;
                const _: fn(&Instant, Instant) -> Duration = Instant::duration_since;
                const _: fn(&Instant, Instant) -> Option<Duration> = Instant::checked_duration_since;
                const _: fn(&Instant, Instant) -> Duration = Instant::saturating_duration_since;
                const _: fn(&Instant) -> Duration = Instant::elapsed;
                const _: fn(&Instant, Duration) -> Option<Instant> = Instant::checked_add;
                const _: fn(&Instant, Duration) -> Option<Instant> = Instant::checked_sub;

                const _: SystemTime = SystemTime::UNIX_EPOCH;
                const _: SystemTime = UNIX_EPOCH;
                const _: fn() -> SystemTime = SystemTime::now;
                const _: fn(&SystemTime, SystemTime) -> Result<Duration, SystemTimeError> = SystemTime::duration_since;
                const _: fn(&SystemTime) -> Result<Duration, SystemTimeError> = SystemTime::elapsed;
                const _: fn(&SystemTime, Duration) -> Option<SystemTime> = SystemTime::checked_add;
                const _: fn(&SystemTime, Duration) -> Option<SystemTime> = SystemTime::checked_sub;

                const _: fn(&SystemTimeError) -> Duration = SystemTimeError::duration;
            }

            #[test]
            fn the_types_have_the_traits_of_std() {
                fn is_sound<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
                fn is_time<T: Copy + Eq + Ord + Hash>() {}
                fn moves<T: Add<Duration, Output = T> + Sub<Duration, Output = T>>() {}
                fn is_moved<T: AddAssign<Duration> + SubAssign<Duration>>() {}
                fn subtracts<T: Sub<T, Output = Duration>>() {}
                fn is_error<T: Error + Clone>() {}
                is_sound::<Instant>();
                is_sound::<SystemTime>();
                is_sound::<SystemTimeError>();
                is_time::<Instant>();
                is_time::<SystemTime>();
                moves::<Instant>();
                moves::<SystemTime>();
                is_moved::<Instant>();
                is_moved::<SystemTime>();
                subtracts::<Instant>();
                is_error::<SystemTimeError>();
            }

            #[test]
            fn a_duration_is_measured() {
                let start = Instant::now();
                let elapsed = start.elapsed();
                assert!(Instant::now().duration_since(start) >= elapsed);
                assert!(Instant::now() - start >= elapsed);
                println!("{start:?} {elapsed:.2?} {} ms {} s", elapsed.as_millis(), elapsed.as_secs_f64());
            }

            #[test]
            fn a_later_instant_saturates_or_is_none() {
                let now = Instant::now();
                let later = now + SECOND;
                assert_eq!(later.duration_since(now), SECOND);
                assert_eq!(now.duration_since(later), Duration::ZERO);
                assert_eq!(now - later, Duration::ZERO);
                assert_eq!(later.checked_duration_since(now), Some(SECOND));
                assert_eq!(now.checked_duration_since(later), None);
                assert_eq!(later.saturating_duration_since(now), SECOND);
                assert_eq!(now.saturating_duration_since(later), Duration::ZERO);
                assert_eq!(Instant::checked_add(&now, SECOND), Some(later));
                assert_eq!(Instant::checked_sub(&later, SECOND), Some(now));
                assert_eq!(now.checked_add(Duration::MAX), None);
            }

            #[test]
            fn an_instant_moves_by_a_duration() {
                let start = Instant::now();
                let mut moving = start;
                moving += 3 * SECOND;
                moving -= SECOND;
                assert_eq!(moving, start + 2 * SECOND);
                assert_eq!(moving - 2 * SECOND, start);
                assert_eq!(start.max(moving), moving);
                assert_eq!(start.min(moving), start);
                assert_eq!((start - SECOND).clamp(start, moving), start);
            }

            #[test]
            fn a_method_is_a_function_of_a_reference() {
                let starts = [Instant::now(), Instant::now()];
                let longest: Option<Duration> = starts.iter().map(Instant::elapsed).max();
                assert!(longest >= starts.last().map(Instant::elapsed).map(|_| Duration::ZERO));
                let maybe: Option<Instant> = starts.first().copied();
                assert!(maybe.as_ref().map(Instant::elapsed).is_some());
                assert!(Instant::elapsed(&starts[0]) >= Duration::ZERO);
                assert!(Instant::duration_since(&starts[1], starts[0]) <= starts[0].elapsed());

                let stamps = [UNIX_EPOCH, UNIX_EPOCH + SECOND];
                assert_eq!(stamps.iter().map(SystemTime::elapsed).filter_map(Result::ok).count(), 2);
                assert_eq!(stamps.iter().filter_map(|time| time.checked_add(SECOND)).max(), Some(stamps[1] + SECOND));
                let gaps: Vec<Duration> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert_eq!(gaps, [starts[1].duration_since(starts[0])]);
            }

            /// A trait like governor's `Reference`, whose methods have the names of the inherent ones.
            trait Moment {
                fn duration_since(&self, earlier: Self) -> Duration;
                fn checked_add(&self, duration: Duration) -> Option<Self>
                where
                    Self: Sized;
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
                let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
                assert!(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis() / 1000 >= seconds.into());
                assert!(SystemTime::UNIX_EPOCH.elapsed()?.as_secs() >= seconds);
                assert!(UNIX_EPOCH.elapsed()?.as_secs() >= seconds);
                let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
                assert!(nanos < 1_000_000_000);
                match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
                    Ok(since) => println!("1970-01-01 00:00:00 UTC was {} seconds ago!", since.as_secs()),
                    Err(_) => panic!("SystemTime before UNIX EPOCH!"),
                }
                Ok(())
            }

            #[test]
            fn a_system_time_is_made_of_a_count() {
                const STAMP: u64 = 1_700_000_000;
                static EPOCH: SystemTime = UNIX_EPOCH;
                let stamp = SystemTime::UNIX_EPOCH + Duration::from_secs(STAMP);
                assert_eq!(UNIX_EPOCH.checked_add(Duration::from_secs(STAMP)), Some(stamp));
                assert_eq!(stamp.duration_since(EPOCH).map(|since| since.as_secs()).ok(), Some(STAMP));
                assert!(SystemTime::now() > stamp && stamp > UNIX_EPOCH && SystemTime::UNIX_EPOCH == UNIX_EPOCH);
                let mut moving = stamp;
                moving += SECOND;
                moving -= 2 * SECOND;
                assert_eq!(moving, stamp - SECOND);
                assert_eq!(stamp.checked_sub(SECOND), Some(moving));
                println!("{stamp:?}");
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
                let signed = now.duration_since(now + SECOND).map_or_else(|e| -e.duration().as_secs_f64(), |_| 0.0);
                assert!(signed < 0.0);
            }

            /// The default parameters apply: neither type needs a clock to be named.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            struct Event {
                at: Instant,
                stamp: SystemTime,
                deadline: Option<Instant>,
            }

            impl Event {
                fn new(timeout: Option<Duration>) -> Self {
                    let at = Instant::now();
                    Self { at, stamp: SystemTime::now(), deadline: timeout.and_then(|timeout| at.checked_add(timeout)) }
                }

                fn is_late(&self) -> bool {
                    self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
                }
            }

            impl From<SystemTime> for Event {
                fn from(stamp: SystemTime) -> Self {
                    Self { stamp, ..Self::new(None) }
                }
            }

            #[test]
            fn a_struct_derives_what_its_times_have() {
                let event = Event::new(Some(Duration::ZERO));
                assert!(event.is_late() && !Event::new(None).is_late());
                assert_eq!(Event::from(UNIX_EPOCH).stamp, UNIX_EPOCH);
                assert!(Event { at: event.at + SECOND, ..event } > event);
                assert_eq!(HashSet::from([event, event]).len(), 1);
                assert!(format!("{event:?}").starts_with("Event"));
            }

            #[test]
            fn a_time_is_kept_in_collections_and_cells() {
                static START: LazyLock<Instant> = LazyLock::new(Instant::now);
                static FIRST: OnceLock<SystemTime> = OnceLock::new();
                assert!(START.elapsed() >= Duration::ZERO);
                assert!(*FIRST.get_or_init(SystemTime::now) > UNIX_EPOCH);

                let now = Instant::now();
                let mut seen: HashMap<&str, Instant> = HashMap::new();
                assert!(*seen.entry("first").or_insert_with(Instant::now) >= now);
                let mut queue = BinaryHeap::from([Reverse(now + SECOND), Reverse(now)]);
                assert_eq!(queue.pop(), Some(Reverse(now)));
                let log = BTreeMap::from([(UNIX_EPOCH + SECOND, "late"), (UNIX_EPOCH, "early")]);
                assert_eq!(log.range(..=UNIX_EPOCH).count(), 1);
                let last = Cell::new(None::<Instant>);
                assert!(last.replace(Some(now)).unwrap_or_else(Instant::now) >= now);
                let mut times = [now + SECOND, now];
                times.sort_unstable();
                assert_eq!(times.iter().min(), times.first());
            }

            #[test]
            fn a_deadline_bounds_a_wait() {
                let deadline = Instant::now() + Duration::from_millis(1);
                let left = || deadline.saturating_duration_since(Instant::now());
                let (sender, receiver) = mpsc::channel::<()>();
                assert!(receiver.recv_timeout(left()).is_err());
                drop(sender);
                let (ready, changed) = (Mutex::new(false), Condvar::new());
                let mut guard = ready.lock().unwrap();
                while !*guard && Instant::now() < deadline {
                    guard = changed.wait_timeout(guard, deadline - Instant::now()).unwrap().0;
                }
                while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                    thread::sleep(left);
                }
                assert!(Instant::now() >= deadline && left().is_zero());
            }

            #[test]
            fn a_time_goes_to_another_thread() {
                let start = Instant::now();
                let there = thread::spawn(move || (start.elapsed(), Instant::now())).join().unwrap();
                assert!(there.1 >= start && there.1 - start >= there.0);
                let clock: Box<dyn Fn() -> Instant + Send + Sync> = Box::new(Instant::now);
                assert!(thread::scope(|scope| scope.spawn(&clock).join().unwrap()) >= start);
            }
        }
    };
}

idioms!(with_std, std::time);
#[cfg(any(target_os = "linux", target_os = "android"))]
idioms!(with_vdso_time, vdso_time);

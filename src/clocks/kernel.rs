//! The kernel's clocks.

use core::marker::PhantomData;

#[cfg(vdso_time_clock)]
use super::common::cannot_read;
#[cfg(vdso_time_clock)]
use super::monotonic::{Instant, MonotonicClock};
use super::scale::SameScale;
#[cfg(vdso_time_clock)]
use super::source::{InstantSource, SystemTimeSource};
#[cfg(vdso_time_clock)]
use super::wall::{SystemTime, WallClock};
#[cfg(vdso_time_clock)]
use crate::errno::Errno;
#[cfg(vdso_time_clock)]
use crate::sys::calls;
#[cfg(vdso_time_clock)]
use crate::types::ClockId;

/// Defines clocks and, on targets that can read a clock, the functions that read them.
///
/// Each clock is a struct. The name of the struct is followed by the trait that the type implements
/// (such as `MonotonicClock`), the trait for values of the type (such as `InstantSource`), the type
/// of the clock's times, and the clock's id.
///
/// This macro defines `now` and `try_now` itself, in the module of the struct, and calls no other
/// macro for them. This keeps error messages short: if an error in a user's program concerns one of
/// these functions, rustc shows the function's path and each macro around the function.
macro_rules! clocks {
    ($(
        $(#[$attribute:meta])*
        pub struct $Clock:ident $(($field:ty))?:
            $Trait:ident, $Source:ident, $Time:ident = $ID:ident;
    )+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Clock $(($field))?;

        #[cfg(vdso_time_clock)]
        impl $Clock {
            /// Returns the time of this clock.
            ///
            /// # Panics
            ///
            /// If the clock cannot be read. `try_now` returns the error.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> $Time<Self> {
                match Self::try_now() {
                    Ok(now) => now,
                    Err(error) => cannot_read::<Self>(error),
                }
            }

            /// Returns the time of this clock, or the error of the read.
            ///
            /// # Errors
            ///
            /// The errors of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, Errno> {
                calls::clock_gettime(ClockId::$ID).map($Time::from_kernel)
            }
        }

        #[cfg(vdso_time_clock)]
        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }
        }

        #[cfg(vdso_time_clock)]
        impl $Source<Self> for $Clock {
            #[inline]
            fn try_now(&self) -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }
        }
    )+};
}

// These clocks exist on every system. On systems other than Linux, std's clocks answer:
// `MonotonicCoarse` reads the same clock as `Monotonic`, and `RealtimeCoarse` the same as
// `Realtime`.
clocks! {
    /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stops while the system is suspended.
    pub struct Monotonic: MonotonicClock, InstantSource, Instant = MONOTONIC;

    /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, usually at most 10 ms
    /// ago. A read does not need the CPU's counter.
    ///
    /// Its times convert `into` an [`Instant`](crate::Instant).
    pub struct MonotonicCoarse: MonotonicClock, InstantSource, Instant = MONOTONIC_COARSE;

    /// `CLOCK_REALTIME`: the wall clock, UTC without leap seconds. It can step, and it advances
    /// while the system is suspended.
    pub struct Realtime: WallClock, SystemTimeSource, SystemTime = REALTIME;

    /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, usually at most 10 ms ago.
    /// A read does not need the CPU's counter.
    ///
    /// Its times convert `into` a [`SystemTime`](crate::SystemTime) and into std's type, and so
    /// into the types of chrono, jiff and time:
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use vdso_time::RealtimeCoarse;
    ///
    /// let now = std::time::SystemTime::from(RealtimeCoarse::now());
    /// // chrono::DateTime::<chrono::Utc>::from(now)
    /// # assert!(now > std::time::UNIX_EPOCH);
    /// # }
    /// ```
    pub struct RealtimeCoarse: WallClock, SystemTimeSource, SystemTime = REALTIME_COARSE;
}

#[cfg(vdso_time_linux)]
clocks! {
    /// `CLOCK_MONOTONIC_RAW`: advances at the hardware's own rate, which NTP does not slew. It
    /// stops while the system is suspended.
    pub struct MonotonicRaw: MonotonicClock, InstantSource, Instant = MONOTONIC_RAW;

    /// `CLOCK_BOOTTIME`: like `CLOCK_MONOTONIC`, but it also advances while the system is
    /// suspended.
    pub struct Boottime: MonotonicClock, InstantSource, Instant = BOOTTIME;

    /// `CLOCK_PROCESS_CPUTIME_ID`: the CPU time that all threads of this process have used.
    ///
    /// A read is a system call. In a forked child the clock begins at 0, so times that its parent
    /// read are in the child's future.
    pub struct ProcessCpuTime: MonotonicClock, InstantSource, Instant = PROCESS_CPUTIME;

    /// `CLOCK_THREAD_CPUTIME_ID`: the CPU time that the calling thread has used.
    ///
    /// A read is a system call. Each thread has its own clock, so a time has no meaning in another
    /// thread. Therefore neither the clock nor its times are [`Send`] or [`Sync`]:
    ///
    /// ```compile_fail,E0277
    /// use vdso_time::ThreadCpuTime;
    ///
    /// let start = ThreadCpuTime::now();
    /// std::thread::spawn(move || start.elapsed());
    /// ```
    ///
    /// A duration can go to another thread:
    ///
    /// ```
    /// use vdso_time::ThreadCpuTime;
    ///
    /// let start = ThreadCpuTime::now();
    /// let used = start.elapsed();
    /// std::thread::spawn(move || println!("{used:?}")).join().unwrap();
    /// ```
    ///
    /// As a value, the clock is `ThreadCpuTime::default()`.
    pub struct ThreadCpuTime(PhantomData<*const ()>):
        MonotonicClock, InstantSource, Instant = THREAD_CPUTIME;

    /// `CLOCK_TAI`: International Atomic Time, which counts leap seconds.
    ///
    /// This clock equals `CLOCK_REALTIME` until NTP sets the offset between the two clocks. Like
    /// `CLOCK_REALTIME`, it can step.
    pub struct Tai: WallClock, SystemTimeSource, SystemTime = TAI;
}

impl SameScale<Monotonic> for MonotonicCoarse {}
impl SameScale<Realtime> for RealtimeCoarse {}

//! The common part of `Instant` and `SystemTime`: a macro, because they share no trait.
//!
//! The macro does not define `now` and `try_now`. No macro defines the traits `MonotonicClock`,
//! `WallClock`, `InstantSource` and `SystemTimeSource` either. The reason is the error messages
//! that users see: if an error in a user's program concerns a function that a macro defines, rustc
//! also shows the macro and each invocation around it. When a macro defined `Instant::now`, this
//! took 25 lines. rustc also printed the function's path as `clocks::common::<impl Instant>::now`.

use core::any::type_name;

use crate::errno::Errno;

/// Implements what the times of all clocks need: arithmetic, conversions, and the traits that std's
/// `Instant` and `SystemTime` implement.
///
/// The type must have the fields `time` and `clock`. The methods defined here call methods of the
/// same names on `time`.
macro_rules! time_of_a_clock {
    (
        $Time:ident of $Inner:ident, $Nanos:ident, $Scale:ident, $clock:literal,
        nanos: $nanos_fit:literal, timespec: $timespec_fits:literal,
    ) => {
        impl $Time {
            #[doc = concat!("Creates a time of `", $clock, "` from nanoseconds since its zero.")]
            ///
            /// [`from_clock_nanos`](Self::from_clock_nanos) does the same for any clock. There are
            /// two functions, because Rust ignores the default of a type parameter when it infers
            /// types: if `from_nanos` were generic over the clock, callers would have to name the
            /// clock even if they meant the default one.
            ///
            #[doc = $nanos_fit]
            #[inline]
            #[must_use]
            #[track_caller]
            pub const fn from_nanos(nanos: $Nanos) -> Self {
                Self::from_clock_nanos(nanos)
            }

            #[doc = concat!("Creates a time of `", $clock, "` from seconds and nanoseconds since its zero.")]
            ///
            /// `try_from` does the same for any clock. Its callers must name the clock, for example
            /// in the type of the result, because Rust ignores the default of a type parameter when
            /// it infers types.
            ///
            /// # Errors
            ///
            /// The errors of `try_from`.
            #[inline]
            pub fn from_timespec(time: Timespec) -> Result<Self, Errno> {
                time.try_into()
            }
        }

        impl<C> $Time<C> {
            #[inline]
            const fn new(time: $Inner) -> Self {
                Self { time, clock: PhantomData }
            }

            /// Creates a time from the kernel's answer.
            #[inline]
            pub(super) const fn from_kernel(time: Timespec) -> Self {
                Self::new($Inner::from_kernel(time))
            }

            /// Returns the time `duration` later, or `None` if it does not fit.
            #[inline]
            #[must_use]
            pub const fn checked_add(&self, duration: Duration) -> Option<Self> {
                match self.time.checked_add(duration) {
                    Some(time) => Some(Self::new(time)),
                    None => None,
                }
            }

            /// Returns the time `duration` earlier, or `None` if it does not fit.
            #[inline]
            #[must_use]
            pub const fn checked_sub(&self, duration: Duration) -> Option<Self> {
                match self.time.checked_sub(duration) {
                    Some(time) => Some(Self::new(time)),
                    None => None,
                }
            }

            /// Returns the time `duration` later, or the latest time that fits.
            ///
            /// A program that computes a deadline with this function need not treat
            /// `Duration::MAX` as a special case.
            #[inline]
            #[must_use]
            pub const fn saturating_add(&self, duration: Duration) -> Self {
                match self.checked_add(duration) {
                    Some(later) => later,
                    None => Self::new($Inner::MAX),
                }
            }

            /// Returns the time `duration` earlier, or the earliest time that fits.
            #[inline]
            #[must_use]
            pub const fn saturating_sub(&self, duration: Duration) -> Self {
                match self.checked_sub(duration) {
                    Some(earlier) => earlier,
                    None => Self::new($Inner::MIN),
                }
            }
        }

        impl<C: SameScale<$Scale>> From<$Time<C>> for $Time {
            #[doc = concat!("Converts a time of a clock on the scale of `", $clock, "`.")]
            #[inline]
            fn from(time: $Time<C>) -> Self {
                Self::new(time.time)
            }
        }

        /// Requires the feature `std`.
        #[cfg(feature = "std")]
        impl<C: SameScale<$Scale>> From<$Time<C>> for std::time::$Time {
            #[doc = concat!("Converts a time of a clock on the scale of `", $clock, "`, as if it were a time of that clock.")]
            #[track_caller]
            fn from(time: $Time<C>) -> Self {
                <$Time>::from(time).into()
            }
        }

        impl<C> From<$Time<C>> for Timespec {
            /// Converts a time to seconds and nanoseconds since the clock's zero.
            #[inline]
            fn from(time: $Time<C>) -> Self {
                time.time.timespec()
            }
        }

        impl<C> TryFrom<Timespec> for $Time<C> {
            type Error = Errno;

            /// Converts seconds and nanoseconds since the clock's zero, such as a time stamp of a
            /// file.
            ///
            /// Name the clock in the result's type, because a `Timespec` does not name it.
            ///
            /// # Errors
            ///
            /// - `EINVAL`: `tv_nsec` is not in `0..1_000_000_000`.
            #[doc = $timespec_fits]
            #[inline]
            fn try_from(time: Timespec) -> Result<Self, Errno> {
                $Inner::from_timespec(time).map(Self::new)
            }
        }

        operators!([C] $Time<C>, "instant");

        // These traits are not derived, because a derive would require that `C` implements each of
        // them as well.

        impl<C> Clone for $Time<C> {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<C> Copy for $Time<C> {}

        impl<C> PartialEq for $Time<C> {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.time == other.time
            }
        }

        impl<C> Eq for $Time<C> {}

        impl<C> PartialOrd for $Time<C> {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl<C> Ord for $Time<C> {
            #[inline]
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.time.cmp(&other.time)
            }
        }

        impl<C> core::hash::Hash for $Time<C> {
            #[inline]
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                self.time.hash(state);
            }
        }

        impl<C> core::fmt::Debug for $Time<C> {
            #[doc = concat!("Formats the time as std does: `", stringify!($Time), " { tv_sec: 12, tv_nsec: 345 }`.")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let Timespec { tv_sec, tv_nsec } = self.time.timespec();
                let mut fields = f.debug_struct(stringify!($Time));
                fields.field("tv_sec", &tv_sec).field("tv_nsec", &tv_nsec).finish()
            }
        }
    };
}

pub(super) use time_of_a_clock;

/// Panics because `now` cannot read clock `C`.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn cannot_read<C: ?Sized>(error: Errno) -> ! {
    panic!(
        "cannot read {}: {error} (try_now() returns this error)",
        type_name::<C>()
    )
}

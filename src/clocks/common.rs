//! What `Instant` and `SystemTime` have in common, as macros, because they share no trait.

use core::any::type_name;

use crate::errno::Errno;

/// The default clock's reads, and the traits of std's types.
///
/// The type has a field `time`, and its own `checked_add` and `checked_sub`.
macro_rules! time_of_a_clock {
    ($Time:ident, $Default:ident, $clock:literal) => {
        impl $Time {
            #[doc = concat!("Returns the time of `", $clock, "`.")]
            ///
            /// # Panics
            ///
            /// If the clock cannot be read. `try_now` returns the error.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> Self {
                $Default::now()
            }

            #[doc = concat!("Returns the time of `", $clock, "`, or the error of the read.")]
            ///
            /// # Errors
            ///
            /// Those of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<Self, crate::errno::Errno> {
                $Default::try_now()
            }
        }

        impl<C> core::ops::Add<core::time::Duration> for $Time<C> {
            type Output = Self;

            /// Returns the time this much later.
            ///
            /// # Panics
            ///
            /// If it does not fit. `checked_add` returns `None` then.
            #[inline]
            #[track_caller]
            fn add(self, duration: core::time::Duration) -> Self {
                self.checked_add(duration).expect("overflow when adding duration to instant")
            }
        }

        impl<C> core::ops::Sub<core::time::Duration> for $Time<C> {
            type Output = Self;

            /// Returns the time this much earlier.
            ///
            /// # Panics
            ///
            /// If it does not fit. `checked_sub` returns `None` then.
            #[inline]
            #[track_caller]
            fn sub(self, duration: core::time::Duration) -> Self {
                self.checked_sub(duration).expect("overflow when subtracting duration from instant")
            }
        }

        impl<C> core::ops::AddAssign<core::time::Duration> for $Time<C> {
            /// Makes the time later. Panics as `+` does.
            #[inline]
            #[track_caller]
            fn add_assign(&mut self, duration: core::time::Duration) {
                *self = *self + duration;
            }
        }

        impl<C> core::ops::SubAssign<core::time::Duration> for $Time<C> {
            /// Makes the time earlier. Panics as `-` does.
            #[inline]
            #[track_caller]
            fn sub_assign(&mut self, duration: core::time::Duration) {
                *self = *self - duration;
            }
        }

        // Not derived, because a derive would require each trait of `C` too.

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
                let time = $crate::types::Timespec::from(*self);
                let mut fields = f.debug_struct(stringify!($Time));
                fields.field("tv_sec", &time.tv_sec).field("tv_nsec", &time.tv_nsec).finish()
            }
        }
    };
}

/// The reads of the kernel's clocks, as methods of their types and as a trait.
macro_rules! kernel_clocks {
    ($Trait:ident -> $Time:ident: $($(#[$cfg:meta])? $Clock:ident = $ID:ident),*) => {$(
        $(#[$cfg])?
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
                <Self as $Trait>::now()
            }

            /// Returns the time of this clock, or the error of the read.
            ///
            /// # Errors
            ///
            /// Those of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, crate::errno::Errno> {
                crate::sys::calls::clock_gettime(crate::types::ClockId::$ID).map($Time::from_kernel)
            }

            /// Returns the resolution of this clock (clock_getres(2)).
            ///
            /// It is 1 ns, or the length of a timer tick (1 to 10 ms) for a coarse clock and in a
            /// kernel without high-resolution timers. It is neither the cost of a read nor the
            /// accuracy of the clock.
            ///
            /// # Errors
            ///
            /// Those of [`clock_getres`](crate::clock_getres).
            #[inline]
            pub fn resolution() -> Result<core::time::Duration, crate::errno::Errno> {
                crate::sys::calls::clock_getres(crate::types::ClockId::$ID)?.try_into()
            }
        }

        $(#[$cfg])?
        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, crate::errno::Errno> {
                Self::try_now()
            }
        }
    )*};
}

pub(super) use {kernel_clocks, time_of_a_clock};

/// Panics in `now` of clock `C`.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn refused<C>(error: Errno) -> ! {
    panic!("cannot read {}: {error} (try_now() returns this error)", type_name::<C>())
}

//! What `Instant` and `SystemTime` have in common, as macros, because they share no trait.

use core::any::type_name;

use crate::errno::Errno;

/// The traits of std's types.
///
/// The type has a field `time`, and its own `checked_add` and `checked_sub`.
macro_rules! time_of_a_clock {
    ($Time:ident) => {
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

pub(super) use time_of_a_clock;

/// Panics in `now` of clock `C`.
#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn refused<C>(error: Errno) -> ! {
    panic!("cannot read {}: {error} (try_now() returns this error)", type_name::<C>())
}

//! The common part of [`Instant`](super::Instant) and [`SystemTime`](super::SystemTime).

macro_rules! point_in_time {
    ($Point:ident, $Default:ident, $clock:literal) => {
        impl $Point {
            #[doc = concat!("Returns the time of `", $clock, "`.")]
            ///
            /// # Panics
            ///
            /// If a sandbox denies every way to read the clock.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> Self {
                $Default::now()
            }

            #[doc = concat!("Returns the time of `", $clock, "`, or the error of a sandbox.")]
            ///
            /// # Errors
            ///
            /// The sandbox's error, if it denies every way to read the clock.
            #[inline]
            pub fn try_now() -> Result<Self, crate::errno::Errno> {
                $Default::try_now()
            }
        }

        impl<C> $Point<C> {
            /// Creates a time from nanoseconds since the clock's zero.
            ///
            /// # Examples
            ///
            #[doc = concat!("```\nuse vdso_time::", stringify!($Point), ";\n")]
            #[doc = concat!("let time: ", stringify!($Point), " = ", stringify!($Point), "::from_nanos(5);")]
            /// assert_eq!(time.as_nanos(), 5);
            /// ```
            #[inline]
            #[must_use]
            pub const fn from_nanos(nanos: i64) -> Self {
                Self { nanos, clock: core::marker::PhantomData }
            }

            /// Returns the nanoseconds since the clock's zero, negative before it.
            ///
            /// The zero of a wall clock is 1970, that of `CLOCK_MONOTONIC` is boot.
            #[inline]
            #[must_use]
            pub const fn as_nanos(self) -> i64 {
                self.nanos
            }

            /// Returns the duration since `earlier`, or `None` if `earlier` is later.
            #[inline]
            #[must_use]
            pub fn checked_duration_since(&self, earlier: Self) -> Option<core::time::Duration> {
                let nanos = self.nanos.abs_diff(earlier.nanos);
                (self.nanos >= earlier.nanos).then(|| core::time::Duration::from_nanos(nanos))
            }

            /// Returns the duration since `earlier`, or 0 if `earlier` is later.
            #[inline]
            #[must_use]
            pub fn saturating_duration_since(&self, earlier: Self) -> core::time::Duration {
                self.checked_duration_since(earlier).unwrap_or(core::time::Duration::ZERO)
            }

            /// Returns the time this much later, or `None` if it does not fit.
            #[inline]
            #[must_use]
            pub fn checked_add(&self, duration: core::time::Duration) -> Option<Self> {
                let nanos = i128::from(self.nanos) + duration.as_nanos() as i128;
                i64::try_from(nanos).ok().map(Self::from_nanos)
            }

            /// Returns the time this much earlier, or `None` if it does not fit.
            #[inline]
            #[must_use]
            pub fn checked_sub(&self, duration: core::time::Duration) -> Option<Self> {
                let nanos = i128::from(self.nanos) - duration.as_nanos() as i128;
                i64::try_from(nanos).ok().map(Self::from_nanos)
            }
        }

        impl<C> core::ops::Add<core::time::Duration> for $Point<C> {
            type Output = Self;

            /// Returns the time this much later, saturating.
            #[inline]
            fn add(self, duration: core::time::Duration) -> Self {
                self.checked_add(duration).unwrap_or(Self::from_nanos(i64::MAX))
            }
        }

        impl<C> core::ops::Sub<core::time::Duration> for $Point<C> {
            type Output = Self;

            /// Returns the time this much earlier, saturating.
            #[inline]
            fn sub(self, duration: core::time::Duration) -> Self {
                self.checked_sub(duration).unwrap_or(Self::from_nanos(i64::MIN))
            }
        }

        impl<C> core::ops::AddAssign<core::time::Duration> for $Point<C> {
            /// Makes the time later, saturating.
            #[inline]
            fn add_assign(&mut self, duration: core::time::Duration) {
                *self = *self + duration;
            }
        }

        impl<C> core::ops::SubAssign<core::time::Duration> for $Point<C> {
            /// Makes the time earlier, saturating.
            #[inline]
            fn sub_assign(&mut self, duration: core::time::Duration) {
                *self = *self - duration;
            }
        }

        // Not derived, because a derive would require each trait of `C` too.

        impl<C> Clone for $Point<C> {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<C> Copy for $Point<C> {}

        impl<C> PartialEq for $Point<C> {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.nanos == other.nanos
            }
        }

        impl<C> Eq for $Point<C> {}

        impl<C> PartialOrd for $Point<C> {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl<C> Ord for $Point<C> {
            #[inline]
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.nanos.cmp(&other.nanos)
            }
        }

        impl<C> core::hash::Hash for $Point<C> {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                self.nanos.hash(state);
            }
        }

        impl<C> From<$Point<C>> for $crate::types::Timespec {
            /// Converts a time to seconds and nanoseconds since the clock's zero.
            #[inline]
            fn from(time: $Point<C>) -> Self {
                Self::from_nanos(time.as_nanos())
            }
        }

        impl<C> core::fmt::Debug for $Point<C> {
            #[doc = concat!("Formats the seconds since the clock's zero: `", stringify!($Point), "(12.000000345)`.")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({})", stringify!($Point), $crate::types::Timespec::from(*self))
            }
        }
    };
}

pub(super) use point_in_time;

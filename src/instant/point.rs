//! What [`Instant`](super::Instant) and [`SystemTime`](super::SystemTime) have in common, written once.

/// A count of nanoseconds moved by a number of them, if the sum is one.
pub(super) fn moved(nanos: i64, by: i128) -> Option<i64> {
    i64::try_from(i128::from(nanos) + by).ok()
}

macro_rules! point_in_time {
    ($Point:ident) => {
        impl<C> $Point<C> {
            /// The time of this many nanoseconds on the clock: for a clock of one's own.
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

            /// Nanoseconds on the clock.
            #[inline]
            #[must_use]
            pub const fn as_nanos(self) -> i64 {
                self.nanos
            }

            /// How much later this is than `earlier`; `None` if it is earlier.
            #[inline]
            #[must_use]
            pub fn checked_duration_since(self, earlier: Self) -> Option<core::time::Duration> {
                let nanos = self.nanos.abs_diff(earlier.nanos);
                (self.nanos >= earlier.nanos).then(|| core::time::Duration::from_nanos(nanos))
            }

            /// The time this much later; `None` if it does not fit.
            #[inline]
            #[must_use]
            pub fn checked_add(self, duration: core::time::Duration) -> Option<Self> {
                $crate::instant::point::moved(self.nanos, duration.as_nanos() as i128).map(Self::from_nanos)
            }

            /// The time this much earlier; `None` if it does not fit.
            #[inline]
            #[must_use]
            pub fn checked_sub(self, duration: core::time::Duration) -> Option<Self> {
                $crate::instant::point::moved(self.nanos, -(duration.as_nanos() as i128))
                    .map(Self::from_nanos)
            }
        }

        impl<C> core::ops::Add<core::time::Duration> for $Point<C> {
            type Output = Self;

            /// The time this much later; the last one there is, if that does not fit.
            #[inline]
            fn add(self, duration: core::time::Duration) -> Self {
                self.checked_add(duration).unwrap_or(Self::from_nanos(i64::MAX))
            }
        }

        impl<C> core::ops::Sub<core::time::Duration> for $Point<C> {
            type Output = Self;

            /// The time this much earlier; the first one there is, if that does not fit.
            #[inline]
            fn sub(self, duration: core::time::Duration) -> Self {
                self.checked_sub(duration).unwrap_or(Self::from_nanos(i64::MIN))
            }
        }

        impl<C> core::ops::AddAssign<core::time::Duration> for $Point<C> {
            #[inline]
            fn add_assign(&mut self, duration: core::time::Duration) {
                *self = *self + duration;
            }
        }

        impl<C> core::ops::SubAssign<core::time::Duration> for $Point<C> {
            #[inline]
            fn sub_assign(&mut self, duration: core::time::Duration) {
                *self = *self - duration;
            }
        }

        // By hand, for a derive would ask the same of the clock.

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

        impl<C> core::fmt::Debug for $Point<C> {
            /// Seconds on the clock: `Instant(12.000000345)`.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let (sign, nanos) = (if self.nanos < 0 { "-" } else { "" }, self.nanos.unsigned_abs());
                let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
                write!(f, "{}({sign}{seconds}.{nanos:09})", stringify!($Point))
            }
        }
    };
}

pub(super) use point_in_time;

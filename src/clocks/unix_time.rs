//! The seconds and nanoseconds of a wall-clock time, as std keeps them.

use core::num::NonZero;
use core::time::Duration;

use crate::errno::Errno;
use crate::types::Timespec;

/// A wall-clock time, in the same fields as std's type has on Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnixTime {
    pub(super) seconds: i64,
    pub(super) nanos: Nanos,
}

impl UnixTime {
    pub(super) const MIN: Self = Self::new(i64::MIN, 0);
    pub(super) const MAX: Self = Self::new(i64::MAX, 999_999_999);

    #[inline]
    pub(super) const fn new(seconds: i64, nanos: u32) -> Self {
        Self {
            seconds,
            nanos: Nanos::new(nanos),
        }
    }

    /// Creates a time from a number of units. One second is `per_second` units. Every number fits.
    #[inline]
    pub(super) const fn from_units(units: i64, per_second: u32) -> Self {
        let seconds = units.div_euclid(per_second as i64);
        let below = units.rem_euclid(per_second as i64) as u32;
        Self::new(seconds, below * (1_000_000_000 / per_second))
    }

    /// Creates a time from seconds and nanoseconds. `tv_nsec` must be in `0..1_000_000_000`, as the
    /// kernel's answers are.
    #[inline]
    pub(super) const fn from_kernel(time: Timespec) -> Self {
        Self::new(time.tv_sec, time.tv_nsec as u32)
    }

    #[inline]
    pub(super) fn from_timespec(time: Timespec) -> Result<Self, Errno> {
        time.subsec_nanos()
            .map(|nanos| Self::new(time.tv_sec, nanos))
    }

    #[inline]
    pub(super) const fn timespec(self) -> Timespec {
        Timespec {
            tv_sec: self.seconds,
            tv_nsec: self.nanos.get() as i64,
        }
    }

    #[inline]
    pub(super) const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.since_earliest().checked_add(duration) {
            Some(since) => Some(Self::after_earliest(since)),
            None => None,
        }
    }

    #[inline]
    pub(super) const fn checked_sub(self, duration: Duration) -> Option<Self> {
        match self.since_earliest().checked_sub(duration) {
            Some(since) => Some(Self::after_earliest(since)),
            None => None,
        }
    }

    /// Returns the time as a duration since `MIN`, so that `Duration` does the arithmetic.
    #[inline]
    pub(super) const fn since_earliest(self) -> Duration {
        let seconds = self.seconds.wrapping_sub(i64::MIN) as u64;
        // The nanoseconds are always below a second. The `%` shows this to the compiler, which then
        // removes the panic of `new`.
        Duration::new(seconds, self.nanos.get() % 1_000_000_000)
    }

    #[inline]
    const fn after_earliest(duration: Duration) -> Self {
        let seconds = i64::MIN.wrapping_add_unsigned(duration.as_secs());
        Self::new(seconds, duration.subsec_nanos())
    }

    /// Returns the time as a number of units, rounded down. One second is `per_second` units. The
    /// number saturates.
    #[inline]
    pub(super) const fn units(self, per_second: u32) -> i64 {
        let below = self.nanos.get() / (1_000_000_000 / per_second);
        let units = self.seconds as i128 * per_second as i128 + below as i128;
        if units as i64 as i128 == units {
            return units as i64;
        }
        if units < 0 { i64::MIN } else { i64::MAX }
    }
}

/// Nanoseconds below a second, with the highest bit always set. Because of this bit the number is
/// never 0, so `Option<SystemTime>` takes 16 bytes, as it does with std's type. The cost is one
/// instruction, which sets the bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Nanos(NonZero<u32>);

impl Nanos {
    const BIT: u32 = 1 << 31;

    #[inline]
    const fn new(nanos: u32) -> Self {
        match NonZero::new(nanos | Self::BIT) {
            Some(nanos) => Self(nanos),
            None => unreachable!(),
        }
    }

    #[inline]
    pub(super) const fn get(self) -> u32 {
        self.0.get() & !Self::BIT
    }
}

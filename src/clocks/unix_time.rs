//! The seconds and nanoseconds of a wall-clock time, as std keeps them.

use core::hash::{Hash, Hasher};
use core::num::NonZero;
use core::time::Duration;

use crate::types::Timespec;

/// What std's type has on Linux.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnixTime {
    seconds: i64,
    nanos: Nanos,
}

impl UnixTime {
    #[inline]
    pub(super) const fn new(seconds: i64, nanos: u32) -> Self {
        Self { seconds, nanos: Nanos::new(nanos) }
    }

    #[inline]
    pub(super) const fn seconds(self) -> i64 {
        self.seconds
    }

    #[inline]
    pub(super) const fn subsec_nanos(self) -> u32 {
        self.nanos.get()
    }

    /// Returns the time since the earliest one, so that `Duration` does the arithmetic.
    #[inline]
    pub(super) const fn since_earliest(self) -> Duration {
        let seconds = self.seconds.wrapping_sub(i64::MIN) as u64;
        // The nanoseconds are below a second. The compiler sees that, so `new` has no panic.
        Duration::new(seconds, self.nanos.get() % 1_000_000_000)
    }

    /// Returns the time in units, `per_second` in a second, rounded down and saturated.
    #[inline]
    pub(super) const fn units(self, per_second: u32) -> i64 {
        let below = self.nanos.get() / (1_000_000_000 / per_second);
        let units = self.seconds as i128 * per_second as i128 + below as i128;
        if units as i64 as i128 == units {
            units as i64
        } else if units < 0 {
            i64::MIN
        } else {
            i64::MAX
        }
    }

    #[inline]
    pub(super) const fn timespec(self) -> Timespec {
        Timespec { tv_sec: self.seconds, tv_nsec: self.nanos.get() as i64 }
    }
}

/// Nanoseconds below a second, and the highest bit, which is always set. So the number is never 0,
/// and `Option<SystemTime>` takes 16 bytes, as std's. Setting the bit is one instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Nanos(NonZero<u32>);

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
    const fn get(self) -> u32 {
        self.0.get() & !Self::BIT
    }
}

impl Hash for Nanos {
    /// Hashes the number, as std does.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

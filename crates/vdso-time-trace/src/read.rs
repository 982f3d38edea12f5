//! [`Read`]: the results that can be traced.

use vdso_time::{Cpu, Errno, Instant, SystemTime, Timespec, Timeval};

/// The answer of a read: what a call inside [`traced!`](crate::traced) must return.
pub trait Read {
    /// Returns the time that was read, in nanoseconds since the zero of its clock. A time that does
    /// not fit in 64 bits is saturated. Returns `None` for an error and for the result of
    /// `getcpu()`, because neither is a time.
    fn nanos(&self) -> Option<i64>;
}

impl<T: Read> Read for Result<T, Errno> {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        self.as_ref().ok()?.nanos()
    }
}

/// An `i64` counts as the seconds that `time()` returns. So a function whose numbers are not
/// seconds must return a type of its own.
impl Read for i64 {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        Some(self.saturating_mul(1_000_000_000))
    }
}

impl Read for Timespec {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        Some(
            self.tv_sec
                .saturating_mul(1_000_000_000)
                .saturating_add(self.tv_nsec),
        )
    }
}

impl Read for Timeval {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        let micros = self
            .tv_sec
            .saturating_mul(1_000_000)
            .saturating_add(self.tv_usec);
        Some(micros.saturating_mul(1_000))
    }
}

impl Read for Cpu {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        None
    }
}

impl<C> Read for Instant<C> {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        Some(self.as_nanos())
    }
}

impl<C> Read for SystemTime<C> {
    #[inline]
    fn nanos(&self) -> Option<i64> {
        Timespec::from(*self).nanos()
    }
}

//! [`Event`]: what a tracer receives. [`Read`]: the answers that can be traced.

use vdso_time::{Clock, Cpu, Errno, Instant, SystemTime, Timespec, Timeval, WallClock};

use crate::site::Site;
use crate::timing;

/// One read of a clock.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub(crate) site: &'static Site,
    pub(crate) reading: RawReading,
    pub(crate) span: Option<Span>,
}

/// Nanoseconds of `CLOCK_MONOTONIC` before and after a read.
pub(crate) type Span = (i64, i64);

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// A time or a resolution of the site's clock in nanoseconds, saturated to 64 bits.
    Nanos(i64),
    /// A time in seconds, from `time()`.
    Seconds(i64),
    /// A CPU.
    Cpu(u32),
    /// The error of a failed read.
    Failed(Errno),
}

/// A [`Reading`] as two numbers, which are passed in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawReading(Kind, i64);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Nanos,
    Seconds,
    Cpu,
    Failed,
}

impl From<Reading> for RawReading {
    #[inline]
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Nanos(nanos) => Self(Kind::Nanos, nanos),
            Reading::Seconds(seconds) => Self(Kind::Seconds, seconds),
            Reading::Cpu(cpu) => Self(Kind::Cpu, cpu.into()),
            Reading::Failed(error) => Self(Kind::Failed, error.raw_os_error().into()),
        }
    }
}

impl From<RawReading> for Reading {
    #[inline]
    fn from(RawReading(kind, number): RawReading) -> Self {
        match kind {
            Kind::Nanos => Self::Nanos(number),
            Kind::Seconds => Self::Seconds(number),
            Kind::Cpu => Self::Cpu(number as u32),
            // It was made from an error, so `EINVAL` cannot occur.
            Kind::Failed => Self::Failed(Errno::from_raw_os_error(number as i32).unwrap_or(Errno::EINVAL)),
        }
    }
}

impl Event {
    /// Creates an event of a read that was not timed.
    #[must_use]
    pub fn new(site: &'static Site, reading: Reading) -> Self {
        Self { site, reading: reading.into(), span: None }
    }

    /// Returns where the clock was read.
    #[must_use]
    pub const fn site(&self) -> &'static Site {
        self.site
    }

    /// Returns what was read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading.into()
    }

    /// Returns the time that was read, in nanoseconds of the site's clock.
    #[must_use]
    pub const fn nanos(&self) -> Option<i64> {
        match self.reading {
            RawReading(Kind::Nanos, nanos) => Some(nanos),
            RawReading(Kind::Seconds, seconds) => Some(seconds.saturating_mul(1_000_000_000)),
            RawReading(Kind::Cpu | Kind::Failed, _) => None,
        }
    }

    /// Returns `CLOCK_MONOTONIC` before and after the read, in nanoseconds, if a tracer of the site
    /// is [timed](crate::Trace::TIMED). A read that was under way at `attach` has no span.
    #[must_use]
    pub const fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// Returns the nanoseconds that a timed read took: its [span](Self::span) less an empty span,
    /// which [`attach`](crate::attach()) measures.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        self.span().map(|span| cost(span, timing::empty_span()))
    }
}

fn cost((start, end): Span, empty: u64) -> u64 {
    ((end - start).max(0) as u64).saturating_sub(empty)
}

/// The answer of a read: what a call inside [`traced!`](crate::traced) must return.
pub trait Read {
    /// Returns what tracers receive.
    fn reading(&self) -> Reading;
}

impl<T: Read> Read for Result<T, Errno> {
    #[inline]
    fn reading(&self) -> Reading {
        self.as_ref().map_or_else(|error| Reading::Failed(*error), T::reading)
    }
}

/// The seconds of `time()`. A function that returns other numbers needs a type of its own.
impl Read for i64 {
    #[inline]
    fn reading(&self) -> Reading {
        Reading::Seconds(*self)
    }
}

impl Read for Timespec {
    #[inline]
    fn reading(&self) -> Reading {
        Reading::Nanos(self.tv_sec.saturating_mul(1_000_000_000).saturating_add(self.tv_nsec))
    }
}

impl Read for Timeval {
    #[inline]
    fn reading(&self) -> Reading {
        let micros = self.tv_sec.saturating_mul(1_000_000).saturating_add(self.tv_usec);
        Reading::Nanos(micros.saturating_mul(1_000))
    }
}

impl Read for Cpu {
    #[inline]
    fn reading(&self) -> Reading {
        Reading::Cpu(self.cpu)
    }
}

impl<C: Clock> Read for Instant<C> {
    #[inline]
    fn reading(&self) -> Reading {
        Reading::Nanos(self.as_nanos())
    }
}

impl<C: WallClock> Read for SystemTime<C> {
    #[inline]
    fn reading(&self) -> Reading {
        Reading::Nanos(self.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_span_is_subtracted() {
        for (span, nanos) in [((100, 130), 10), ((100, 110), 0), ((110, 100), 0)] {
            assert_eq!(cost(span, 20), nanos, "{span:?}");
        }
    }
}

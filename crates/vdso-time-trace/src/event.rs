//! [`Event`]: what a tracer is told of a read, and [`Read`]: what can be told of an answer.

use vdso_time::{Clock, Cpu, Errno, Instant, SystemTime, Timespec, Timeval, WallClock};

use crate::site::Site;
use crate::timing;

/// One read of a clock.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub(crate) site: &'static Site,
    pub(crate) reading: Raw,
    pub(crate) span: Span,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// A time or a resolution: nanoseconds of whatever clock the site reads, or as many as 64 bits have.
    Nanos(i64),
    /// A time in seconds, as `time()` has it.
    Seconds(i64),
    /// A CPU.
    Cpu(u32),
    /// Nothing: the read failed.
    Failed(Errno),
}

/// The same as two numbers, which are passed in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub(crate) kind: Kind,
    /// Nanoseconds, seconds, the CPU, or the number of the error.
    pub(crate) value: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Nanos,
    Seconds,
    Cpu,
    Failed,
}

impl From<Reading> for Raw {
    #[inline]
    fn from(reading: Reading) -> Self {
        let (kind, value) = match reading {
            Reading::Nanos(nanos) => (Kind::Nanos, nanos),
            Reading::Seconds(seconds) => (Kind::Seconds, seconds),
            Reading::Cpu(cpu) => (Kind::Cpu, cpu.into()),
            Reading::Failed(error) => (Kind::Failed, error.raw_os_error().into()),
        };
        Self { kind, value }
    }
}

impl From<Raw> for Reading {
    #[inline]
    fn from(raw: Raw) -> Self {
        match raw.kind {
            Kind::Nanos => Self::Nanos(raw.value),
            Kind::Seconds => Self::Seconds(raw.value),
            Kind::Cpu => Self::Cpu(raw.value as u32),
            // It was one, so there is nothing to fall back to.
            Kind::Failed => Self::Failed(Errno::from_raw_os_error(raw.value as i32).unwrap_or(Errno::EINVAL)),
        }
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC` before and after a read; zeros if it was not timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: i64,
    pub(crate) end: i64,
}

impl Span {
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    pub(crate) const fn is_there(self) -> bool {
        self.end != 0
    }
}

impl Event {
    /// An event that was not timed.
    #[must_use]
    pub fn new(site: &'static Site, reading: Reading) -> Self {
        Self { site, reading: reading.into(), span: Span::NONE }
    }

    /// Where the read was.
    #[must_use]
    pub const fn site(&self) -> &'static Site {
        self.site
    }

    /// What was read.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.reading.into()
    }

    /// The time that was read, in nanoseconds of the site's clock.
    #[must_use]
    pub const fn nanos(&self) -> Option<i64> {
        match self.reading.kind {
            Kind::Nanos => Some(self.reading.value),
            Kind::Seconds => Some(self.reading.value.saturating_mul(1_000_000_000)),
            Kind::Cpu | Kind::Failed => None,
        }
    }

    /// Nanoseconds of `CLOCK_MONOTONIC` before and after the read, if some tracer of the site is [timed](crate::Trace::TIMED). A timed
    /// tracer may be told of a read that was under way when it was attached: that has none.
    #[must_use]
    pub const fn span(&self) -> Option<(i64, i64)> {
        if self.span.is_there() { Some((self.span.start, self.span.end)) } else { None }
    }

    /// How many nanoseconds the read took, if it was timed: what lies between the two times of the [span](Self::span), less
    /// what lies between two times with nothing between them, which [`attach`](crate::attach()) measures.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        let (start, end) = self.span()?;
        Some(((end - start).max(0) as u64).saturating_sub(timing::own()))
    }
}

/// The answer of a read: what a call inside [`traced!`](crate::traced) must return.
pub trait Read {
    /// What a tracer is told of it.
    fn reading(&self) -> Reading;
}

impl<T: Read> Read for Result<T, Errno> {
    #[inline]
    fn reading(&self) -> Reading {
        match self {
            Ok(answer) => answer.reading(),
            Err(error) => Reading::Failed(*error),
        }
    }
}

/// That of `time()`: seconds. A function that gives other numbers needs a type of its own.
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

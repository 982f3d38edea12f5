//! [`VdsoTime`]: a clock of the kernel.

use std::marker::PhantomData;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use vdso_time::{Clock, Instant, Monotonic};

/// Measures with a clock of vdso-time, by default `CLOCK_MONOTONIC`.
///
/// ```
/// use vdso_time::MonotonicRaw;
/// use vdso_time_criterion::VdsoTime;
/// use vdso_time_criterion::criterion::Criterion;
///
/// let monotonic = Criterion::default().with_measurement(VdsoTime::new());
/// let raw = Criterion::default().with_measurement(VdsoTime::<MonotonicRaw>::default());
/// ```
#[derive(Debug)]
pub struct VdsoTime<C = Monotonic>(PhantomData<fn() -> C>);

impl VdsoTime {
    /// Creates a measurement with `CLOCK_MONOTONIC`.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<C> Default for VdsoTime<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<C> Clone for VdsoTime<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for VdsoTime<C> {}

impl<C: Clock> Measurement for VdsoTime<C> {
    type Intermediate = Instant<C>;
    type Value = Duration;

    #[inline]
    fn start(&self) -> Instant<C> {
        C::now()
    }

    #[inline]
    fn end(&self, start: Instant<C>) -> Duration {
        start.elapsed()
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_secs_f64() * 1e9
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

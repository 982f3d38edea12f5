//! [`VdsoTime`]: a clock of the kernel.

use std::marker::PhantomData;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use vdso_time::{Instant, MonotonicClock};

/// Measures with a clock of vdso-time: `VdsoTime::<MonotonicRaw>::default()`.
#[derive(Debug)]
pub struct VdsoTime<C>(PhantomData<fn() -> C>);

impl<C> Default for VdsoTime<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<C: MonotonicClock> Measurement for VdsoTime<C> {
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

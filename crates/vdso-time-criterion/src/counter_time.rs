//! [`CounterTime`]: measures with the CPU's own counter, and subtracts the cost of reading it.

#![allow(unsafe_code, reason = "a fence is an instruction")]
#![allow(clippy::cast_precision_loss, reason = "ticks are far below 2^53")]

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use vdso_time_counter::{self as counter, Status, Ticks};

/// Measures with the CPU's counter, and subtracts an empty measurement.
///
/// A measurement reads the counter before and after the routine. The second read waits for the
/// routine, but on riscv64 and loongarch64 only for its memory accesses. On x86, x86_64, arm and
/// aarch64 the routine also waits for the first read. On riscv64, s390x and loongarch64 the CPU may
/// begin the routine before the first read.
///
/// An empty measurement reads the counter twice, without a routine between the reads. Each
/// measurement is followed by an empty measurement of its own, because the speed of a CPU changes
/// from moment to moment. Ticks are converted to nanoseconds with [`counter::State::frequency`].
#[derive(Clone, Copy, Debug)]
pub struct CounterTime {
    nanos_per_tick: f64,
    /// The largest number of ticks that is subtracted for one empty measurement. An empty
    /// measurement that took longer was interrupted, so the rest of its ticks do not count.
    most: u64,
}

/// The ticks of one measurement, or the sums of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTicks {
    measured: u64,
    /// The ticks of as many empty measurements.
    empty: u64,
}

/// A calibration usually takes 11 ms.
const LONGEST: Duration = Duration::from_secs(2);

/// The error of [`CounterTime::new`]: why the counter clock does not use the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUsed(Status);

impl NotUsed {
    /// Returns the status of the clock: never [`Status::Used`].
    #[must_use]
    pub fn status(self) -> Status {
        self.0
    }
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for NotUsed {}

impl CounterTime {
    /// Reads the clock until the counter's rate is known, which usually takes 11 ms, and then
    /// creates the measurement.
    ///
    /// # Errors
    ///
    /// If the counter cannot be used; the error says why. [`VdsoTime`](crate::VdsoTime) always
    /// works.
    ///
    /// # Panics
    ///
    /// If a sandbox denies every way to read the clock.
    pub fn new() -> Result<Self, NotUsed> {
        let hertz = frequency()?;
        Ok(Self {
            nanos_per_tick: 1e9 / hertz as f64,
            most: empty_ticks() * 3 / 2,
        })
    }
}

/// Reads the clock until the counter's rate is known, for at most [`LONGEST`].
fn frequency() -> Result<u64, NotUsed> {
    let start = Instant::now();
    loop {
        let _ = counter::CounterMonotonicUnordered::now();
        let state = counter::state();
        let status = state.status;
        if let (Status::Used | Status::Stale, Some(hertz)) = (status, state.frequency) {
            return Ok(hertz);
        }
        let is_pending = matches!(
            status,
            Status::Calibrating | Status::Updating | Status::Stale
        );
        if !is_pending || start.elapsed() >= LONGEST {
            return Err(NotUsed(status));
        }
    }
}

/// Returns the median of the ticks of many empty measurements.
fn empty_ticks() -> u64 {
    const COUNT: usize = 1001;
    let mut all = [0; COUNT];
    for ticks in &mut all {
        *ticks = ticks_since(start_ticks());
    }
    all.sort_unstable();
    all[COUNT / 2]
}

#[inline]
fn start_ticks() -> u64 {
    let ticks = Ticks::read_ordered().as_raw();
    fence();
    ticks
}

#[inline]
fn ticks_since(start: u64) -> u64 {
    Ticks::read_ordered().as_raw().saturating_sub(start)
}

/// Makes an x86 or arm CPU finish all earlier instructions before it starts later ones. On other
/// architectures it does nothing.
#[inline]
fn fence() {
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "x86", target_feature = "sse2")
    ))]
    // SAFETY: the instruction changes neither memory nor registers.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes neither memory nor registers.
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    };
    // An x86 CPU without SSE2 does not have the instruction `lfence`, and an assembler for an older
    // arm CPU does not know the instruction `isb`. So an ordered read of the counter serves as the
    // fence there: it contains a `cpuid`, or an `isb` that is written as a number.
    #[cfg(any(
        target_arch = "arm",
        all(target_arch = "x86", not(target_feature = "sse2"))
    ))]
    let _ = Ticks::read_ordered();
}

impl Measurement for CounterTime {
    type Intermediate = u64;
    type Value = MeasuredTicks;

    #[inline]
    fn start(&self) -> u64 {
        start_ticks()
    }

    #[inline]
    fn end(&self, start: u64) -> MeasuredTicks {
        let measured = ticks_since(start);
        let empty = ticks_since(start_ticks());
        MeasuredTicks {
            measured,
            empty: empty.min(self.most),
        }
    }

    #[inline]
    fn add(&self, one: &MeasuredTicks, other: &MeasuredTicks) -> MeasuredTicks {
        MeasuredTicks {
            measured: one.measured + other.measured,
            empty: one.empty + other.empty,
        }
    }

    fn zero(&self) -> MeasuredTicks {
        MeasuredTicks::default()
    }

    /// Returns nanoseconds, or 0 if the measurements took no longer than the empty ones.
    fn to_f64(&self, value: &MeasuredTicks) -> f64 {
        value.measured.saturating_sub(value.empty) as f64 * self.nanos_per_tick
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

//! [`Ticks`]: a value of the counter, which is converted to a time later.

use vdso_time::{Errno, Instant};

use super::clocks::{CounterMonotonic, CounterMonotonicUnordered};
use super::global::CLOCK;
use super::machine::arch::{Counter as _, CpuCounter};

/// A value of the counter, which can be converted to a time later.
///
/// Taking a value costs one read of the counter. A logger takes `Ticks` where it must be fast, and
/// converts them when it writes. Sort the values, not the times: values that are converted at
/// different moments are converted with different errors. Values from before a reboot, a suspend or
/// a move of the virtual machine have no meaning afterwards. To get the duration between two
/// values, convert both, and subtract the times.
///
/// On arm, and on architectures without a counter, the value is the nanoseconds of
/// [`CounterMonotonicUnordered`], so the vDSO answers where the counter cannot.
///
/// On all other architectures, `Ticks` has no fallback. Choose it there only if
/// [`check()`](super::check) returns `Ok`:
///
/// - While the counter is unavailable, as under `hpet`, [`read`](Self::read) still reads it, and
///   [`monotonic`](Self::monotonic) returns `None`.
/// - A thread that is not allowed to read the counter (`PR_SET_TSC`) gets SIGSEGV, even from
///   [`try_read`](Self::try_read) and while the status says that the counter is unavailable.
///
/// # Examples
///
/// ```
/// use vdso_time_counter::Ticks;
///
/// let event = Ticks::read();
/// // Later, perhaps in another thread; `None` until the counter is measured:
/// println!("{:?}", event.monotonic());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ticks(u64);

impl Ticks {
    /// Reads the counter. The CPU may do so before earlier instructions have completed.
    ///
    /// # Panics
    ///
    /// If the value is nanoseconds and [`CounterMonotonicUnordered::now`] panics.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn read() -> Self {
        if CpuCounter::IS_READABLE {
            return Self(CpuCounter::ticks());
        }
        Self(CounterMonotonicUnordered::now().as_nanos() as u64)
    }

    /// Reads the counter, as [`read`](Self::read) does, but never panics.
    ///
    /// # Errors
    ///
    /// If the value is nanoseconds, the errors of [`CounterMonotonicUnordered::try_now`].
    #[inline]
    pub fn try_read() -> Result<Self, Errno> {
        if CpuCounter::IS_READABLE {
            return Ok(Self(CpuCounter::ticks()));
        }
        let now = CounterMonotonicUnordered::try_now()?;
        Ok(Self(now.as_nanos() as u64))
    }

    /// Reads the counter after all earlier instructions have completed. On riscv64 and loongarch64,
    /// only earlier memory accesses have completed.
    ///
    /// # Panics
    ///
    /// As [`read`](Self::read).
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn read_ordered() -> Self {
        if CpuCounter::IS_READABLE {
            CpuCounter::complete_loads();
            return Self(CpuCounter::ticks_ordered());
        }
        Self(CounterMonotonic::now().as_nanos() as u64)
    }

    /// Creates `Ticks` from a value of the counter, such as one from shared memory.
    #[inline]
    #[must_use]
    pub const fn from_raw(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Returns the counter's value.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> u64 {
        self.0
    }

    /// Returns the time of `CLOCK_MONOTONIC` at this value. The call may ask the vDSO.
    ///
    /// The time has the type of the unordered clock, because the CPU may have read the counter
    /// before earlier instructions had completed.
    ///
    /// Returns `None` if the counter is not used or not measured yet, but never where the value is
    /// nanoseconds. A value from before the measurement can be converted after it. A value from
    /// before the clock's zero gives 0.
    ///
    /// If a value belongs to the current segment, its time is as exact as a read of the clock. An
    /// older value is converted with the mean rate since the counter was measured. Its error is the
    /// age of the value times the difference between that mean rate and the rate since the value
    /// was taken. The difference is usually below 0.1 ppm, so a value that is a second old is off
    /// by less than 100 ns. If NTP changes the rate, the difference is at most as large as the
    /// change, which is at most 1000 ppm. If adjtimex(2) changes the rate by more than 1000 ppm, a
    /// new mean begins within three segments. A value from before the change is then wrong by as
    /// much as the rate changed: by up to 20 % of the time between that value and the change.
    #[must_use]
    pub fn monotonic(self) -> Option<Instant<CounterMonotonicUnordered>> {
        let nanos = if CpuCounter::IS_READABLE {
            CLOCK.nanos_of(self.0)?
        } else {
            self.0
        };
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Some(Instant::from_clock_nanos(nanos))
    }
}

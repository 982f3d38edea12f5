//! The bridge to `std::time::Instant`, which is `CLOCK_MONOTONIC` too (std's documentation of
//! `Instant`, "Underlying System calls"), but opaque.
//!
//! The first conversion reads both clocks side by side. From then on the two times of that moment
//! stand for each other, and a conversion adds a difference to one of them. So the order of times
//! and the differences between them are exact, and every time comes back as it went. What is not
//! exact is one offset, the same for all conversions of a process: at most half of what it took to
//! read the two clocks, tens of nanoseconds where both are read in user space.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant as StdInstant;

use super::Instant;
use crate::errno::Errno;

/// A moment as both clocks had it.
struct Moment {
    ours: Instant,
    std: StdInstant,
    /// What it took to read std's clock and ours.
    width: Duration,
}

/// A forked child keeps its parent's, for both clocks go on alike.
static MOMENT: OnceLock<Moment> = OnceLock::new();

/// A signal or another thread may delay a reading: of so many the shortest counts.
const READINGS: usize = 16;

impl Moment {
    fn get() -> Result<&'static Self, Errno> {
        match MOMENT.get() {
            Some(moment) => Ok(moment),
            None => Self::shortest().map(|moment| MOMENT.get_or_init(|| moment)),
        }
    }

    #[cold]
    fn shortest() -> Result<Self, Errno> {
        let mut shortest = Self::read()?;
        for _ in 1..READINGS {
            let moment = Self::read()?;
            if moment.width < shortest.width {
                shortest = moment;
            }
        }
        Ok(shortest)
    }

    fn read() -> Result<Self, Errno> {
        let before = Instant::try_now()?;
        let std = StdInstant::now();
        let width = Instant::try_now()?.duration_since(before);
        Ok(Self { ours: before + width / 2, std, width })
    }
}

/// Needs the feature `std`.
impl TryFrom<Instant> for StdInstant {
    type Error = Errno;

    /// Converts a time, for an interface that takes `std::time::Instant`.
    ///
    /// The result is off by a constant, the same for all conversions of the process: at most half
    /// of what it took to read both clocks at the first conversion, tens of nanoseconds where they
    /// are read in user space. Differences and order are exact, and the way back gives the same
    /// time.
    ///
    /// This holds where std's clock is `CLOCK_MONOTONIC`. A library that fakes it (libfaketime)
    /// makes the result meaningless.
    ///
    /// The first conversion reads the clocks and takes a lock. Neither a signal handler nor the
    /// forked child of a program with threads may make it.
    ///
    /// # Errors
    ///
    /// - What a sandbox answered, if it denies every way to read the clock at the first conversion.
    /// - `EOVERFLOW`: std's type cannot hold the time. On Linux it holds every one.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Instant;
    ///
    /// let start = Instant::now();
    /// let for_std = std::time::Instant::try_from(start)?;
    /// assert_eq!(Instant::try_from(for_std)?, start);
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    fn try_from(time: Instant) -> Result<Self, Errno> {
        let moment = Moment::get()?;
        let std = match time.checked_duration_since(moment.ours) {
            Some(later) => moment.std.checked_add(later),
            None => moment.std.checked_sub(moment.ours.duration_since(time)),
        };
        std.ok_or(Errno::EOVERFLOW)
    }
}

/// Needs the feature `std`.
impl TryFrom<StdInstant> for Instant {
    type Error = Errno;

    /// Converts a time that std's clock told. How exact it is, the other direction says
    /// (`std::time::Instant::try_from`).
    ///
    /// # Errors
    ///
    /// - What a sandbox answered, if it denies every way to read the clock at the first conversion.
    /// - `EOVERFLOW`: the time is more than 292 years before or after boot.
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::Instant;
    ///
    /// let start = Instant::try_from(std::time::Instant::now())?;
    /// println!("{:?}", start.elapsed());
    /// # Ok::<(), vdso_time::Errno>(())
    /// ```
    fn try_from(time: StdInstant) -> Result<Self, Errno> {
        let moment = Moment::get()?;
        let ours = match time.checked_duration_since(moment.std) {
            Some(later) => moment.ours.checked_add(later),
            None => moment.ours.checked_sub(moment.std.saturating_duration_since(time)),
        };
        ours.ok_or(Errno::EOVERFLOW)
    }
}

//! The time of the coarse clock as the types of the date crates.

use std::time::SystemTime;

use vdso_time::RealtimeCoarse;

/// jiff's time. `{:.3}` prints it in RFC 3339, with milliseconds.
///
/// # Errors
///
/// The clock is beyond the year 9999.
pub fn jiff_now() -> Result<jiff::Timestamp, jiff::Error> {
    jiff::Timestamp::try_from(SystemTime::from(RealtimeCoarse::now()))
}

/// chrono's time. `to_rfc3339_opts(SecondsFormat::Millis, true)` prints it.
#[must_use]
pub fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    SystemTime::from(RealtimeCoarse::now()).into()
}

/// Returns the time of the crate `time`. Its format `Rfc3339` drops zeros at the end;
/// [`MILLISECONDS`] does not.
#[must_use]
pub fn time_now() -> time::OffsetDateTime {
    SystemTime::from(RealtimeCoarse::now()).into()
}

/// RFC 3339 with three digits.
pub const MILLISECONDS: &[time::format_description::BorrowedFormatItem<'_>] =
    time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

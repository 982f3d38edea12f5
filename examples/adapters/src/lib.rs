//! The code that a program copies to get vdso-time's times into its log lines. `docs/ADOPT.md`
//! explains it.

use std::fmt;
use std::time::SystemTime;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use vdso_time::RealtimeCoarse;

/// Returns the coarse clock's time. `{:.3}` prints it in RFC 3339, with milliseconds.
///
/// # Errors
///
/// If the clock is beyond the year 9999.
pub fn jiff_now() -> Result<jiff::Timestamp, jiff::Error> {
    let now = SystemTime::from(RealtimeCoarse::now());
    jiff::Timestamp::try_from(now)
}

/// A timer for tracing-subscriber: the coarse clock, in RFC 3339.
pub struct CoarseTime;

impl FormatTime for CoarseTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        match jiff_now() {
            Ok(time) => write!(out, "{time:.3}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

//! What a program copies to use vdso-time's clocks in other crates. `docs/LOGGING.md` explains it.

use std::time::SystemTime;

use vdso_time::RealtimeCoarse;

pub mod log4rs_encoder;
pub mod tracing_timer;

/// Returns the coarse clock's time. `{:.3}` prints it in RFC 3339, with milliseconds.
///
/// # Errors
///
/// The clock is beyond the year 9999.
pub fn jiff_now() -> Result<jiff::Timestamp, jiff::Error> {
    jiff::Timestamp::try_from(SystemTime::from(RealtimeCoarse::now()))
}

//! A timer for tracing-subscriber: `tracing_subscriber::fmt().with_timer(CoarseTime)`.

use std::fmt;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::jiff_now;

/// The coarse clock, in RFC 3339.
pub struct CoarseTime;

impl FormatTime for CoarseTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        write!(out, "{:.3}", jiff_now().map_err(|_| fmt::Error)?)
    }
}

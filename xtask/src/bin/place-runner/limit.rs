//! The time that a program may take.

use std::env;
use std::time::Duration;

const VARIABLE: &str = "VDSO_TIME_GUEST_TIMEOUT";
const SECONDS: u64 = 120;

pub(crate) fn limit() -> Result<Duration, String> {
    let Ok(text) = env::var(VARIABLE) else { return Ok(Duration::from_secs(SECONDS)) };
    text.parse().map(Duration::from_secs).map_err(|_| format!("{VARIABLE}={text} is no number of seconds"))
}

/// What to say of a program that took longer.
pub(crate) fn exceeded(program: &str, limit: Duration) -> String {
    let seconds = limit.as_secs();
    format!("{program}: no end after {seconds} s; {VARIABLE}=SECONDS allows more")
}

//! What a program copies to use vdso-time's clocks in other crates. `docs/LOGGING.md` explains it.

pub mod dates;
pub mod governor_clock;
pub mod log4rs_encoder;
pub mod tracing_timer;

//! The API, under the name that dependants use.

pub use vdso_time_quanta::{
    Clock, Error, Handle, Instant, IntoNanoseconds, Mock, Upkeep, set_recent, with_clock,
};

//! The API, under the name that dependants use.

pub use vdso_time_quanta::minstant::*;

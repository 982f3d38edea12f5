//! The promise: a program that says `use vdso_time` where it said `use std::time` compiles and
//! means the same.
//!
//! The idioms are one file, compiled twice: with the types of std, which shows that these are std's
//! idioms, and with the types of this crate. Between the two only one `use` line differs.

#![allow(clippy::duplicate_mod, reason = "the same file is meant to be compiled twice")]

#[path = "support"]
mod with_std {
    use std::time::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

    #[path = "std_idioms.rs"]
    mod idioms;
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "support"]
mod with_vdso_time {
    use vdso_time::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH};

    #[path = "std_idioms.rs"]
    mod idioms;
}

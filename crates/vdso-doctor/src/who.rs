//! `vdso-doctor who`: which callers of a process read the clock.

#![allow(dead_code, reason = "the command follows")]

mod stack;

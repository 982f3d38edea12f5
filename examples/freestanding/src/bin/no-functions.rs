//! Does nothing. To find out how much the five functions add to the size of a program, compare the
//! sizes of this program and of `five-functions`, which calls the five functions and does nothing
//! else.

#![no_std]
#![no_main]

#[path = "../runtime.rs"]
#[allow(dead_code, reason = "it prints nothing")]
mod runtime;

fn main(_: usize, _: *const u8) -> i32 {
    0
}

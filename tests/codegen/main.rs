//! What the compiler makes of the crate: instructions, panics, symbols and sizes.
//!
//! These tests run the compiler, and look at the programs and listings that it makes.

#![cfg(any(target_os = "linux", target_os = "android"))]

mod arm_words;
mod freestanding;
mod instruction_count;
mod no_panic;

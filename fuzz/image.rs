//! Any bytes are refused, or are an image that keeps the promises.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use test_images::promises;
use vdso_time_fuzz::{count, mutate};

fuzz_target!(|bytes: &[u8]| count(promises::keep(bytes).is_some()));

fuzz_mutator!(|bytes: &mut [u8], size: usize, most: usize, seed: u32| { mutate(bytes, size, most, seed) });

//! Any bytes are refused, or make an image that keeps the promises.
#![no_main]

#[path = "../mutator.rs"]
mod mutator;
#[path = "../../tests/properties/promises.rs"]
mod promises;
#[path = "../tally.rs"]
mod tally;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| tally::count(promises::keep(bytes).is_some()));

fuzz_mutator!(|bytes: &mut [u8], size: usize, most: usize, seed: u32| {
    mutator::mutate(bytes, size, most, seed)
});

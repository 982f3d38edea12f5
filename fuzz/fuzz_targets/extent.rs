//! Of any bytes, the first page tells the extent, or why there is none.
#![no_main]

#[path = "../mutator.rs"]
mod mutator;
#[path = "../../tests/properties/promises.rs"]
mod promises;
#[path = "../tally.rs"]
mod tally;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|bytes: &[u8]| tally::count(promises::extent(bytes).is_ok()));

fuzz_mutator!(|bytes: &mut [u8], size: usize, most: usize, seed: u32| {
    mutator::mutate(bytes, size, most, seed)
});

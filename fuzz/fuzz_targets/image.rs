//! Any bytes are refused, or make an image that keeps the promises.
#![no_main]

#[path = "../../tests/properties/promises.rs"]
mod promises;

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;

/// How many inputs there were, and how many of them were images: a fuzzer that is refused at the door finds nothing.
static INPUTS: AtomicU64 = AtomicU64::new(0);
static IMAGES: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|bytes: &[u8]| {
    let image = u64::from(promises::keep(bytes).is_some());
    let inputs = INPUTS.fetch_add(1, Ordering::Relaxed) + 1;
    let images = IMAGES.fetch_add(image, Ordering::Relaxed) + image;
    if inputs.is_power_of_two() {
        eprintln!("{images} of {inputs} inputs were images");
    }
});

//! How many inputs there were, and how many of them passed (were an image, or had an extent): a fuzzer that is refused at the door finds nothing.

use std::sync::atomic::{AtomicU64, Ordering};

static INPUTS: AtomicU64 = AtomicU64::new(0);
static IMAGES: AtomicU64 = AtomicU64::new(0);

/// Counts an input, and prints the tally now and then.
pub(crate) fn count(image: bool) {
    let images = IMAGES.fetch_add(u64::from(image), Ordering::Relaxed) + u64::from(image);
    let inputs = INPUTS.fetch_add(1, Ordering::Relaxed) + 1;
    if inputs % 10_000_000 == 0 || (inputs >= 1 << 16 && inputs.is_power_of_two()) {
        eprintln!("{images} of {inputs} inputs passed");
    }
}

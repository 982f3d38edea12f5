//! Of any bytes, the first page tells the extent, or why there is none.
#![no_main]

#[path = "../../tests/properties/promises.rs"]
mod promises;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = promises::extent(bytes);
});

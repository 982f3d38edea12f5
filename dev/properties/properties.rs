//! Properties of every image, well-formed or corrupted. Each run has the same cases unless
//! `PROPTEST_RNG_SEED` is set; `PROPTEST_CASES` sets their number.

mod cases;
mod changes;
mod shapes;

use cases::check;

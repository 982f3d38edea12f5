//! What holds for every image, sound or spoilt. The cases are the same in each run, unless `PROPTEST_RNG_SEED` says
//! otherwise; `PROPTEST_CASES` says how many of each property there are.

mod bytes;
mod cases;
mod changes;
mod promises;
mod shapes;
mod spoil;
mod steps;
mod walks;
mod worst;
mod written;

/// The walker once more, with a counter in it: see `build.rs`.
#[path = "../../src/elf/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "of the library's own file only a part is asked"
)]
mod elf;

use test_support::image;
use test_support::image::kinds as image_kinds;

use cases::check;

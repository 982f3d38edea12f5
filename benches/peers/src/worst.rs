//! The cost of the images that take the parser longest for their size. Its work is linear, so an
//! image of twice the size must cost about twice as much.

use std::hint::black_box;

use test_images::worst;
use vdso_time::elf::Image;
use vdso_time::{Routes, ThreadCpuTime};
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::samples::{Samples, say};
use vdso_time_benches::pages::Table;

/// The images.
pub const ROWS: [&str; 4] = [
    "worst image: longest names",
    "worst image: other versions",
    "worst image: hidden symbols",
    "worst image: longest tables",
];

/// The sizes, of which the larger one is the largest that an image may have.
pub const SIZES: [&str; 2] = ["512 KiB", "1 MiB"];

const BYTES: [usize; 2] = [512 << 10, 1 << 20];

/// How often an image is parsed and searched. The shortest time counts, and only the time of this
/// thread, because the larger images take longer than a time slice.
const TIMES: usize = 15;

/// Prints the nanoseconds of parsing and searching each image.
pub fn print() {
    let images = [
        worst::longest_names,
        worst::other_versions,
        worst::hidden_symbols,
        worst::longest_tables,
    ];
    for (row, image) in ROWS.into_iter().zip(images) {
        for (size, bytes) in SIZES.into_iter().zip(BYTES) {
            let image = image(bytes);
            let nanos = (0..TIMES).map(|_| search(&image)).min();
            say(row, size, nanos.unwrap_or(0) as f64);
        }
    }
}

/// Parses an image and makes each call that a program can make with it once. Returns the
/// nanoseconds.
fn search(bytes: &[u8]) -> u128 {
    let start = ThreadCpuTime::now();
    let image = Image::parse(black_box(bytes)).expect("it is well-formed");
    black_box(image.symbols().count());
    let first = image.symbols().next();
    let name = first.and_then(|symbol| symbol.name().to_str().ok());
    black_box(image.symbol(name.unwrap_or("clock"), Some("no version")));
    black_box(Routes::of_image(&image));
    start.elapsed().as_nanos()
}

/// Returns the milliseconds of each image.
pub fn table(samples: &Samples) -> Table {
    Table::of("peers-worst", "ms", ROWS, &SIZES, |row, size| {
        let nanos = samples.nanos(row, Spacing::Isolated, size)?;
        Some(format!("{:.2}", nanos / 1e6))
    })
}

//! The cost of the images that take the parser longest for their size. Its work is linear, so an
//! image of twice the size must cost about twice as much.

use std::hint::black_box;

use test_images::worst;
use vdso_time::elf::Image;
use vdso_time::{Routes, ThreadCpuTime};
use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::samples::{Samples, say};
use vdso_time_benches::pages::Table;

/// The argument of a child process that measures these rows.
pub const COMMAND: &str = "worst";

pub const NAMES: &str = "worst image: longest names";
pub const VERSIONS: &str = "worst image: other versions";
pub const HIDDEN: &str = "worst image: hidden symbols";
pub const TABLES: &str = "worst image: longest tables";

/// The images.
pub const ROWS: [&str; 4] = [NAMES, VERSIONS, HIDDEN, TABLES];

/// Half of the largest size that an image may have.
pub const HALF: &str = "512 KiB";
/// The largest size that an image may have.
pub const WHOLE: &str = "1 MiB";

/// How often an image is parsed and searched. The shortest time counts, and only the time of this
/// thread, because the larger images take longer than a time slice.
const TIMES: usize = 15;

/// Prints the nanoseconds of parsing and searching each image.
pub fn print() {
    print_row(NAMES, worst::longest_names);
    print_row(VERSIONS, worst::other_versions);
    print_row(HIDDEN, worst::hidden_symbols);
    print_row(TABLES, worst::longest_tables);
}

/// Prints the nanoseconds of an image of both sizes.
fn print_row(row: &str, image: fn(usize) -> Vec<u8>) {
    let half = image(512 << 10);
    say(row, HALF, quickest_search(&half));
    let whole = image(1 << 20);
    say(row, WHOLE, quickest_search(&whole));
}

/// Returns the nanoseconds of the quickest search.
fn quickest_search(image: &[u8]) -> f64 {
    let mut quickest = u128::MAX;
    for _ in 0..TIMES {
        let nanos = search(image);
        quickest = quickest.min(nanos);
    }
    quickest as f64
}

/// Parses an image and makes each call that a program can make with it once. Returns the
/// nanoseconds.
fn search(bytes: &[u8]) -> u128 {
    let start = ThreadCpuTime::now();
    let image = Image::parse(black_box(bytes));
    let image = image.expect("it is well-formed");
    let count = image.symbols().count();
    black_box(count);
    let mut name = "clock";
    if let Some(first) = image.symbols().next() {
        name = first.name().to_str().unwrap_or(name);
    }
    let symbol = image.symbol(name, Some("no version"));
    black_box(symbol);
    let routes = Routes::of_image(&image);
    black_box(routes);
    start.elapsed().as_nanos()
}

/// Returns the milliseconds of each image.
pub fn table(samples: &Samples) -> Table {
    let sizes = [HALF, WHOLE];
    Table::of("peers-worst", "ms", ROWS, &sizes, |row, size| {
        let nanos = samples.nanos(row, Spacing::Isolated, size)?;
        Some(format!("{:.2}", nanos / 1e6))
    })
}

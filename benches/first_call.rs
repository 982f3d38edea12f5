//! `cargo bench --bench first_call`: what the first call of a process does once, with warm caches:
//! this crate's parser, and goblin's on the same bytes.

#![allow(unsafe_code, reason = "the kernel's image is read")]

#[path = "config/mod.rs"]
mod config;

use std::hint::black_box;
use std::slice;

use config::Timer;
use criterion::{Criterion, Throughput};
use goblin::elf::Elf;
use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;

/// The sum of the values of these symbols.
fn by_ours(bytes: &[u8], symbols: &[(&str, &str)]) -> u64 {
    let image = Image::parse(bytes).expect("the kernel's image is well-formed");
    let value =
        |&(name, version): &(&str, &str)| image.symbol(name, Some(version)).map(|symbol| symbol.value());
    symbols.iter().filter_map(value).sum()
}

/// The same by goblin, which does not look at versions.
fn by_goblin(bytes: &[u8], symbols: &[(&str, &str)]) -> u64 {
    let elf = Elf::parse(bytes).expect("the kernel's image is well-formed");
    let value = |&(name, _): &(&str, &str)| {
        let mut symbols = elf.dynsyms.iter();
        symbols
            .find(|symbol| elf.dynstrtab.get_at(symbol.st_name) == Some(name))
            .map(|symbol| symbol.st_value)
    };
    symbols.iter().filter_map(value).sum()
}

/// The section headers can lie after the loaded segment. goblin would read them.
fn without_sections(image: &[u8]) -> Vec<u8> {
    let is_64_bit = cfg!(target_pointer_width = "64");
    let (offset, count) = if is_64_bit { (0x28..0x30, 0x3c..0x3e) } else { (0x20..0x24, 0x30..0x32) };
    let mut bytes = image.to_vec();
    bytes[offset].fill(0);
    bytes[count].fill(0);
    bytes
}

fn discovery(criterion: &mut Criterion<Timer>) {
    let vdso = match Vdso::locate() {
        Ok(vdso) => vdso,
        Err(error) => return println!("not run here: {error}"),
    };
    criterion.bench_function("locate", |bencher| bencher.iter(|| Vdso::locate().is_ok()));
    // SAFETY: the kernel mapped these bytes for the life of the process, and `Vdso` found them.
    let image = unsafe { slice::from_raw_parts(vdso.base(), vdso.size()) };
    let bytes = &without_sections(image);
    let symbols = vdso_time_benches::calls::symbols();
    for (name, count) in [("one symbol", 1), ("all symbols", symbols.len())] {
        let symbols = &symbols[..count];
        assert_eq!(by_ours(bytes, symbols), by_goblin(bytes, symbols), "{symbols:?}");
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(count as u64));
        group
            .bench_function("vdso", |bencher| bencher.iter(|| by_ours(black_box(bytes), black_box(symbols))));
        group.bench_function("goblin", |bencher| {
            bencher.iter(|| by_goblin(black_box(bytes), black_box(symbols)));
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = config::criterion();
    discovery(&mut criterion);
    criterion.final_summary();
}

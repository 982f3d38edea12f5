//! Each of `examples/*.rs` runs, and prints the truth.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use goblin::elf::Elf;
use goblin::elf::section_header::SHN_ABS;
use test_images::kinds;
use test_support::not_run::target_tmpdir;
use test_support::program;

fn run(example: &str, arguments: &[&Path]) -> Option<String> {
    program::example(&["--package=vdso-time"], example, arguments)
}

#[test]
fn clock_prints_the_seconds_since_the_epoch() {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let before = now();
    let Some(text) = run("clock", &[]) else {
        return;
    };
    let line = |name| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim_start()
    };
    for name in ["time() ", "SystemTime ", "gettimeofday "] {
        let seconds: u64 = line(name)
            .split([' ', '.'])
            .next()
            .unwrap()
            .parse()
            .unwrap();
        // The second of the coarse clock can be a tick late.
        assert!((before - 1..=now()).contains(&seconds), "{name}: {seconds}");
    }
    assert!(!line("Instant ").starts_with("0 reads"), "{text}");
}

#[test]
fn mock_moves_its_time() {
    let Some(text) = run("mock", &[]) else { return };
    let expected = "\
expired after 0 s: false
expired after 59 s: false
expired after 60 s: true
expired now: false
";
    assert_eq!(text, expected);
}

#[test]
fn symbols_prints_the_names_that_goblin_sees() {
    for (machine, spec) in [
        ("machine 40, 32 bits", kinds::arm()),
        ("machine 183, 64 bits", kinds::aarch64()),
    ] {
        let bytes = spec.build().bytes;
        let file = target_tmpdir().join("image.so");
        fs::write(&file, &bytes).unwrap();
        let Some(text) = run("symbols", &[&file]) else {
            return;
        };
        assert!(text.starts_with(machine), "{text}");
        let names: BTreeSet<&str> = text
            .lines()
            .skip(1)
            .map(|line| line.rsplit(' ').next().unwrap())
            .collect();
        let elf = Elf::parse(&bytes).unwrap();
        let functions = elf
            .dynsyms
            .iter()
            .filter(|symbol| ![0, SHN_ABS as usize].contains(&symbol.st_shndx));
        let expected = functions
            .map(|symbol| elf.dynstrtab.get_at(symbol.st_name).unwrap())
            .collect();
        assert_eq!(names, expected);
    }
    let Some(own) = run("symbols", &[]) else {
        return;
    };
    assert!(own.lines().count() > 1, "{own}");
}

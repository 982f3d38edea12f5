//! Tests of the counters' compiled assembly: an object for a CPU older than ARMv7 is not marked as
//! ARMv7, each instruction that is written as a number is the encoding of its mnemonic, an ordered
//! read has its barriers, and a fast read needs no stack and computes with the counter's low half.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{cost, program};

/// Returns the path of an architecture's source.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/machine/arch")
        .join(name)
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes a crate that contains the source of an architecture's counter, and a function that reads
/// the counter after all loads. Returns its path.
fn library(name: &str) -> PathBuf {
    let file = place(&format!("library_{name}"));
    let counter = source("counter.rs").display().to_string();
    let native = source(&format!("native/{name}"));
    let native = native.display().to_string();
    let text = format!(
        "#![no_std]\n#[path = {counter:?}]\nmod counter;\n#[path = {native:?}]\nmod native;\n\
         use counter::Counter;\n\
         #[unsafe(no_mangle)]\npub fn after_loads() -> u64 {{\n\
         native::CpuCounter::complete_loads();\nnative::CpuCounter::ticks_ordered()\n}}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

const FLAGS: &[&str] = &[
    "--crate-name=library",
    "-Copt-level=3",
    "-Clink-dead-code",
    "-Ccodegen-units=1",
];

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    let Some(code) = program::emit_for_armv5(&library("arm.rs"), FLAGS, &place("armv5te.o")) else {
        return;
    };
    // The object contains the instructions that are written as numbers.
    for (_, word, mnemonic) in WORDS.iter().filter(|(mode, ..)| *mode == ".arm") {
        assert!(
            code.windows(4).any(|bytes| bytes == word.to_le_bytes()),
            "{mnemonic} is not in the object"
        );
    }
}

/// Looks for `dsb`, because `isb` alone does not wait for a load (Arm Architecture Reference
/// Manual, B2.3.7). Also looks for one branch, which chooses between `isb` with `CNTVCT_EL0` and
/// `CNTVCTSS_EL0` alone. `cargo xtask msrv test --test codegen aarch64 -- --nocapture` prints the
/// instructions.
#[test]
fn ticks_ordered_waits_for_earlier_loads_on_aarch64() {
    const TRIPLE: &str = "aarch64-unknown-linux-gnu";
    let listing = program::emit(
        "asm",
        TRIPLE,
        &library("aarch64.rs"),
        FLAGS,
        &place("aarch64_ticks.s"),
    );
    let Some(listing) = listing.map(|listing| String::from_utf8(listing).unwrap()) else {
        return;
    };
    let lines: Vec<_> = cost::instructions(&listing, "after_loads").collect();
    println!("{}", lines.join("\n"));
    let mut order = Vec::new();
    let mut branches = 0;
    for line in lines {
        match line.split_once('\t').unwrap_or((line, "")) {
            ("mrs", operands) => order.push(operands.split_once(", ").unwrap().1),
            (name @ ("dsb" | "isb"), _) => order.push(name),
            (name, _) => branches += u32::from(name.starts_with(['c', 't'])), // cbz, tbnz, ...
        }
    }
    let expected = [
        ["dsb", "isb", "CNTVCT_EL0", "S3_3_C14_C0_6"],
        ["dsb", "S3_3_C14_C0_6", "isb", "CNTVCT_EL0"],
    ];
    assert!(
        branches == 1 && expected.iter().any(|expected| order == *expected),
        "{branches} branches, {order:?}"
    );
}

#[test]
fn a_fast_read_on_x86_64_needs_no_stack_and_computes_with_the_low_half() {
    const TRIPLE: &str = "x86_64-unknown-linux-gnu";
    const READS: [&str; 2] = ["CounterMonotonic", "CounterMonotonicUnordered"];
    let Some(library) = program::library(["vdso-time-counter", ""], TRIPLE, "fast-read", &[])
    else {
        return;
    };
    let function = |clock: &str| {
        format!(
            "#[unsafe(no_mangle)]\npub fn {clock}_now() -> i64 {{\n\
             vdso_time_counter::{clock}::now().as_nanos()\n}}\n"
        )
    };
    let text = format!("#![no_std]\n{}", READS.map(function).concat());
    let file = place("fast_read.rs");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let Some(listing) = program::listing(TRIPLE, file, &library, &[]) else {
        return;
    };
    for clock in READS {
        let function = format!("{clock}_now");
        let lines: Vec<_> = cost::instructions(&listing, &function).collect();
        let is_stack = |line: &&str| line.contains("%rsp") || line.contains("push");
        assert!(lines.contains(&"rdtsc"), "{lines:#?}");
        assert!(!lines.iter().any(is_stack), "{lines:#?}");
        // The low half of the difference, beside the whole difference for the comparison.
        let is_low_half = |line: &&str| line.starts_with("subl");
        assert!(lines.iter().any(is_low_half), "{lines:#?}");
    }
}

/// The instructions that are numbers in the source. For each: the mode in which it is executed, its
/// number, and its mnemonic.
const WORDS: [(&str, u32, &str); 6] = [
    (".arm", 0xec51_0f1e, "mrrc p15, 1, r0, r1, c14"),
    (".thumb", 0xec51_0f1e, "mrrc p15, 1, r0, r1, c14"),
    (".arm", 0xee1e_0f10, "mrc p15, 0, r0, c14, c0, 0"),
    (".thumb", 0xee1e_0f10, "mrc p15, 0, r0, c14, c0, 0"),
    (".arm", 0xf57f_f06f, "isb sy"),
    (".thumb", 0xf3bf_8f6f, "isb sy"),
];

#[test]
fn each_word_is_what_its_mnemonic_is_assembled_to() {
    let text = fs::read_to_string(source("native/arm.rs")).unwrap();
    let is_listed = |line: &&str| {
        WORDS
            .iter()
            .any(|(_, word, _)| line.contains(&format!(".inst {word:#x}\"")))
    };
    assert_eq!(
        text.lines()
            .filter(|line| line.contains(".inst "))
            .find(|line| !is_listed(line)),
        None
    );
    let object = |line: fn(u32, &str) -> String| {
        let lines = WORDS.map(|(mode, word, mnemonic)| [mode, &line(word, mnemonic)].join("\n"));
        let text = format!(
            "#![no_std]\ncore::arch::global_asm!({:?});\n",
            lines.join("\n")
        );
        let file = place("arm_words.rs");
        fs::write(&file, text).unwrap();
        program::emit(
            "obj",
            "armv7-unknown-linux-gnueabihf",
            &file,
            &[],
            &place("arm_words.o"),
        )
    };
    let Some(by_words) = object(|word, _| format!(".inst {word:#x}")) else {
        return;
    };
    assert!(
        Some(by_words) == object(|_, mnemonic| mnemonic.into()),
        "a word is not its mnemonic"
    );
}

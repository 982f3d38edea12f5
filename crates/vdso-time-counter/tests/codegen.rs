//! The compiled assembly of the counters: a program for a CPU older than ARMv7 stays one, each word
//! is the encoding of its mnemonic, and an ordered read has its barriers.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{cost, program};

/// Returns the path of an architecture's source.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/machine/arch").join(name)
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Writes a crate with the source of an architecture, and a function of its own.
fn library(name: &str) -> PathBuf {
    let file = place(&format!("library_{name}"));
    let [counter, native] = ["counter.rs", name].map(|file| source(file).display().to_string());
    let text = format!(
        "#![no_std]\n#[path = {counter:?}]\nmod counter;\n#[path = {native:?}]\nmod native;\n\
         use counter::Counter;\n\
         #[unsafe(no_mangle)]\npub fn after_loads() -> u64 {{\n\
         native::CpuCounter::complete_loads();\nnative::CpuCounter::ticks_ordered()\n}}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

const FLAGS: &[&str] = &["--crate-name=library", "-Copt-level=3", "-Clink-dead-code", "-Ccodegen-units=1"];

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    let Some(code) = program::emit_for_armv5(&library("arm.rs"), FLAGS, &place("armv5te.o")) else { return };
    // The words are in it.
    for word in words() {
        assert!(code.windows(4).any(|bytes| bytes == word.code), "{word:?} is not in the object");
    }
}

/// Looks for `dsb`, because `isb` alone does not wait for a load (Arm Architecture Reference
/// Manual, B2.3.7), and for one branch, which chooses between them and `CNTVCTSS_EL0`. `cargo xtask
/// msrv test --test codegen aarch64 -- --nocapture` prints the instructions.
#[test]
fn ticks_ordered_waits_for_earlier_loads_on_aarch64() {
    const TRIPLE: &str = "aarch64-unknown-linux-gnu";
    let listing = program::emit("asm", TRIPLE, &library("aarch64.rs"), FLAGS, &place("aarch64_ticks.s"));
    let Some(listing) = listing.map(|listing| String::from_utf8(listing).unwrap()) else { return };
    let lines: Vec<_> = cost::instructions(&listing, "after_loads").collect();
    println!("{}", lines.join("\n"));
    let (mut order, mut branches) = (Vec::new(), 0);
    for line in lines {
        match line.split_once('\t').unwrap_or((line, "")) {
            ("mrs", operands) => order.push(operands.split_once(", ").unwrap().1),
            (name @ ("dsb" | "isb"), _) => order.push(name),
            (name, _) => branches += u32::from(name.starts_with(['c', 't'])), // cbz, tbnz, ...
        }
    }
    let [with_isb, without] = [["isb", "CNTVCT_EL0"].as_slice(), &["S3_3_C14_C0_6"]];
    let expected = [[&["dsb"], with_isb, without].concat(), [&["dsb"], without, with_isb].concat()];
    assert!(branches == 1 && expected.contains(&order), "{branches} branches, {order:?}");
}

/// A word in the source, and what the comment on its line says of it.
#[derive(Debug)]
struct Word {
    number: String,
    /// In ARM mode.
    code: [u8; 4],
    mnemonic: String,
    /// The modes in which it is executed.
    modes: &'static [&'static str],
}

fn words() -> Vec<Word> {
    let text = fs::read_to_string(source("arm.rs")).unwrap();
    let words = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once("\".inst ")?.1.split_once('"')?;
        let (_, comment) = rest.split_once("// ").unwrap_or_else(|| panic!("no mnemonic: {line}"));
        let (mnemonic, modes) = match comment.split_once(", in ") {
            None => (comment, &["arm", "thumb"][..]),
            Some((mnemonic, "ARM mode")) => (mnemonic, &["arm"][..]),
            Some((mnemonic, "Thumb mode")) => (mnemonic, &["thumb"][..]),
            Some(_) => panic!("{line}"),
        };
        let code = u32::from_str_radix(number.trim_start_matches("0x"), 16).unwrap().to_le_bytes();
        Some(Word { number: number.into(), code, mnemonic: mnemonic.into(), modes })
    });
    words.collect()
}

#[test]
fn each_word_is_what_its_mnemonic_is_assembled_to() {
    let words = words();
    assert!(words.len() >= 4, "{words:?}");
    let object = |line: fn(&Word) -> String| {
        let in_mode = |word: &Word, mode: &str| [format!(".{mode}"), line(word)].join("\n");
        let lines = words.iter().flat_map(|word| word.modes.iter().map(move |mode| in_mode(word, mode)));
        let assembly = lines.collect::<Vec<_>>().join("\n");
        let text = format!("#![no_std]\ncore::arch::global_asm!({assembly:?});\n");
        let file = place("arm_words.rs");
        fs::write(&file, text).unwrap();
        program::emit("obj", "armv7-unknown-linux-gnueabihf", &file, &[], &place("arm_words.o"))
    };
    let Some(by_words) = object(|word| format!(".inst {}", word.number)) else { return };
    assert!(Some(by_words) == object(|word| word.mnemonic.clone()), "{words:?}");
}

//! The promise: a program for a CPU older than ARMv7 stays one when it is linked with this crate.
//! The counter's instructions are words, which do not mark the object.

use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::{not_run_here, program};

const TRIPLE: &str = "armv7-unknown-linux-gnueabihf";

#[test]
fn the_assembly_does_not_mark_an_object_for_armv5_as_armv7() {
    if let Err(why) = program::find_standard_library(TRIPLE) {
        return not_run_here(TRIPLE, why);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("armv5te.o");
    // The compiler at hand has the libraries of this target, not of an older one.
    let flags = [
        "--crate-name=vdso_time",
        "--cfg=feature=\"counter\"",
        "-Copt-level=3",
        "-Clink-dead-code",
        "-Ccodegen-units=1",
        "-Ctarget-cpu=arm926ej-s",
        "-Ctarget-feature=-v7,-thumb2,-v6t2,-v6k,-v6",
    ];
    program::object(TRIPLE, &source.join("lib.rs"), &flags, &object);
    let output = match Command::new("readelf").arg("-A").arg(&object).output() {
        Ok(output) => String::from_utf8(output.stdout).expect("UTF-8"),
        Err(error) => return not_run_here("readelf", format!("readelf: {error}")),
    };
    let marks: Vec<_> =
        output.lines().filter_map(|line| line.trim().strip_prefix("Tag_CPU_arch: ")).collect();
    assert!(!marks.is_empty() && marks.iter().all(|mark| *mark == "v5TE"), "{marks:?}\n{output}");
    // The words are in it.
    let code = fs::read(&object).unwrap();
    let text = fs::read_to_string(source.join("arch/arm.rs")).unwrap();
    let words = text.lines().filter_map(|line| line.split_once("\".inst 0x")?.1.get(..8));
    let words: Vec<_> = words.map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
    assert!(words.len() >= 5, "{words:x?}");
    for word in words {
        assert!(code.windows(4).any(|bytes| bytes == word.to_le_bytes()), "{word:#x} is not in the object");
    }
}

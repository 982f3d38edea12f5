//! valgrind sees no read outside an image.

use std::env;
use std::process::Command;

use test_images::Spec;
use test_images::kinds::{aarch64, arm};
use test_support::child::this_program;
use test_support::{has_tool, not_run_here};
use vdso_time::elf::{Image, Symbol};

const UNDER_VALGRIND: &str = "VDSO_TIME_TEST_UNDER_VALGRIND";

/// Reads images in memory of exactly their size, with each of their numbers spoilt.
fn read_everything() {
    for spec in [arm(), Spec { big_endian: true, ..aarch64() }] {
        let sound = spec.build();
        let end = sound.bytes.len() as u64;
        for field in &sound.fields {
            for value in [end - 1, u64::MAX] {
                let bytes = sound.clone().set(&field.name, value).bytes.clone().into_boxed_slice();
                if let Ok(image) = Image::parse(&bytes) {
                    let name = |symbol: Symbol<'_>| image.symbol(symbol.name().to_str().ok()?, None);
                    std::hint::black_box(image.symbols().filter_map(name).count());
                }
            }
        }
    }
}

#[test]
fn valgrind_sees_no_read_outside() {
    if env::var_os(UNDER_VALGRIND).is_some() {
        return read_everything();
    }
    if cfg!(target_feature = "crt-static") {
        return not_run_here("valgrind", "valgrind cannot replace malloc in a static program");
    }
    if !has_tool(&["valgrind", "-q", "true"]) {
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(["-q", "--error-exitcode=9"]).arg(this_program());
    command.args(["--exact", "valgrind::valgrind_sees_no_read_outside", "--test-threads=1"]);
    let output = command.env(UNDER_VALGRIND, "").output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // valgrind does not start a program of another architecture.
    if !text.contains("running 1 test") {
        return not_run_here("valgrind", text);
    }
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
}

//! An architecture is a file and a line in `src/arch/list.rs`. Everything else derives from the
//! list or is compared with it here.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::not_run::target_tmpdir;
use test_support::{not_run_here, program};
use vdso_time::arch::{ALL, NATIVE, TARGETS};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(program::ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_line_has_the_name_and_the_class_of_its_table() {
    // Those without a line follow.
    assert!(ALL.len() > TARGETS.len());
    for (abi, [arch, width, _]) in ALL.iter().zip(TARGETS) {
        assert_eq!(abi.name, *arch);
        assert_eq!(abi.class, if *width == "64" { 2 } else { 1 }, "{arch}");
    }
}

#[test]
fn cargo_requires_libc_for_targets_that_are_not_in_the_list() {
    let mut listed = String::new();
    // Its system calls go through libc.
    for [arch, width, _] in TARGETS.iter().filter(|[arch, ..]| *arch != "powerpc64") {
        let comma = if listed.is_empty() { "" } else { ", " };
        write!(listed, "{comma}all(target_arch = \"{arch}\", target_pointer_width = \"{width}\")").unwrap();
    }
    let linux = "any(target_os = \"linux\", target_os = \"android\")";
    let expected = format!("[target.'cfg(all({linux}, any(miri, not(any({listed})))))'.dependencies]");
    let manifest = read("Cargo.toml");
    let found = manifest.lines().find(|line| line.starts_with("[target.'cfg(")).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn every_target_of_the_list_is_documented_and_checked() {
    let docs = read("Cargo.toml");
    let checked = read("xtask/src/check.rs") + &read("crates/vdso-time-kernel-runner/src/targets.rs");
    for [.., target] in TARGETS {
        let target = format!("\"{target}\"");
        assert!(docs.contains(&target), "docs.rs does not build {target}");
        assert!(checked.contains(&target), "`cargo xtask check` leaves out {target}");
    }
}

/// Copies the library, and exchanges the line of this machine's architecture for one of a new name.
/// Two assertions in the new file fail to compile unless the list alone selects it.
#[test]
fn a_new_architecture_is_one_file_and_one_line() {
    let Some(abi) = NATIVE else { return };
    let [arch, width, target] = TARGETS.iter().find(|[arch, ..]| *arch == abi.name).unwrap();
    if let Err(why) = program::find_standard_library(target) {
        return not_run_here(target, why);
    }
    let folder = target_tmpdir().join("new-architecture");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let source = Path::new(program::ROOT).join("src");
    assert!(Command::new("cp").arg("-r").arg(source).arg(&folder).status().unwrap().success());
    fs::write(folder.join("build.rs"), read("build.rs")).unwrap();
    fs::write(folder.join("README.md"), "").unwrap();
    let manifest = "[package]\nname = \"vdso-time\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                    [features]\nlibc = []\nstd = []\n[workspace]\n";
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();

    let file = read(&format!("src/arch/{arch}.rs"));
    let machine = format!("machine: {},", abi.machine);
    assert!(file.contains(&machine));
    let new = file.replace(&machine, "machine: 0xfeed,");
    let count = ALL.len();
    let assertions = format!(
        "const _: () = assert!(super::ALL.len() == {count});\n\
         const _: () = assert!(matches!(super::NATIVE, Some(abi) if abi.machine == 0xfeed));\n"
    );
    fs::write(folder.join("src/arch/made_up.rs"), new + &assertions).unwrap();
    let list = read("src/arch/list.rs");
    let line = format!("    {arch}: \"{arch}\", \"{width}\", \"{target}\";\n");
    assert!(list.contains(&line), "{line}");
    let new_line = line.replacen(arch, "made_up", 1);
    fs::write(folder.join("src/arch/list.rs"), list.replace(&line, &new_line)).unwrap();

    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(&folder).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.args(["check", "--offline", "--target", target, "--target-dir", "target"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

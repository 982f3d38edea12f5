//! Without libc: a program with its own `_start` prints the time, the routes and the symbols. It
//! has no symbol of libc, and the five functions take at most 8.75 KiB. Without std: a signal
//! handler, an init process, and a library for LD_PRELOAD.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use goblin::elf::Elf;
use goblin::elf::sym::{STT_FILE, STT_SECTION};
use test_support::program::{self, ROOT};
use test_support::{command, not_run_here};
use vdso_time::LocateError;

use crate::place;

/// Builds the package in a target directory of its own, for the machine that builds it.
fn build() -> Result<PathBuf, String> {
    program::host()?;
    let package = Path::new(ROOT).join("examples/freestanding");
    let arguments = ["--release", "--bins", "--examples"];
    Ok(cargo_build(
        &package,
        &place("freestanding"),
        "--locked",
        &arguments,
    ))
}

/// Builds a package, with the profile of `cargo run` or with `--release`, and returns the directory
/// of its programs. First it makes the check that editors make.
fn cargo_build(package: &Path, target: &Path, lock: &str, arguments: &[&str]) -> PathBuf {
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(package)
            .args(arguments)
            .arg(lock)
            .arg("--target-dir")
            .arg(target);
        output(&mut cargo);
    };
    cargo(&["check", "--all-targets"]);
    cargo(&[&["build"], arguments].concat());
    let profile = if arguments.contains(&"--release") {
        "release"
    } else {
        "debug"
    };
    target.join(profile)
}

/// Returns the directory of the built programs, or records the test as not run.
fn programs() -> Option<&'static Path> {
    static BUILT: LazyLock<Result<PathBuf, String>> = LazyLock::new(build);
    match &*BUILT {
        Ok(directory) => Some(directory),
        Err(why) => {
            not_run_here(why);
            None
        }
    }
}

/// Returns what a command prints.
fn output(command: &mut Command) -> String {
    program::run(command).unwrap_or_else(|error| panic!("{error}"))
}

fn seconds_since_the_epoch() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs()
}

#[test]
fn it_prints_the_time_the_routes_and_the_symbols() {
    let Some(directory) = programs() else { return };
    // The program finds the vDSO through its own stack, or through the kernel.
    for arguments in [&[][..], &["ask-the-kernel"]] {
        let before = seconds_since_the_epoch();
        let text = output(Command::new(directory.join("report")).args(arguments));
        let after = seconds_since_the_epoch();

        let mut lines = text.lines();
        let time = lines.find_map(|line| line.strip_prefix("time "));
        let time: u64 = time.expect("the time").trim().parse().expect("a number");
        // time() turns with the timer tick, so it may be a tick behind.
        assert!(
            (before - 1..=after).contains(&time),
            "{before} {time} {after}"
        );
        for function in ["gettimeofday", "clock_gettime", "clock_getres", "getcpu"] {
            let line = format!("{function} Ok(");
            assert!(text.contains(&line), "{line} is missing in:\n{text}");
        }
        // The same routes as in this program, which asks libc for the vDSO; its address is another.
        let printed = without_addresses(&text);
        for route in without_addresses(&vdso_time::routes().to_string()) {
            assert!(printed.contains(&route), "{route} is missing in:\n{text}");
        }
        if let Ok(vdso) = vdso_time::vdso::Vdso::locate() {
            for symbol in vdso.image().symbols() {
                let name = format!("{:?}", symbol.name());
                assert!(text.contains(&name), "{name} is missing in:\n{text}");
            }
        }
    }
}

/// Returns the lines of a text, each without the address at its end.
fn without_addresses(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.split(" at 0x").next().unwrap_or(line))
        .collect()
}

/// Returns how many lines of a text contain a word.
fn lines_with(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.contains(word)).count()
}

/// Runs where valgrind has unmapped the vDSO and removed its entry, but the kernel still has the
/// address. memcheck reports the probe of that address, which the installed file suppresses.
#[test]
fn under_valgrind_the_kernel_answers() {
    let Some(directory) = programs() else { return };
    for (arguments, why) in [
        (&[][..], LocateError::Absent),
        (&["ask-the-kernel"], LocateError::Unmapped),
    ] {
        let mut valgrind = Command::new("valgrind");
        let suppressions = format!("--suppressions={ROOT}/crates/vdso-time-c/vdso_time.supp");
        valgrind.args(["-q", "--error-exitcode=9", &suppressions]);
        valgrind.arg(directory.join("report")).args(arguments);
        let output = match valgrind.output() {
            Ok(output) => output,
            Err(error) => return not_run_here(format!("valgrind: {error}")),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{text}");
        assert_eq!(lines_with(&text, "Ok("), 4, "{text}");
        // Before Linux 6.4 the kernel is asked through /proc, and valgrind answers for that too.
        let absent = LocateError::Absent;
        let is_right = lines_with(&text, &format!("({why})")) == 5
            || lines_with(&text, &format!("({absent})")) == 5;
        assert!(is_right, "{text}");
    }
}

/// Reads an ELF file of the package.
fn with_elf<T>(program: &Path, work: impl FnOnce(&Elf<'_>) -> T) -> T {
    let file = fs::read(program).expect("the program is there");
    work(&Elf::parse(&file).expect("an ELF file"))
}

#[test]
fn the_program_has_no_symbol_of_libc() {
    let Some(directory) = programs() else { return };
    with_elf(&directory.join("report"), |elf| {
        let mut has_start = false;
        for symbol in &elf.syms {
            let name = elf.strtab.get_at(symbol.st_name).unwrap_or_default();
            if name.is_empty() || [STT_SECTION, STT_FILE].contains(&symbol.st_type()) {
                continue;
            }
            has_start |= name == "_start";
            // Rust's own names are mangled. The others are this program's, the crate's and the
            // linker's.
            let own = ["_start", "memcpy", "memmove", "memset", "memcmp", "bcmp"].contains(&name);
            let rust = ["vdso_time_", "_ZN", "_R", "anon."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            let linker = name.starts_with('_') && !symbol.is_function();
            assert!(
                symbol.st_shndx != 0 && (own || rust || linker),
                "{name}: {symbol:?}"
            );
        }
        assert!(has_start);
    });
}

/// Shows that nothing of the crate runs before `_start`.
#[test]
fn there_is_no_constructor() {
    let Some(directory) = programs() else { return };
    with_elf(&directory.join("five-functions"), |elf| {
        let mut has_text = false;
        for section in &elf.section_headers {
            let name = elf.shdr_strtab.get_at(section.sh_name).unwrap_or_default();
            has_text |= name == ".text";
            for start in [".init", ".preinit", ".ctors"] {
                assert!(!name.starts_with(start), "{name}");
            }
        }
        assert!(has_text);
    });
}

#[test]
fn the_five_functions_take_at_most_8_75_kib() {
    let Some(directory) = programs() else { return };
    let size = |program: &str| {
        with_elf(&directory.join(program), |elf| {
            let mut size = 0;
            for section in &elf.section_headers {
                let name = elf.shdr_strtab.get_at(section.sh_name).unwrap_or_default();
                if name.starts_with(".text") || name.starts_with(".rodata") {
                    size += section.sh_size;
                }
            }
            size
        })
    };
    let size = size("five-functions") - size("no-functions");
    println!("{size} bytes of .text and .rodata");
    // Other compilers make other code of the same source: Rust 1.85 about 650 bytes more than 1.95.
    let is_measured = program::compiler().is_ok_and(|about| about.contains("release: 1.95"));
    let limit = if is_measured { 8960 } else { 9728 };
    assert!(size <= limit, "{size}");
}

/// Compares the times of a handler that interrupts the first calls with the times of the main
/// program.
#[test]
fn a_signal_handler_reads_the_clock() {
    let Some(directory) = programs() else { return };
    output(&mut Command::new(directory.join("examples/signal-handler")));
}

/// Starts process 1 of a PID namespace in an empty directory, without /proc and an environment.
#[test]
fn an_init_process_finds_the_vdso_before_anything_is_mounted() {
    let Some(directory) = programs() else { return };
    let root = place("init-root");
    fs::create_dir_all(&root).unwrap();
    command::write(
        &root.join("init"),
        fs::read(directory.join("init")).unwrap(),
    )
    .unwrap();
    let unshare = |arguments: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare
            .env_clear()
            .args(["--fork", "--pid", "--mount"])
            .args(arguments);
        unshare
    };
    // A user without rights has a PID namespace in a user namespace.
    let works = |user: &&[&str]| {
        let mut unshare = unshare(user);
        matches!(unshare.arg("true").status(), Ok(status) if status.success())
    };
    let Some(user) = [&[][..], &["--map-root-user"]].into_iter().find(works) else {
        return not_run_here("unshare(1) cannot make a PID namespace");
    };
    let text = output(unshare(user).arg("--root").arg(&root).arg("/init"));
    assert!(
        text.starts_with("Ok(") && text.ends_with("vDSO: true\n"),
        "{text}"
    );
}

/// libc's functions are replaced by functions that call the crate. If the crate called libc, the
/// program would overflow its stack. A read of the vDSO is not replaced.
#[test]
fn a_preloaded_library_moves_the_programs_clocks_also_before_any_constructor() {
    let Some(directory) = programs() else { return };
    let host = program::host().unwrap();
    let library = program::library(["vdso-time", ""], &host, "preload", &[]);
    let Some(library) = library else { return };
    let clocks = place("clocks");
    program::compile(
        &host,
        "tests/codegen/programs/clocks.rs",
        &library,
        &[],
        &clocks,
    )
    .unwrap();
    let before = seconds_since_the_epoch() - 1; // time() may be a tick behind
    let text =
        output(Command::new(&clocks).env("LD_PRELOAD", directory.join("examples/libpreload.so")));
    let after = seconds_since_the_epoch();
    let seconds: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(seconds.len(), 6);
    for (at, moved) in [3600, 3600, 3600, 3600, 3600, 0].into_iter().enumerate() {
        let expected = before + moved..=after + moved;
        assert!(
            expected.contains(&seconds[at]),
            "{at}: {seconds:?} {expected:?}"
        );
    }
}

/// Returns the text between the fences of a block of Markdown that begins with this line.
fn block<'a>(page: &'a str, start: &str) -> &'a str {
    let (_, rest) = page
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start}"));
    rest.split("```").next().unwrap()
}

#[test]
fn the_recipe_of_no_libc_is_the_example_and_links_when_copied() {
    if programs().is_none() {
        return;
    }
    let root = Path::new(ROOT);
    let page = fs::read_to_string(root.join("docs/NO_LIBC.md")).unwrap();
    let copy = place("no-libc");
    fs::create_dir_all(copy.join("src")).unwrap();
    for name in ["build.rs", "src/main.rs", "src/runtime.rs"] {
        let text = block(&page, &format!("```rust\n// {name}\n"));
        let file = fs::read_to_string(root.join("examples/freestanding").join(name)).unwrap();
        // The comments at its beginning are the page's text.
        let is_header = |line: &&str| line.starts_with("//") || line.is_empty();
        let of_page: Vec<&str> = text.lines().skip_while(is_header).collect();
        let of_file: Vec<&str> = file.lines().skip_while(is_header).collect();
        assert_eq!(of_page, of_file, "{name}");
        fs::write(copy.join(name), text).unwrap();
    }
    // Before the first release the page names a directory, and after it a version.
    let manifest = block(&page, "```toml\n# Cargo.toml\n")
        .replace("path = \"../vdso-time\"", "version = \"*\"");
    let patch = format!("\n[patch.crates-io]\nvdso-time.path = {root:?}\n");
    // The directory is inside of this workspace.
    fs::write(copy.join("Cargo.toml"), manifest + &patch + "[workspace]\n").unwrap();
    let directory = cargo_build(&copy, &place("no-libc-target"), "--offline", &[]);
    let text = output(&mut Command::new(directory.join("clock")));
    assert!(text.contains(" s since the Epoch\ntime "), "{text}");
}

//! Installs the libraries as a packager does, and runs programs of other languages with them. Each
//! program compares with its own language's clock.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use goblin::archive::Archive;
use goblin::elf::sym::STB_LOCAL;
use goblin::elf::{Elf, Sym};
use test_support::not_run::target_tmpdir;
use test_support::{has_tool, not_run, not_run_here};
use vdso_time_counter::{Refusal, Status};

/// Commands run in this folder.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

const HEADERS: [&str; 2] = ["vdso_time.h", "vdso_time_counter.h"];

/// The target of `cargo xtask on`, which sets its linker and its runner too.
fn foreign(setting: &str) -> Option<String> {
    let triple = env::var("CARGO_BUILD_TARGET").ok()?;
    env::var(format!("CARGO_TARGET_{}_{setting}", triple.to_uppercase().replace('-', "_"))).ok()
}

/// Whether the programs run in a kernel of their own. With `--target` of this machine, the tests
/// themselves run here.
fn is_guest() -> bool {
    env::var("RUSTFLAGS").is_ok_and(|flags| flags.contains("+crt-static"))
}

/// What it prints. It must succeed.
fn run(command: &mut Command) -> String {
    // The flags are for this test program.
    command.current_dir(PACKAGE).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let cache = target_tmpdir().join("c-cache");
    command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned() + &err
}

/// What a program of the target prints. It runs for at most a minute.
fn run_program(words: &[&str]) -> String {
    let runner = foreign("RUNNER").unwrap_or_default();
    let mut command = Command::new("timeout");
    command.arg("60").args(runner.split_whitespace()).args(words).env("LD_LIBRARY_PATH", installed("lib"));
    let output = run(&mut command);
    println!("{}\n{output}", words.join(" "));
    output
}

/// The path of a file of the installation, which is made once.
fn installed(file: &str) -> String {
    static PREFIX: LazyLock<PathBuf> = LazyLock::new(|| {
        let prefix = target_tmpdir().join("c");
        let _ = fs::remove_dir_all(&prefix);
        let mut make = Command::new("make");
        make.args(["install", concat!("CARGO=", env!("CARGO"))]).arg(format!("prefix={}", prefix.display()));
        run(make.env("CARGO_TARGET_DIR", target_tmpdir().join("c-build")));
        prefix
    });
    PREFIX.join(file).display().to_string()
}

/// Whether the libraries can be built; says what is missing if not.
fn can_build() -> bool {
    has_tool(&["make", "--version"]) && has_tool(&["pkg-config", "--version"])
}

/// Whether this is the compiler's own machine; says so if not.
fn is_native() -> bool {
    let is_native = foreign("LINKER").is_none();
    if !is_native {
        not_run("foreign programs are of C alone");
    }
    is_native
}

fn has_zig() -> bool {
    let version = Command::new("python3").args(["-m", "ziglang", "version"]).output();
    let has_zig = version.is_ok_and(|output| output.status.success());
    if !has_zig {
        not_run_here("ziglang", "python3 has no module ziglang; pip install ziglang");
    }
    has_zig
}

/// The commands that compile C for the target.
fn compilers() -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if let Some(linker) = foreign("LINKER") {
        // A guest, and without a runner this machine, lack the target's shared libraries.
        let is_static = is_guest() || foreign("RUNNER").is_none();
        return vec![[linker].into_iter().chain(is_static.then(|| "-static".into())).collect()];
    }
    let mut found = vec![words("cc")];
    found.extend(
        ["clang", "musl-gcc -static"]
            .map(words)
            .into_iter()
            .filter(|words| has_tool(&[&words[0], "--version"])),
    );
    found.extend(has_zig().then(|| words("python3 -m ziglang cc")));
    found
}

#[test]
fn c_programs_get_the_times_of_libc() {
    if !can_build() {
        return;
    }
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "vdso_time"]).env("PKG_CONFIG_PATH", installed("lib/pkgconfig"));
    let shared = run(&mut pkg_config);
    let archive = format!("-I{} {}", installed("include"), installed("lib/libvdso_time.a"));
    for compiler in compilers() {
        let is_static = compiler.contains(&"-static".into());
        for (source, library) in [
            ("examples/clock.c", Some(&archive)),
            ("tests/parse_vdso.c", Some(&archive)),
            ("examples/clock.c", Some(&shared).filter(|_| !is_static)),
            ("tests/parse_vdso.c", Some(&shared).filter(|_| !is_static)),
        ] {
            let Some(library) = library else { continue };
            let program = installed("program");
            let mut command = Command::new(&compiler[0]);
            command.args(&compiler[1..]).args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]);
            println!("{}", compiler.join(" "));
            run(command.args(["-o", &program, source]).args(library.split_whitespace()));
            run_program(&[&program]);
        }
    }
}

#[test]
fn cmake_finds_both_libraries() {
    if !can_build() || !is_native() || !has_tool(&["cmake", "--version"]) {
        return;
    }
    let folder = installed("project");
    fs::create_dir_all(&folder).unwrap();
    let project = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(clocks C)\nset(target kept)\n\
         find_package(vdso_time 0.1 REQUIRED)\nif(NOT target STREQUAL kept)\nmessage(FATAL_ERROR)\nendif()\n\
         find_package(vdso_time {} EXACT REQUIRED)\n\
         foreach(kind shared static)\nadd_executable(${{kind}} {PACKAGE}/examples/clock.c)\n\
         target_link_libraries(${{kind}} vdso_time::${{kind}})\nendforeach()\n",
        env!("CARGO_PKG_VERSION")
    );
    fs::write(format!("{folder}/CMakeLists.txt"), project).unwrap();
    let build = format!("{folder}/build");
    run(Command::new("cmake")
        .args(["-S", &folder, "-B", &build])
        .arg(format!("-DCMAKE_PREFIX_PATH={}", installed(""))));
    run(Command::new("cmake").args(["--build", &build]));
    for kind in ["shared", "static"] {
        run_program(&[&format!("{build}/{kind}")]);
    }
}

#[test]
fn python_zig_and_go_programs_get_the_times_of_their_languages() {
    if !can_build() || !is_native() {
        return;
    }
    if has_tool(&["python3", "--version"]) {
        run_program(&["python3", "examples/clock.py"]);
    }
    if has_zig() {
        let program = installed("clock-zig");
        let mut zig = Command::new("python3");
        zig.args(["-m", "ziglang", "build-exe", "examples/clock.zig", &installed("lib/libvdso_time.a")]);
        run(zig.args(["-lc", &format!("-femit-bin={program}")]));
        run_program(&[&program]);
    }
    if has_tool(&["go", "version"]) {
        let program = installed("clock-go");
        let mut go = Command::new("go");
        go.args(["build", "-o", &program, "examples/clock.go"])
            .env("PKG_CONFIG_PATH", installed("lib/pkgconfig"));
        run(go.env("GOCACHE", target_tmpdir().join("c-cache/go")).env("GOTOOLCHAIN", "local"));
        run_program(&[&program]);
    }
}

/// The static library comes before `-lm`, as `pkg-config --libs` and g++ put it.
#[test]
fn the_static_library_does_not_replace_libm() {
    if !can_build() {
        return;
    }
    let include = format!("-I{}", installed("include"));
    let cplusplus = is_native() && has_tool(&["g++", "--version"]);
    for compiler in compilers().into_iter().chain(cplusplus.then(|| vec!["g++".into()])) {
        let [expected, found] = [None, Some(installed("lib/libvdso_time.a"))].map(|archive| {
            let program = installed("libm");
            let mut command = Command::new(&compiler[0]);
            command.args(&compiler[1..]).args([&include, "-O1", "-o", &program, "tests/libm.c"]);
            run(command.args(archive.iter().flat_map(|path| ["-DLINKED", path])).arg("-lm"));
            run_program(&[&program])
        });
        assert_eq!(expected, found, "{}", compiler.join(" "));
    }
}

#[test]
fn the_headers_are_strict_c89_and_cplusplus98() {
    let include = format!("{PACKAGE}/include");
    let source = target_tmpdir().join("headers.c");
    // Twice, because a program includes them from several files.
    let lines = HEADERS.map(|header| format!("#include <{header}>\n#include <{header}>\n"));
    fs::write(&source, lines.concat()).unwrap();
    for words in [["cc", "-std=c89", "-xc"], ["g++", "-std=c++98", "-xc++"]] {
        if has_tool(&[words[0], "--version"]) {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).args(["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]);
            run(command.args(["-I", &include]).arg(&source));
        }
    }
}

/// The functions that the headers declare, and those of the kernel's parse_vdso.c.
fn declared() -> BTreeSet<String> {
    let kernel = ["vdso_init_from_auxv", "vdso_init_from_sysinfo_ehdr", "vdso_sym"];
    let mut names: BTreeSet<String> = kernel.into_iter().map(str::to_owned).collect();
    for header in HEADERS {
        let header = fs::read_to_string(installed(&format!("include/{header}"))).unwrap();
        let lines = header.lines().filter(|line| line.ends_with(");") && !line.starts_with(' '));
        let declared = lines.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next());
        names.extend(declared.map(str::to_owned));
    }
    names
}

/// Fails on a function that a program may lack. The panic handler calls abort, so the libraries
/// have no panic that a call can reach.
fn assert_is_of_libc(name: &str) {
    let libc = ["getauxval", "mmap", "munmap", "memcpy", "memmove", "memset", "memcmp", "bcmp"];
    // libgcc's functions, the linker's and glibc's weak references, errno's address, and the name
    // in arm's tables.
    let is_reserved = name.starts_with('_') && !name.starts_with("_Unwind");
    assert!(libc.contains(&name) || is_reserved, "{name}");
}

#[test]
fn the_static_library_exports_what_the_headers_declare_and_cannot_panic() {
    if !can_build() {
        return;
    }
    let bytes = fs::read(installed("lib/libvdso_time.a")).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let mut defined = BTreeSet::new();
    for member in archive.members() {
        let elf = Elf::parse(archive.extract(member, &bytes).unwrap()).unwrap();
        // Hidden symbols count too: the linker takes them for the program's.
        for symbol in elf.syms.iter().filter(|symbol| symbol.st_bind() != STB_LOCAL) {
            let name = elf.strtab.get_at(symbol.st_name).unwrap();
            if symbol.st_shndx == 0 {
                assert_is_of_libc(name);
            } else {
                defined.insert(name.to_owned());
            }
        }
    }
    assert_eq!(defined, declared());
}

#[test]
fn the_shared_library_exports_what_the_headers_declare_and_cannot_panic() {
    if !can_build() {
        return;
    }
    let bytes = fs::read(installed("lib/libvdso_time.so")).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    let name = |symbol: &Sym| elf.dynstrtab.get_at(symbol.st_name).unwrap();
    let (defined, needed): (Vec<_>, Vec<_>) =
        elf.dynsyms.iter().filter(|symbol| symbol.st_name != 0).partition(|symbol| symbol.st_shndx != 0);
    assert_eq!(defined.iter().map(|symbol| name(symbol).to_owned()).collect::<BTreeSet<_>>(), declared());
    for symbol in &needed {
        assert_is_of_libc(name(symbol));
    }
    assert_eq!(elf.soname, Some("libvdso_time.so.0.1"));
}

#[test]
fn the_header_of_the_counter_has_every_status() {
    let header = fs::read_to_string(format!("{PACKAGE}/include/vdso_time_counter.h")).unwrap();
    let others = [Status::Used, Status::Calibrating, Status::Stale, Status::Updating];
    let refusals = Refusal::ALL.iter().filter(|refusal| **refusal != Refusal::Unsupported);
    let refusals = refusals.map(|refusal| format!("{refusal:?}"));
    for status in others.iter().map(|status| format!("{status:?}")).chain(refusals) {
        let name = format!("VDSO_TIME_STATUS_{status}=").to_uppercase();
        let is_declared = |line: &str| line.replace(['_', ' '], "").starts_with(&name.replace('_', ""));
        assert!(header.lines().any(is_declared), "{name}");
    }
}

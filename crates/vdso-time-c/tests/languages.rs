//! Installs the libraries as a packager does, and runs programs of other languages with them. Each
//! program compares the times with those of its own language's clock.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{env, fs};

use goblin::archive::Archive;
use goblin::elf::sym::STB_LOCAL;
use goblin::elf::{Elf, Symtab};
use goblin::strtab::Strtab;
use test_support::not_run::target_tmpdir;
use test_support::{has_tool, not_run_here, program};
use vdso_time_counter::{Status, Unavailable};

/// Commands run in this directory.
const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

const HEADERS: [&str; 2] = ["vdso_time.h", "vdso_time_counter.h"];

/// Returns the target that `cargo xtask on` has set, or the one that cross passes to cargo with the
/// option `--target`.
fn triple() -> Option<String> {
    env::var("CARGO_BUILD_TARGET")
        .ok()
        .or_else(program::given_target)
}

/// Returns a setting of cargo for the target. `cargo xtask on` and cross set the linker and the
/// runner.
fn foreign(setting: &str) -> Option<String> {
    let triple = triple()?;
    env::var(format!(
        "CARGO_TARGET_{}_{setting}",
        triple.to_uppercase().replace('-', "_")
    ))
    .ok()
}

/// Returns whether the compiled programs run in a guest. If `--target` names this machine, the
/// tests themselves run here.
fn is_guest() -> bool {
    env::var("RUSTFLAGS").is_ok_and(|flags| flags.contains("+crt-static"))
}

/// Returns the directory where the libraries are installed.
fn prefix() -> PathBuf {
    target_tmpdir().join("c")
}

/// Runs a command, which must succeed. Returns what it prints.
fn run(words: &[impl AsRef<OsStr>]) -> String {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(PACKAGE);
    // The flags in these variables are for this test program, and not for the libraries.
    command
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.envs(triple().map(|triple| ("CARGO_BUILD_TARGET", triple)));
    // Debian's rustc needs the directories that `cargo xtask` has put into this variable.
    let inherited = env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = format!("{}:{inherited}", prefix().join("lib").display());
    for (variable, value) in [
        ("CARGO_TARGET_DIR", target_tmpdir().join("c-build")),
        ("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")),
        ("LD_LIBRARY_PATH", libraries.into()),
        ("ZIG_GLOBAL_CACHE_DIR", target_tmpdir().join("c-cache")),
        ("ZIG_LOCAL_CACHE_DIR", target_tmpdir().join("c-cache")),
        ("GOCACHE", target_tmpdir().join("c-cache/go")),
    ] {
        command.env(variable, value);
    }
    let output = command.env("GOTOOLCHAIN", "local").output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}{err}",
        output.status
    );
    out.into_owned() + &err
}

fn split(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs a program of the target for at most five minutes. Returns what it prints.
fn run_program(words: &[&str]) -> String {
    let runner = foreign("RUNNER").unwrap_or_default();
    let output = run(&[&["timeout", "300"], &*split(&runner), words].concat());
    println!("{}\n{output}", words.join(" "));
    output
}

/// Returns the path of a file in the installation. The first call installs the libraries.
fn installed(file: &str) -> String {
    static PREFIX: LazyLock<PathBuf> = LazyLock::new(|| {
        let _ = fs::remove_dir_all(prefix());
        let prefix = format!("prefix={}", prefix().display());
        // binutils' objcopy knows the formats of one architecture, LLVM's knows all.
        let objcopy = match foreign("LINKER") {
            Some(_) => "OBJCOPY=llvm-objcopy",
            None => "OBJCOPY=objcopy",
        };
        run(&[
            "make",
            "install",
            concat!("CARGO=", env!("CARGO")),
            objcopy,
            &prefix,
        ]);
        self::prefix()
    });
    PREFIX.join(file).display().to_string()
}

/// Returns the compiler's arguments for a program that uses the headers and the static library.
fn static_library() -> String {
    let headers = installed("include");
    let library = installed("lib/libvdso_time.a");
    format!("-I{headers} {library}")
}

/// Returns the architecture of a compiler's machine, as Rust names it: `x86` for `i686-linux-gnu`.
fn arch(machine: &str) -> &str {
    let first = machine.trim().split('-').next().unwrap_or_default();
    match first {
        "i386" | "i486" | "i586" | "i686" => "x86",
        "powerpc64le" => "powerpc64",
        arm if arm.starts_with("arm") => "arm",
        other => other,
    }
}

#[test]
fn a_compiler_for_x86_64_is_not_one_for_x86() {
    for (machine, expected) in [
        ("x86_64-linux-gnu\n", "x86_64"),
        ("i686-linux-gnu\n", "x86"),
        ("powerpc64le-linux-gnu\n", "powerpc64"),
        ("armv7l-unknown-linux-gnueabihf\n", "arm"),
        (ARCH, ARCH),
    ] {
        assert_eq!(arch(machine), expected);
    }
}

/// Returns whether the libraries and programs of the target can be built. If not, prints what is
/// missing.
fn can_build() -> bool {
    if !has_tool("make", &["--version"]) || !has_tool("pkg-config", &["--version"]) {
        return false;
    }
    // If cargo has a linker for the target, the linker is also its C compiler.
    let machine = match foreign("LINKER") {
        Some(_) => ARCH.to_owned(),
        None => run(&["cc", "-dumpmachine"]),
    };
    let is_target = arch(&machine) == ARCH;
    if !is_target {
        not_run_here(format!(
            "cc is for {}, the tests are for {ARCH}",
            machine.trim()
        ));
    }
    is_target
}

/// Returns whether the compiler compiles for this machine. If not, records the test as not run.
fn is_native() -> bool {
    let is_native = foreign("LINKER").is_none();
    if !is_native {
        not_run_here("foreign programs are of C alone");
    }
    is_native
}

fn has_zig() -> bool {
    let version = Command::new("python3")
        .args(["-m", "ziglang", "version"])
        .output();
    let has_zig = version.is_ok_and(|output| output.status.success());
    if !has_zig {
        not_run_here("python3 has no module ziglang; pip install ziglang");
    }
    has_zig
}

/// Returns the commands that compile C for the target.
fn compilers() -> Vec<String> {
    if let Some(linker) = foreign("LINKER") {
        // Neither a guest nor, without a runner, this machine has the target's shared libraries.
        let is_static = is_guest() || foreign("RUNNER").is_none();
        return vec![linker + if is_static { " -static" } else { "" }];
    }
    let mut compilers = Vec::new();
    for (compiler, flags) in [("cc", ""), ("clang", ""), ("musl-gcc", " -static")] {
        if has_tool(compiler, &["--version"]) {
            compilers.push(format!("{compiler}{flags}"));
        }
    }
    if has_zig() {
        compilers.push("python3 -m ziglang cc".to_owned());
    }
    compilers
}

/// Compiles and runs a program with this compiler. Returns what it prints.
fn compiled(compiler: &str, words: &str) -> String {
    // Tests in other threads compile at the same time, so each program has a name of its own.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let program = installed(&format!("program{}", COUNT.fetch_add(1, Relaxed)));
    println!("{compiler}");
    run(&split(&format!("{compiler} -o {program} {words}")));
    run_program(&[&program])
}

#[test]
fn c_programs_get_the_times_of_libc() {
    if !can_build() {
        return;
    }
    let archive = static_library();
    let shared = run(&["pkg-config", "--cflags", "--libs", "vdso_time"]);
    for compiler in compilers() {
        let mut libraries = vec![&archive];
        if !compiler.contains("-static") {
            libraries.push(&shared);
        }
        for library in libraries {
            for source in ["examples/clock.c", "tests/parse_vdso.c"] {
                compiled(
                    &compiler,
                    &format!("-std=gnu11 -O2 -Wall -Wextra -Werror {source} {library}"),
                );
            }
        }
    }
}

/// Runs a program with the example for LD_PRELOAD, once built as it is, and once with reads that
/// are not ordered between threads.
#[test]
fn a_library_for_ld_preload_reads_the_clocks_from_the_counter() {
    if !can_build() || !is_native() {
        return;
    }
    let headers = installed("include");
    let archive = installed("lib/libvdso_time.a");
    let program = installed("preload-test");
    run(&split(&format!("cc -O2 -o {program} tests/preload.c -ldl")));
    for order in ["ORDERED", "UNORDERED"] {
        let library = installed(&format!("{order}-preload.so"));
        run(&split(&format!(
            "cc -O2 -Wall -Wextra -Werror -shared -fPIC -D{order} -o {library} \
             examples/preload.c -I{headers} -Wl,--exclude-libs,ALL {archive}"
        )));
        run_program(&["env", &format!("LD_PRELOAD={library}"), &program]);
    }
}

/// Runs a program that branches on the results. MemorySanitizer ends a program that branches on
/// bytes that were not stored.
#[test]
fn memory_sanitizer_sees_the_results() {
    if !can_build() || !is_native() || !has_tool("clang", &["--version"]) {
        return;
    }
    let empty = installed("empty.c");
    fs::write(&empty, "int main(void) { return 0; }").unwrap();
    if has_tool(
        "clang",
        &split(&format!("-fsanitize=memory {empty} -o {empty}.out")),
    ) {
        let archive = static_library();
        compiled(
            "clang -O1 -fsanitize=memory",
            &format!("examples/clock.c {archive}"),
        );
    }
}

#[test]
fn an_ifunc_resolver_of_a_static_program_reads_the_clock() {
    if !can_build() || !is_native() {
        return;
    }
    if cfg!(not(target_env = "gnu")) {
        return not_run_here("only glibc has IFUNC resolvers");
    }
    let archive = static_library();
    compiled(
        "cc -static -fno-stack-protector",
        &format!("-O2 tests/early.c {archive}"),
    );
}

/// Returns the first block of C code in `page` that contains `word`.
fn block_of_c<'a>(page: &'a str, word: &str) -> &'a str {
    let blocks = page.split("```c\n").skip(1);
    let mut codes = blocks.map(|block| block.split("```").next().unwrap_or_default());
    codes.find(|code| code.contains(word)).expect(word)
}

#[test]
fn the_c_code_of_the_page_about_adoption_that_replaces_a_check_compiles() {
    if !can_build() {
        return;
    }
    let page = fs::read_to_string(format!("{PACKAGE}/../../docs/ADOPT.md")).unwrap();
    let code = block_of_c(&page, "vdso_time_explain");
    let source = installed("explain.c");
    let program = format!(
        "#include <stdio.h>\n#include <time.h>\n#include <vdso_time.h>\nint main(void)\n{{\n{code}return 0;\n}}\n"
    );
    fs::write(&source, program).unwrap();
    let headers = installed("include");
    let library = installed("lib/libvdso_time.a");
    for compiler in compilers() {
        compiled(&compiler, &format!("-O2 -I{headers} {source} {library}"));
    }
}

#[test]
fn the_c_code_of_the_page_about_adoption_replaces_libcs_time() {
    if !can_build() {
        return;
    }
    let page = fs::read_to_string(format!("{PACKAGE}/../../docs/ADOPT.md")).unwrap();
    let code = block_of_c(&page, "vdso_time_time");
    // The page's function is changed to add an hour. So the time shows that the program
    // tests/adopt.c calls this function and not libc's.
    let moved = code.replace("vdso_time_time()", "vdso_time_time() + 3600");
    assert_ne!(code, moved);
    let source = installed("time.c");
    fs::write(&source, moved).unwrap();
    let archive = static_library();
    for compiler in compilers() {
        compiled(&compiler, &format!("-O2 tests/adopt.c {source} {archive}"));
    }
}

#[test]
fn the_archive_has_what_an_installation_has_and_the_licences() {
    if !can_build() || !is_native() {
        return;
    }
    let directory = format!("dist={}", installed("dist"));
    run(&[
        "make",
        "dist",
        concat!("CARGO=", env!("CARGO")),
        &directory,
        "archive=archive.tar.gz",
    ]);
    let listed = run(&["tar", "--list", "--file", &installed("dist/archive.tar.gz")]);
    let (documents, files): (Vec<_>, Vec<_>) = listed
        .lines()
        .partition(|file| file.starts_with("share/doc/vdso_time/"));
    assert_eq!(
        documents.len(),
        3,
        "README.md and two licences: {documents:?}"
    );
    for file in &files {
        assert!(fs::metadata(installed(file)).unwrap().is_file(), "{file}");
    }
    for file in [
        "include/vdso_time_msan.h",
        "lib/libvdso_time.a",
        "lib/libvdso_time.so.0.1",
    ] {
        assert!(files.contains(&file), "{file}");
    }
}

#[test]
fn cmake_finds_both_libraries() {
    if !can_build() || !is_native() || !has_tool("cmake", &["--version"]) {
        return;
    }
    built_with_cmake(&installed(""), &installed("cmake-build"));
}

/// Looks for the libraries through a symbolic link to their directory: today's distributions have
/// the link `/lib` to `usr/lib`, and CMake searches `/lib` as well as `/usr/lib`.
#[test]
fn cmake_finds_the_headers_from_a_link_to_the_libraries() {
    if !can_build() || !is_native() || !has_tool("cmake", &["--version"]) {
        return;
    }
    let root = target_tmpdir().join("c-root");
    _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("usr")).unwrap();
    for directory in ["include", "lib"] {
        let to = root.join("usr").display().to_string();
        run(&["cp", "--archive", &installed(directory), &to]);
    }
    symlink("usr/lib", root.join("lib")).unwrap();
    built_with_cmake(&root.display().to_string(), &installed("cmake-link"));
}

/// Builds and runs a program with CMake, which looks for the libraries in `prefix`. Returns what
/// CMake prints.
fn built_with_cmake(prefix: &str, build: &str) -> String {
    let version = concat!("-DVERSION=", env!("CARGO_PKG_VERSION"));
    let prefix = format!("-DCMAKE_PREFIX_PATH={prefix}");
    run(&["cmake", "-S", "tests/cmake", "-B", build, version, &prefix]);
    let output = run(&["cmake", "--build", build, "--verbose"]);
    for kind in ["shared", "static"] {
        run_program(&[&format!("{build}/{kind}")]);
    }
    output
}

/// Moves the installation, and looks for the old and the new directory in the compiler's commands.
#[test]
fn an_installation_can_be_moved() {
    if !can_build() || !is_native() {
        return;
    }
    let from = prefix();
    let to = target_tmpdir().join("c-moved");
    _ = fs::remove_dir_all(&to);
    fs::create_dir(&to).unwrap();
    for directory in ["include", "lib"] {
        let directory = installed(directory);
        run(&["cp", "--archive", &directory, &to.display().to_string()]);
    }
    let packages = format!("PKG_CONFIG_PATH={}/lib/pkgconfig", to.display());
    let flags = run(&[
        "env",
        &packages,
        "pkg-config",
        "--cflags",
        "--libs",
        "vdso_time",
    ]);
    let mut commands = flags;
    if has_tool("cmake", &["--version"]) {
        let build = installed("cmake-moved");
        commands += &built_with_cmake(&to.display().to_string(), &build);
    }
    for file in ["include", "lib"] {
        let old = from.join(file).display().to_string();
        assert!(!commands.contains(&old), "{old} is in:\n{commands}");
        // pkg-config does not resolve `..`.
        let is_new = |word: &str| {
            let path = word.trim_start_matches("-I").trim_start_matches("-L");
            fs::canonicalize(path).is_ok_and(|path| path.starts_with(to.join(file)))
        };
        assert!(commands.split_whitespace().any(is_new), "{commands}");
    }
}

#[test]
fn cplusplus_programs_get_the_times_of_std_chrono() {
    if !can_build() || !is_native() {
        return;
    }
    let headers = installed("include");
    let library = installed("lib/libvdso_time.a");
    let flags = "-O2 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror";
    let empty = installed("empty.cpp");
    fs::write(&empty, "#include <chrono>\nint main() {}\n").unwrap();
    let header = installed("header.cpp");
    let twice = "#include <vdso_time.hpp>\n#include <vdso_time.hpp>\n";
    fs::write(&header, twice).unwrap();
    for compiler in ["g++", "clang++", "clang++ -stdlib=libc++"] {
        // clang++ can be installed without libc++.
        let command = format!("{compiler} {empty} -o {empty}.out");
        let words = split(&command);
        if !has_tool(words[0], &words[1..]) {
            continue;
        }
        // 2b is C++23: clang 14 has no other name for it.
        for standard in ["17", "20", "2b"] {
            compiled(
                &format!("{compiler} -std=c++{standard}"),
                &format!("{flags} -I{headers} examples/clock.cpp {library} -pthread"),
            );
        }
        // The header itself needs only C++11. Without optimisation the reference needs the member's
        // definition.
        let reference = installed("reference.cpp");
        let text = "#include <vdso_time.hpp>\n#include <vdso_time.hpp>\n\
                    int main() { const bool &steady = vdso_time::counter_clock::is_steady;\n\
                    return !steady; }\n";
        fs::write(&reference, text).unwrap();
        for standard in ["11", "14", "17"] {
            compiled(
                &format!("{compiler} -std=c++{standard}"),
                &format!("{flags} -O0 -I{headers} {reference} {library}"),
            );
        }
        // It needs no exceptions.
        run(&split(&format!(
            "{compiler} -std=c++11 -fno-exceptions {flags} -fsyntax-only -I{headers} {header}"
        )));
    }
}

#[test]
fn python_zig_and_go_programs_get_the_times_of_their_languages() {
    if !can_build() || !is_native() {
        return;
    }
    let program = installed("clock");
    let archive = installed("lib/libvdso_time.a");
    if has_tool("python3", &["--version"]) {
        run_program(&["python3", "examples/clock.py"]);
    }
    if has_zig() {
        let emit = format!("-femit-bin={program}");
        run(&[
            "python3",
            "-m",
            "ziglang",
            "build-exe",
            "examples/clock.zig",
            &archive,
            "-lc",
            &emit,
        ]);
        run_program(&[&program]);
    }
    if has_tool("go", &["version"]) {
        run(&["go", "build", "-o", &program, "examples/clock.go"]);
        run_program(&[&program]);
    }
}

/// Links the static library before `-lm`, as `pkg-config --libs` and g++ do. Zig is left out,
/// because its own compiler library defines a sqrt() beside the division of 128-bit numbers. That
/// sqrt() replaces libm's, with or without this library.
#[test]
fn the_static_library_does_not_replace_libm() {
    if !can_build() {
        return;
    }
    let words = format!("-I{} -O1 tests/libm.c", installed("include"));
    let archive = installed("lib/libvdso_time.a");
    let mut compilers = compilers();
    compilers.retain(|compiler| !compiler.contains("ziglang"));
    if is_native() && has_tool("g++", &["--version"]) {
        compilers.push("g++".to_owned());
    }
    for compiler in compilers {
        let expected = compiled(&compiler, &format!("{words} -lm"));
        let found = compiled(&compiler, &format!("{words} -DLINKED {archive} -lm"));
        assert_eq!(expected, found, "{compiler}");
    }
}

#[test]
fn the_headers_are_strict_c89_and_cplusplus98() {
    let include = format!("{PACKAGE}/include");
    let source = target_tmpdir().join("headers.c");
    // Each header is included twice, as in a program that includes it in several files.
    let lines = HEADERS.map(|header| format!("#include <{header}>\n#include <{header}>\n"));
    fs::write(&source, lines.concat()).unwrap();
    let flags =
        "-pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror -fsyntax-only";
    for (compiler, language) in [
        ("cc", "-std=c89 -xc"),
        ("cc", "-std=c99 -xc"),
        ("g++", "-std=c++98 -xc++"),
        ("clang", "-std=c89 -fsanitize=memory -xc"),
        ("clang", "-std=c++98 -fsanitize=memory -xc++"),
    ] {
        if has_tool(compiler, &["--version"]) {
            run(&split(&format!(
                "{compiler} {language} {flags} -I{include} {}",
                source.display()
            )));
        }
    }
}

/// Returns the functions that the headers declare, and those of the kernel's parse_vdso.c.
fn declared() -> BTreeSet<String> {
    let kernel = [
        "vdso_init_from_auxv",
        "vdso_init_from_sysinfo_ehdr",
        "vdso_sym",
    ];
    let mut names: BTreeSet<String> = kernel.into_iter().map(str::to_owned).collect();
    for header in HEADERS {
        let header = fs::read_to_string(installed(&format!("include/{header}"))).unwrap();
        for line in header.lines() {
            if line.starts_with(' ') || !line.ends_with(");") {
                continue;
            }
            let (before, _) = line.split_once('(').expect("a declaration");
            let name = before.rsplit([' ', '*']).next().unwrap();
            names.insert(name.to_owned());
        }
    }
    names
}

/// Fails if the libraries need a function that a program may lack. `abort` is such a function: the
/// panic handler calls it, so libraries that do not need it have no panic that a call can reach.
fn assert_is_of_libc(name: &str) {
    let libc = [
        "getauxval",
        "mmap",
        "munmap",
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "bcmp",
    ];
    // Reserved names: libgcc's functions, weak references of the linker and of glibc, errno's
    // address, and the personality in arm's unwind tables.
    let is_reserved = name.starts_with('_') && !name.starts_with("_Unwind");
    assert!(libc.contains(&name) || is_reserved, "{name}");
}

/// Returns the names of the symbols that an object defines. Fails if the object needs a function
/// that libc may lack.
fn defined(symbols: &Symtab<'_>, strings: &Strtab<'_>) -> BTreeSet<String> {
    let mut defined = BTreeSet::new();
    for symbol in symbols {
        if symbol.st_name == 0 || symbol.st_bind() == STB_LOCAL {
            continue;
        }
        let name = strings.get_at(symbol.st_name).unwrap();
        if symbol.st_shndx == 0 {
            assert_is_of_libc(name);
        } else {
            defined.insert(name.to_owned());
        }
    }
    defined
}

#[test]
fn the_libraries_export_what_the_headers_declare_and_cannot_panic() {
    if !can_build() {
        return;
    }
    let bytes = fs::read(installed("lib/libvdso_time.a")).unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let mut exported = BTreeSet::new();
    for member in archive.members() {
        let elf = Elf::parse(archive.extract(member, &bytes).unwrap()).unwrap();
        // Hidden symbols count as well, because the linker resolves the program's symbols with
        // them.
        exported.extend(defined(&elf.syms, &elf.strtab));
    }
    assert_eq!(exported, declared());

    let bytes = fs::read(installed("lib/libvdso_time.so")).unwrap();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(defined(&elf.dynsyms, &elf.dynstrtab), declared());
    assert_eq!(elf.soname, Some("libvdso_time.so.0.1"));
}

/// Returns the directory of an installation of the libraries without the feature `libc`.
fn installed_without_libc() -> String {
    static PREFIX: LazyLock<String> = LazyLock::new(|| {
        let prefix = installed("no-libc");
        let target = target_tmpdir().join("c-no-libc");
        run(&[
            "make",
            "install",
            concat!("CARGO=", env!("CARGO")),
            "CARGOFLAGS=--no-default-features --features parse-vdso",
            &format!("CARGO_TARGET_DIR={}", target.display()),
            &format!("prefix={prefix}"),
        ]);
        prefix
    });
    PREFIX.clone()
}

/// Tests what the header says about a thread without libc's thread-local storage: it needs another
/// thread that makes the first call, or a library that does not use libc.
#[test]
fn a_thread_without_thread_local_storage_reads_the_clocks() {
    if !can_build() || !is_native() {
        return;
    }
    if cfg!(not(all(
        target_arch = "x86_64",
        target_pointer_width = "64"
    ))) {
        return not_run_here("the program is for x86_64");
    }
    for (prefix, argument) in [(installed(""), ""), (installed_without_libc(), "first")] {
        let program = installed(&format!("raw_thread{argument}"));
        let words = format!(
            "cc -O2 -fno-stack-protector -o {program} -I{prefix}/include tests/raw_thread.c \
             {prefix}/lib/libvdso_time.a"
        );
        run(&split(&words));
        run_program(&[&program, argument]);
    }
}

/// Links programs, but does not run them. A program with klibc is in the same situation as one
/// without a libc, because klibc lacks getauxval and errno.
#[test]
fn without_the_feature_libc_a_program_needs_memcpy_alone() {
    if !can_build() || !is_native() {
        return;
    }
    if cfg!(target_arch = "powerpc64") {
        return not_run_here("on powerpc64 the library needs libc");
    }
    let prefix = installed_without_libc();
    let link = |prefix: &str| {
        let words = format!(
            "-nostdlib -static -Wl,--gc-sections,-emain -I{prefix}/include {PACKAGE}/tests/no_libc.c \
             {prefix}/lib/libvdso_time.a -lgcc -o {}",
            installed("no-libc.out")
        );
        Command::new("cc").args(split(&words)).output().unwrap()
    };
    let without = link(&prefix);
    let errors = String::from_utf8_lossy(&without.stderr);
    assert!(without.status.success(), "{errors}");
    let with = link(&installed(""));
    let missing = String::from_utf8_lossy(&with.stderr);
    assert!(
        missing.contains("undefined reference to `getauxval'"),
        "{missing}"
    );
}

/// Looks for the mark in each library, because one object without it turns the shadow stack off for
/// a whole program.
#[test]
fn the_libraries_of_x86_64_name_the_shadow_stack_and_nothing_else() {
    if !can_build() || !has_tool("readelf", &["--version"]) {
        return;
    }
    for library in ["lib/libvdso_time.a", "lib/libvdso_time.so"] {
        let notes = run(&["readelf", "--notes", "--wide", &installed(library)]);
        let mut features = Vec::new();
        for line in notes.lines() {
            if let Some((_, named)) = line.split_once("feature: ") {
                features.push(named.trim());
            }
        }
        // The libraries can be for another machine than this test program.
        let target = triple().unwrap_or(ARCH.into());
        let expected: &[&str] = if target.starts_with("x86_64") {
            &["SHSTK"]
        } else {
            &[]
        };
        assert_eq!(features, expected, "{library}");
    }
}

#[test]
fn the_header_of_the_counter_has_every_status() {
    let header = fs::read_to_string(format!("{PACKAGE}/include/vdso_time_counter.h")).unwrap();
    let mut words = Vec::new();
    for status in [
        Status::Used,
        Status::Calibrating,
        Status::Stale,
        Status::Updating,
    ] {
        words.push(format!("{status:?}"));
    }
    for reason in Unavailable::ALL {
        if *reason != Unavailable::Unsupported {
            words.push(format!("{reason:?}"));
        }
    }
    for word in words {
        // The constants have `_` between the words, and the names of the variants do not.
        let name = format!("VDSOTIMECOUNTERSTATUS{word}=").to_uppercase();
        let is_declared = |line: &str| line.replace(['_', ' '], "").starts_with(&name);
        assert!(header.lines().any(is_declared), "{name}");
    }
}

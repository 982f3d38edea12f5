//! Without libc: a program with its own `_start` prints the time, the routes and the symbols. It
//! has no symbol of libc, and the five functions take about 7 KiB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use goblin::elf::Elf;
use goblin::elf::sym::{STT_FILE, STT_SECTION};
use test_support::not_run_here;
use vdso_time::vdso::LocateError;

/// Builds the package in a target folder of its own, for the machine that builds it. The error says
/// why its programs cannot be run here.
fn build() -> Result<PathBuf, String> {
    let here = std::env::consts::ARCH;
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let version = String::from_utf8(output.stdout).expect("UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    if !host.starts_with(&here.replace("x86", "i686").replace("i686_64", "x86_64")) {
        return Err(format!("the test runs on {here}, the compiler on {host}"));
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("freestanding");
    let output = Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/freestanding"))
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&target)
        // The package has flags of its own, without which it does not run.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(target.join("release"))
}

/// The folder of the built programs, or `None` after a line that says why there is none.
fn programs() -> Option<&'static Path> {
    static BUILT: LazyLock<Result<PathBuf, String>> = LazyLock::new(build);
    match &*BUILT {
        Ok(folder) => Some(folder),
        Err(why) => {
            not_run_here("compiler", why);
            None
        }
    }
}

/// What the program prints, asked to find the vDSO by its own stack or by the kernel.
fn output(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn it_prints_the_time_the_routes_and_the_symbols() {
    let Some(folder) = programs() else { return };
    for arguments in [&[][..], &["ask-the-kernel"]] {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let text = output(&folder.join("freestanding"), arguments);
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();

        let time = text.lines().find_map(|line| line.strip_prefix("time ")).expect("the time");
        let time: u64 = time.trim().parse().expect("a number");
        // time() turns with the timer tick, so it may be a tick behind.
        assert!((before - 1..=after).contains(&time), "{before} {time} {after}");
        for line in ["gettimeofday Ok(", "clock_gettime Ok(", "clock_getres Ok(", "getcpu Ok("] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        // The same routes as in this program, which asks libc for the vDSO; its address is another.
        let without_address = |text: &str| {
            let lines = text.lines().map(|line| line.split(" at 0x").next().unwrap_or(line).to_owned());
            lines.collect::<Vec<_>>()
        };
        // glibc's rseq area is not in that program.
        let routes = without_address(&vdso_time::routes().to_string());
        for route in routes.iter().filter(|route| !route.contains("rseq")) {
            assert!(without_address(&text).contains(route), "{route} is missing in:\n{text}");
        }
        if let Ok(vdso) = vdso_time::vdso::Vdso::locate() {
            for symbol in vdso.symbols() {
                let name = format!("{:?}", symbol.name());
                assert!(text.contains(&name), "{name} is missing in:\n{text}");
            }
        }
    }
}

/// valgrind unmaps the vDSO and removes its entry, but the kernel still has the address.
#[test]
fn under_valgrind_the_kernel_answers() {
    let Some(folder) = programs() else { return };
    for (arguments, why) in [(&[][..], LocateError::Absent), (&["ask-the-kernel"], LocateError::Unmapped)] {
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("-q").arg(folder.join("freestanding")).args(arguments);
        let output = match valgrind.output() {
            Ok(output) => output,
            Err(error) => return not_run_here("valgrind", format!("valgrind: {error}")),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.lines().filter(|line| line.contains("Ok(")).count(), 4, "{text}");
        // Before Linux 6.4 the kernel is asked by /proc, and valgrind answers for that too.
        let absent = LocateError::Absent.to_string();
        let routes = |why: &str| text.lines().filter(|line| line.contains(&format!("({why})"))).count();
        assert!(routes(&why.to_string()) == 6 || routes(&absent) == 6, "{text}");
    }
}

/// Reads an ELF file of the package.
fn with_elf<T>(program: &Path, work: impl FnOnce(&Elf<'_>) -> T) -> T {
    let file = fs::read(program).expect("the program is there");
    work(&Elf::parse(&file).expect("an ELF file"))
}

#[test]
fn the_program_has_no_symbol_of_libc() {
    let Some(folder) = programs() else { return };
    with_elf(&folder.join("freestanding"), |elf| {
        let symbols = elf.syms.iter().filter(|symbol| ![STT_SECTION, STT_FILE].contains(&symbol.st_type()));
        let named = symbols.filter_map(|symbol| Some((elf.strtab.get_at(symbol.st_name)?, symbol)));
        let named: Vec<_> = named.filter(|(name, _)| !name.is_empty()).collect();
        assert!(named.iter().any(|(name, _)| *name == "_start"));
        for (name, symbol) in named {
            // Rust's own names are mangled. The others are this program's, the crate's and the
            // linker's.
            let own = ["_start", "memcpy", "memmove", "memset", "memcmp", "bcmp"].contains(&name);
            let rust = ["vdso_time_", "_ZN", "_R", "anon."].iter().any(|prefix| name.starts_with(prefix));
            let linker = name.starts_with('_') && !symbol.is_function();
            let is_defined = symbol.st_shndx != 0 && (own || rust || linker);
            // The crate's weak references to glibc stay undefined.
            assert!(is_defined || name.starts_with("__rseq_"), "{name}: {symbol:?}");
        }
    });
}

/// Nothing of the crate runs before `_start`.
#[test]
fn there_is_no_constructor() {
    let Some(folder) = programs() else { return };
    with_elf(&folder.join("five-functions"), |elf| {
        let sections = elf.section_headers.iter();
        let names: Vec<_> = sections.filter_map(|section| elf.shdr_strtab.get_at(section.sh_name)).collect();
        assert!(names.contains(&".text"), "{names:?}");
        let runs = |name: &&&str| [".init", ".preinit", ".ctors"].iter().any(|start| name.starts_with(start));
        assert_eq!(names.iter().find(runs), None);
    });
}

/// Compilers before Rust 1.95 make a little more code of the same source.
#[test]
fn the_five_functions_take_less_than_8_kib() {
    let Some(folder) = programs() else { return };
    let size = |program: &str| {
        with_elf(&folder.join(program), |elf| {
            let sections = elf.section_headers.iter().filter(|section| {
                let name = elf.shdr_strtab.get_at(section.sh_name).unwrap_or_default();
                name.starts_with(".text") || name.starts_with(".rodata")
            });
            sections.map(|section| section.sh_size).sum::<u64>()
        })
    };
    let size = size("five-functions") - size("no-functions");
    println!("{size} bytes of .text and .rodata");
    // Rust 1.85 makes about 500 bytes more than 1.95.
    assert!(size < 8192, "{size}");
}

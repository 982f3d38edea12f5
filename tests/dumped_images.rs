//! The images of real kernels, where `cargo xtask dump` has put some: the walker sees what readelf sees in them.

#![cfg(any(target_os = "linux", target_os = "android"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{has_tool, not_run_here};
use vdso_time::elf::Image;
use vdso_time::{Route, Routes};

fn images() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vdso-images");
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "so")).collect()
}

/// The dynamic symbols that readelf lists and that can be called, in lines: value, size, type, binding, name.
fn listed(file: &Path) -> Vec<String> {
    let output = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let callable = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [number, value, size, kind, binding, _, section, name @ ..] = &words[..] else { return None };
        number.strip_suffix(':')?.parse::<u32>().ok()?;
        let is_callable = ["FUNC", "NOTYPE"].contains(kind)
            && ["GLOBAL", "WEAK"].contains(binding)
            && !["UND", "ABS"].contains(section);
        let value = u64::from_str_radix(value, 16).unwrap();
        let name = name.first().map_or("", |name| name.split('@').next().unwrap());
        is_callable.then(|| format!("{value:#x} {size} {kind} {binding} {name}"))
    };
    let mut lines: Vec<_> = text.lines().filter_map(callable).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_walker_sees_what_readelf_sees() {
    let images = images();
    if images.is_empty() {
        return not_run_here("images", "no images: `cargo xtask dump` makes them");
    }
    if !has_tool(&["readelf", "--version"]) {
        return;
    }
    for file in images {
        let bytes = fs::read(&file).unwrap();
        let image = Image::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut seen: Vec<_> = image
            .symbols()
            .map(|symbol| {
                let kind = format!("{:?}", symbol.kind()).to_uppercase();
                let binding = if symbol.is_weak() { "WEAK" } else { "GLOBAL" };
                let name = symbol.name().to_str().unwrap();
                format!("{:#x} {} {kind} {binding} {name}", symbol.value(), symbol.size())
            })
            .collect();
        seen.sort_unstable();
        let listed = listed(&file);
        assert!(!listed.is_empty(), "{}", file.display());
        assert_eq!(seen, listed, "{}", file.display());

        // Each is found by its name, and the routes lead to what is there.
        for symbol in image.symbols().filter(|symbol| !symbol.name().is_empty()) {
            let version = symbol.version().map(|version| version.to_str().unwrap());
            let found = image.symbol(symbol.name().to_str().unwrap(), version).unwrap();
            assert_eq!(found.value(), symbol.value(), "{}: {symbol:?}", file.display());
        }
        let routes = Routes::of_image(&image).unwrap_or_else(|| panic!("{}", file.display()));
        let is_blanked = image.symbols().any(|symbol| symbol.name().is_empty());
        let in_vdso = matches!(routes.clock_gettime, Route::Vdso { .. });
        assert_eq!(in_vdso, !is_blanked, "{}: {routes}", file.display());
    }
}

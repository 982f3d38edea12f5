//! readelf, which shares no code with the parser, sees the same symbols: in the images of the
//! builder, and in the images of kernels that `cargo xtask matrix` wrote.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::path::Path;
use std::process::Command;
use std::{env, fs, process};

use test_images::kinds::kinds;
use test_support::{has_tool, not_run, not_run_here};
use vdso_time::elf::Image;
use vdso_time::{Route, Routes};

/// Fails unless both see the same symbols. Returns whether this readelf can be asked.
fn agree(file: &Path, bytes: &[u8]) -> bool {
    let image = Image::parse(bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let output = Command::new("readelf").args(["-W", "-D", "-s"]).arg(file).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    assert!(output.stderr.is_empty(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    if !listing.contains(" contains ") {
        not_run("this readelf lists symbols in another format");
        return false;
    }
    // The symbols that can be called, in readelf's words.
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [number, value, size, kind, binding, _, section, name @ ..] = &words[..] else { return None };
        number.strip_suffix(':')?.parse::<u32>().ok()?;
        let value = u64::from_str_radix(value, 16).unwrap();
        let is_callable = ["FUNC", "NOTYPE"].contains(kind)
            && ["GLOBAL", "WEAK"].contains(binding)
            && !["UND", "ABS"].contains(section)
            && value.wrapping_sub(image.load_address()) < bytes.len() as u64;
        let name = name.first().map_or(String::new(), |name| name.replace("@@", "@"));
        is_callable.then(|| format!("{value:#x} {size} {kind} {binding} {name}"))
    };
    let ours = image.symbols().map(|symbol| {
        let kind = format!("{:?}", symbol.kind()).to_uppercase();
        let binding = if symbol.is_weak() { "WEAK" } else { "GLOBAL" };
        let text = |text: &CStr| text.to_str().unwrap().to_owned();
        let version = symbol.version().map_or(String::new(), |version| format!("@{}", text(version)));
        format!("{:#x} {} {kind} {binding} {}{version}", symbol.value(), symbol.size(), text(symbol.name()))
    });
    let (ours, expected): (BTreeSet<_>, BTreeSet<_>) =
        (ours.collect(), listing.lines().filter_map(row).collect());
    assert!(!expected.is_empty(), "{}", file.display());
    assert_eq!(ours, expected, "{}", file.display());
    true
}

#[test]
fn readelf_sees_the_same_symbols_in_every_kind_of_image() {
    if !has_tool(&["readelf", "--version"]) {
        return;
    }
    // Without a hash table, readelf cannot count the symbols.
    for (kind, spec) in kinds().into_iter().filter(|(_, spec)| spec.sysv_hash || spec.gnu_hash) {
        let bytes = spec.build().bytes;
        let name = format!("vdso-time-{}-{}.so", process::id(), kind.replace([' ', '/'], "-"));
        let file = env::temp_dir().join(name);
        fs::write(&file, &bytes).unwrap();
        let agree = agree(&file, &bytes);
        fs::remove_file(&file).unwrap();
        if !agree {
            return;
        }
    }
}

#[test]
fn readelf_sees_the_same_symbols_in_the_images_of_kernels() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vdso-images");
    let entries = fs::read_dir(&folder).into_iter().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "so"));
    if files.is_empty() {
        return not_run_here("images", "no images: `cargo xtask matrix` writes them");
    }
    if !has_tool(&["readelf", "--version"]) {
        return;
    }
    for file in files {
        let bytes = fs::read(&file).unwrap();
        if !agree(&file, &bytes) {
            return;
        }
        let image = test_images::promises::keep(&bytes).unwrap();
        let routes = Routes::of_image(&image).unwrap_or_else(|| panic!("{}", file.display()));
        let is_blanked = image.symbols().any(|symbol| symbol.name().is_empty());
        let in_vdso = matches!(routes.clock_gettime, Route::Vdso { .. });
        assert_eq!(in_vdso, !is_blanked, "{}: {routes}", file.display());
    }
}

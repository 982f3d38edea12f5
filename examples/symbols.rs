//! Lists the symbols of this process's vDSO, or of an image in a file, of any architecture, and the routes
//! that the crate takes with it.
//!
//! `cargo run --release --example symbols [FILE]`

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

const HELP: &str = "\
Lists the symbols of this process's vDSO, or of a vDSO's image in a file, and the routes that vdso-time takes with it.

Usage: symbols [FILE]
";

fn main() -> ExitCode {
    let text = match std::env::args_os().nth(1) {
        Some(option) if option == "--help" || option == "-h" => Ok(HELP.into()),
        Some(file) => in_file(&file),
        None => in_this_process(),
    };
    let Err(error) = text.and_then(|text| Ok(io::stdout().write_all(text.as_bytes())?)) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("symbols: {error}");
    ExitCode::FAILURE
}

pub(crate) fn in_file(file: &OsStr) -> Result<String, Box<dyn Error>> {
    let path = Path::new(file).display();
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {path}: {error}"))?;
    let image = Image::parse(&bytes).map_err(|error| format!("{path} is no vDSO's image: {error}"))?;
    let mut text = list(&image)?;
    match Routes::of_image(&image) {
        Some(routes) => writeln!(text, "\nwhere a kernel maps it:\n{routes}")?,
        None => writeln!(text, "\nvdso-time has no table for this architecture")?,
    }
    Ok(text)
}

fn in_this_process() -> Result<String, Box<dyn Error>> {
    let mut text = match Vdso::locate() {
        Ok(vdso) => format!("{} bytes at {:p}\n{}", vdso.size(), vdso.base(), list(&vdso.image())?),
        Err(error) => format!("{error}\n"),
    };
    writeln!(text, "\nin this process:\n{}", routes())?;
    Ok(text)
}

fn list(image: &Image<'_>) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let tables = image.hash_tables();
    let (bits, machine) = (32 * u32::from(image.class()), image.machine());
    writeln!(text, "ELF{bits}, e_machine {machine}, DT_HASH {}, DT_GNU_HASH {}", tables.sysv, tables.gnu)?;
    for symbol in image.symbols() {
        let name = match symbol.name().to_string_lossy() {
            name if name.is_empty() => "(blank)".into(),
            name => name,
        };
        let version =
            symbol.version().map_or(String::new(), |version| format!("@{}", version.to_string_lossy()));
        let binding = if symbol.is_weak() { " weak" } else { "" };
        let (value, size, kind) = (symbol.value(), symbol.size(), symbol.kind());
        writeln!(text, "{value:#10x} {size:5} {kind:?}{binding} {name}{version}")?;
    }
    Ok(text)
}

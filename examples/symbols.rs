//! Lists the symbols of this process's vDSO, or of a vDSO's image in a file, and who answers with it.
//!
//! `cargo run --release --example symbols [FILE]`

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

fn main() -> ExitCode {
    let Err(error) = print(&mut io::stdout().lock()) else { return ExitCode::SUCCESS };
    eprintln!("symbols: {error}");
    ExitCode::FAILURE
}

fn print(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    if let Some(file) = std::env::args_os().nth(1) {
        let path = Path::new(&file).display();
        let bytes = std::fs::read(&file).map_err(|error| format!("cannot read {path}: {error}"))?;
        let image = Image::parse(&bytes).map_err(|error| format!("{path} is no vDSO: {error}"))?;
        list(out, &image)?;
        match Routes::of_image(&image) {
            Some(routes) => writeln!(out, "{routes}")?,
            None => writeln!(out, "vdso-time has no table for this architecture")?,
        }
    } else {
        let vdso = Vdso::locate()?;
        writeln!(out, "{} bytes at {:p}", vdso.size(), vdso.base())?;
        list(out, &vdso.image())?;
        writeln!(out, "{}", routes())?;
    }
    Ok(())
}

fn list(out: &mut impl Write, image: &Image<'_>) -> io::Result<()> {
    writeln!(out, "ELF{}, e_machine {}", 32 * u32::from(image.class()), image.machine())?;
    for symbol in image.symbols() {
        let name = symbol.name().to_string_lossy();
        let version = symbol.version().unwrap_or_default().to_string_lossy();
        writeln!(out, "{:#10x} {:5} {:?} {name} {version}", symbol.value(), symbol.size(), symbol.kind())?;
    }
    Ok(())
}

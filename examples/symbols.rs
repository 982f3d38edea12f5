//! Lists the symbols of this process's vDSO, or of a vDSO's image in a file, and who answers with it.
//!
//! `cargo run --release --example symbols [FILE]`

use std::error::Error;

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(file) = std::env::args_os().nth(1) {
        let bytes = std::fs::read(file)?;
        let image = Image::parse(&bytes)?;
        list(&image);
        match Routes::of_image(&image) {
            Some(routes) => println!("{routes}"),
            None => println!("vdso-time has no table for this architecture"),
        }
    } else {
        let vdso = Vdso::locate()?;
        println!("{} bytes at {:p}", vdso.size(), vdso.base());
        list(&vdso.image());
        println!("{}", routes());
    }
    Ok(())
}

fn list(image: &Image<'_>) {
    println!("ELF{}, e_machine {}", 32 * u32::from(image.class()), image.machine());
    for symbol in image.symbols() {
        let name = symbol.name().to_string_lossy();
        let version = symbol.version().unwrap_or_default().to_string_lossy();
        println!("{:#10x} {:5} {:?} {name} {version}", symbol.value(), symbol.size(), symbol.kind());
    }
}

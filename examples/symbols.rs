//! Lists the symbols of this process's vDSO, or of an image in a file, of any architecture, and the routes
//! that the crate takes with it.
//!
//! `cargo run --release --example symbols [FILE]`

use std::error::Error;
use std::path::PathBuf;

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;
use vdso_time::{Routes, routes};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) {
        let file = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let image = Image::parse(&file).map_err(|error| format!("{}: {error}", path.display()))?;
        list(&image);
        match Routes::of_image(&image) {
            Some(routes) => println!("\nwhere a kernel maps it:\n{routes}"),
            None => println!("\nno table for this architecture"),
        }
        return Ok(());
    }
    match Vdso::locate() {
        Ok(vdso) => {
            println!("{} bytes at {:p}", vdso.size(), vdso.base());
            list(&vdso.image());
        }
        Err(error) => println!("{error}"),
    }
    println!("\nin this process:\n{}", routes());
    Ok(())
}

fn list(image: &Image<'_>) {
    let tables = image.hash_tables();
    let (bits, machine) = (32 * u32::from(image.class()), image.machine());
    println!("ELF{bits}, e_machine {machine}, DT_HASH {}, DT_GNU_HASH {}", tables.sysv, tables.gnu);
    for symbol in image.symbols() {
        let name = match symbol.name().to_string_lossy() {
            name if name.is_empty() => "(blank)".into(),
            name => name,
        };
        let version =
            symbol.version().map_or(String::new(), |version| format!("@{}", version.to_string_lossy()));
        let binding = if symbol.is_weak() { " weak" } else { "" };
        println!("{:#10x} {:5} {:?}{binding} {name}{version}", symbol.value(), symbol.size(), symbol.kind());
    }
}

//! `cargo run --example symbols FILE`: prints the functions of a vDSO image for any machine.
//! Without a file, prints the functions of this process's vDSO.

use std::error::Error;
use std::{env, fs};

use vdso_time::elf::Image;
use vdso_time::vdso::Vdso;

fn print(image: &Image<'_>) {
    println!(
        "machine {}, {} bits",
        image.machine(),
        32 * u32::from(image.class())
    );
    for symbol in image.symbols() {
        println!(
            "{:#8x} {:5} {}",
            symbol.value(),
            symbol.size(),
            symbol.name().to_string_lossy()
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(file) = env::args().nth(1) {
        print(&Image::parse(&fs::read(file)?)?);
    } else {
        print(&Vdso::locate()?.image());
    }
    Ok(())
}

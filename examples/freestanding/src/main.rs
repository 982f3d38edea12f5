//! vdso-time in a program without libc, std or a start file. It prints the time, the routes and the
//! symbols.
//!
//! `cargo run --release` in this folder. With an argument, the program does not call `init`, so the
//! crate asks the kernel for the vDSO's address.

#![no_std]
#![no_main]

use core::fmt::{self, Write};

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, clock_getres, clock_gettime, getcpu, gettimeofday, routes, time};

freestanding::start!(main);

const AT_SYSINFO_EHDR: usize = 33;

fn main(argc: usize, auxv: *const [usize; 2]) -> i32 {
    if argc < 2 {
        // SAFETY: `run` passed the vector.
        let ehdr = unsafe { freestanding::auxv_value(auxv, AT_SYSINFO_EHDR) };
        // SAFETY: the kernel put the value on the stack as this process's AT_SYSINFO_EHDR. If there
        // is no such entry, it is null.
        unsafe { vdso_time::init(core::ptr::with_exposed_provenance(ehdr)) };
    }
    match print(&mut freestanding::Stdout) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn print(out: &mut impl Write) -> fmt::Result {
    writeln!(out, "time {}", time())?;
    writeln!(out, "gettimeofday {:?}", gettimeofday())?;
    writeln!(out, "clock_gettime {:?}", clock_gettime(ClockId::MONOTONIC))?;
    writeln!(out, "clock_getres {:?}", clock_getres(ClockId::MONOTONIC))?;
    writeln!(out, "getcpu {:?}", getcpu())?;
    writeln!(out, "{}", routes())?;
    match Vdso::locate() {
        Ok(vdso) => {
            for symbol in vdso.symbols() {
                writeln!(out, "{:p} {:?}", vdso.address(&symbol), symbol.name())?;
            }
        }
        Err(error) => writeln!(out, "{error}")?,
    }
    Ok(())
}

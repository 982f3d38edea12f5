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

fn main(argc: usize, ehdr: usize) -> i32 {
    if argc < 2 {
        // SAFETY: `run` passed the value of this process's AT_SYSINFO_EHDR, or 0.
        unsafe { vdso_time::init(core::ptr::with_exposed_provenance(ehdr)) };
    }
    i32::from(print(&mut freestanding::Stdout).is_err())
}

fn print(out: &mut impl Write) -> fmt::Result {
    writeln!(out, "time {}", time())?;
    writeln!(out, "gettimeofday {:?}", gettimeofday())?;
    writeln!(out, "clock_gettime {:?}", clock_gettime(ClockId::MONOTONIC))?;
    writeln!(out, "clock_getres {:?}", clock_getres(ClockId::MONOTONIC))?;
    writeln!(out, "getcpu {:?}", getcpu())?;
    writeln!(out, "{}", routes())?;
    match Vdso::locate() {
        Ok(vdso) => vdso
            .symbols()
            .try_for_each(|symbol| writeln!(out, "{:p} {:?}", vdso.address(&symbol), symbol.name())),
        Err(error) => writeln!(out, "{error}"),
    }
}

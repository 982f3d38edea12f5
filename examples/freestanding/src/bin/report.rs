//! Prints the time, the routes and the symbols. With an argument, the program does not call
//! `vdso::set_address`, so the crate asks the kernel for the vDSO's address.

#![no_std]
#![no_main]

#[path = "../runtime.rs"]
mod runtime;

use core::fmt::{self, Write};

use vdso_time::vdso::Vdso;
use vdso_time::{ClockId, clock_getres, clock_gettime, getcpu, gettimeofday, routes, time};

fn main(argc: usize, ehdr: *const u8) -> i32 {
    if argc < 2 {
        // SAFETY: this is the value of the process's AT_SYSINFO_EHDR, or null.
        if unsafe { vdso_time::vdso::set_address(ehdr) }.is_err() {
            return 1;
        }
    }
    i32::from(print(&mut runtime::Stdout).is_err())
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
            .try_for_each(|(symbol, address)| writeln!(out, "{address:p} {:?}", symbol.name())),
        Err(error) => writeln!(out, "{error}"),
    }
}

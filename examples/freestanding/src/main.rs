#![no_std]
#![no_main]

mod runtime;

use core::fmt::Write as _;

use vdso_time::vdso::set_address;
use vdso_time::{routes, time};

fn main(_: usize, ehdr: *const u8) -> i32 {
    // SAFETY: this is the value of the process's AT_SYSINFO_EHDR, or null.
    unsafe { set_address(ehdr) };
    i32::from(writeln!(runtime::Stdout, "{} s since the Epoch\n{}", time(), routes()).is_err())
}

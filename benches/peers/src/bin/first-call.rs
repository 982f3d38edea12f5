//! Makes a contender's first call, in this process or in children of it, and prints the
//! nanoseconds. The arguments are the row and the contender.
//!
//! The environment variable VDSO_TIME_PADDING of the compiler is the number of bytes before the
//! code, which moves all of it.

use std::hint::black_box;
use std::process::ExitCode;

use vdso_time_peers::first_call;

/// The bytes before the code.
const PADDING: usize = match option_env!("VDSO_TIME_PADDING") {
    Some(text) => match usize::from_str_radix(text, 10) {
        Ok(padding) => padding,
        Err(_) => panic!("VDSO_TIME_PADDING is not a number"),
    },
    None => 0,
};

std::arch::global_asm!(
    ".pushsection .text",
    ".globl vdso_time_padding",
    "vdso_time_padding:",
    ".skip {padding}",
    ".popsection",
    padding = const PADDING,
);

unsafe extern "C" {
    static vdso_time_padding: u8;
}

fn main() -> ExitCode {
    // The linker drops what nothing refers to.
    black_box(&raw const vdso_time_padding);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [row, name] = arguments.as_slice() else {
        eprintln!("usage: first-call ROW CONTENDER");
        return ExitCode::FAILURE;
    };
    match first_call::print(row, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

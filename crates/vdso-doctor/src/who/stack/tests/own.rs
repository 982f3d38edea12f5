//! This thread, whose functions are known.

use std::arch::asm;
use std::hint::black_box;
use std::slice;

use test_support::not_run;

use crate::who::stack::{Registers, Sample, Stacks};

/// Copies this thread's registers and stack, and unwinds it.
#[allow(unsafe_code, reason = "registers are read, and the stack above the stack pointer")]
#[inline(never)]
fn own_chain(stacks: &mut Stacks) -> Vec<u64> {
    let (pc, sp, fp): (u64, u64, u64);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it only reads registers.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) fp);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it only reads registers.
    unsafe {
        asm!("adr {}, .", "mov {}, sp", "mov {}, x29", out(reg) pc, out(reg) sp, out(reg) fp);
    }
    // SAFETY: a thread's stack has these bytes above a frame of a test, and nothing writes them.
    let stack = unsafe { slice::from_raw_parts(sp as *const u8, 2000) };
    let registers = Registers { pc, sp, fp, lr: 0 };
    let sample = Sample { is_64_bit: true, registers, stack, callchain: &[] };
    stacks.chain(&sample)
}

#[inline(never)]
fn inner(stacks: &mut Stacks) -> Vec<u64> {
    black_box(own_chain(stacks))
}

#[inline(never)]
fn outer(stacks: &mut Stacks) -> Vec<u64> {
    black_box(inner(stacks))
}

#[test]
fn this_threads_callers_have_their_names_and_lines() {
    let mut stacks = Stacks::new(std::process::id()).unwrap();
    let line = line!() + 1;
    let chain = outer(&mut stacks);
    let frames: Vec<_> = chain.iter().map(|address| stacks.frame(*address)).collect();
    let names: Vec<_> =
        frames.iter().map(|frame| frame.function.rsplit("::").next().unwrap()).take(4).collect();
    let test = "this_threads_callers_have_their_names_and_lines";
    assert_eq!(names, ["own_chain", "inner", "outer", test], "{frames:?}");
    let Some(file) = frames[3].file.as_deref() else { return not_run("there is no debug information") };
    assert!(file.ends_with(file!().rsplit('/').next().unwrap()), "{file}");
    assert_eq!(frames[3].line, Some(line));
}

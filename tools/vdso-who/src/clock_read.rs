//! Whether a thread was in a clock read.
//!
//! A thread is in a clock read if its program counter is in the vDSO, but not in another function
//! of it. A thread in the kernel is in one as well if it entered through a clock's system call:
//!
//! - aarch64: the register of the number is in the sample.
//! - x86: no record has the number, so it is read from the code before the program counter:
//!   `mov $NUMBER, %eax`, then `syscall` or `int $0x80`. libc, Go and the vDSO have that.
//! - i386 programs enter the kernel in the vDSO's `__kernel_vsyscall`. There the return address,
//!   above three saved registers, decides: it is in the vDSO, or after such code.
//!
//! So a call through syscall(2), whose number is an argument, is not seen on x86.

use crate::address_space::AddressSpace;
use crate::perf::Sample;

/// The numbers of clock_gettime, gettimeofday, time and clock_getres.
const X86_64: &[u64] = &[228, 96, 201, 229];
const I386: &[u64] = &[265, 403, 78, 13, 266, 406];
const AARCH64: &[u64] = &[113, 169, 114];
const ARM: &[u64] = &[263, 403, 78, 264, 406];

/// Functions of a vDSO that read no clock.
const OTHERS: [&str; 5] = ["getcpu", "getrandom", "sigreturn", "sgx", "vsyscall"];

/// The longest code between the number and the system call.
const CODE: usize = 32;

/// The name of a clock read by system call.
pub(crate) const SYSTEM_CALL: &str = "[system call]";

/// Returns the function of the vDSO, or [`SYSTEM_CALL`]; none if the thread is not in a clock read.
pub(crate) fn clock_read(space: &mut AddressSpace, sample: &Sample) -> Option<String> {
    let pc = sample.registers.pc;
    let is_read;
    let name;
    if space.is_vdso(pc) {
        name = space.symbol(pc).unwrap_or_default();
        is_read = if name.contains("vsyscall") && sample.in_kernel {
            is_called_by_clock(space, sample)
        } else {
            reads_clock(&name)
        };
    } else {
        name = SYSTEM_CALL.into();
        is_read = sample.in_kernel && is_system_call(space, sample);
    }
    if is_read { Some(name) } else { None }
}

/// Returns whether a function of the vDSO reads a clock.
pub(crate) fn reads_clock(name: &str) -> bool {
    !OTHERS.iter().any(|other| name.contains(other))
}

/// Returns whether a clock function called `__kernel_vsyscall`, which saved three registers.
fn is_called_by_clock(space: &mut AddressSpace, sample: &Sample) -> bool {
    let caller = match sample.stack.get(12..) {
        Some([a, b, c, d, ..]) => u64::from(u32::from_ne_bytes([*a, *b, *c, *d])),
        _ => return false,
    };
    space.is_vdso(caller) || has_clock_number(space, caller, I386)
}

fn is_system_call(space: &AddressSpace, sample: &Sample) -> bool {
    match (sample.number, sample.is_64_bit) {
        (Some(number), true) => AARCH64.contains(&number),
        (Some(number), false) => ARM.contains(&number),
        (None, true) => has_clock_number(space, sample.registers.pc, X86_64),
        (None, false) => has_clock_number(space, sample.registers.pc, I386),
    }
}

fn has_clock_number(space: &AddressSpace, pc: u64, numbers: &[u64]) -> bool {
    let mut code = [0; CODE];
    if space.code_before(pc, &mut code).is_none() {
        return false;
    }
    match number_before(&code) {
        Some(number) => numbers.contains(&number),
        None => false,
    }
}

/// Returns the number of the system call, or of the call of `__kernel_vsyscall`, at the end of this
/// code.
fn number_before(code: &[u8]) -> Option<u64> {
    const ENTERS: [&[u8]; 4] = [
        &[0x0f, 0x05],
        &[0x0f, 0x34],
        &[0xcd, 0x80],
        &[0x65, 0xff, 0x15, 0x10, 0, 0, 0],
    ];
    let enter = ENTERS.iter().find(|enter| code.ends_with(enter))?;
    let before = &code[..code.len() - enter.len()];
    for window in before.windows(5).rev() {
        // mov $NUMBER, %eax. Numbers are below 65536.
        if let [0xb8, low, high, 0, 0] = *window {
            return Some(u64::from(u16::from_le_bytes([low, high])));
        }
    }
    None
}

#[cfg(test)]
#[path = "../tests/unit/clock_read.rs"]
mod tests;

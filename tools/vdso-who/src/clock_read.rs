//! Whether a thread was in a clock read.
//!
//! A thread is in a clock read if its program counter is in the vDSO, but not in another function
//! of it. A thread in the kernel is in one, too, if it entered by a clock's system call:
//!
//! - aarch64: the register of the number is in the sample.
//! - x86: no record has the number, so it is read from the code before the program counter:
//!   `mov $NUMBER, %eax`, then `syscall` or `int $0x80`. libc, Go and the vDSO have that.
//! - i386 programs enter the kernel in the vDSO's `__kernel_vsyscall`. There the return address,
//!   above three saved registers, decides: it is in the vDSO, or after such code.
//!
//! So a call by syscall(2), whose number is an argument, is not seen on x86.

use crate::perf::Taken;
use crate::space::Space;

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
pub(crate) fn clock_read(space: &mut Space, taken: &Taken) -> Option<String> {
    let pc = taken.registers.pc;
    if space.is_vdso(pc) {
        let name = space.symbol(pc).unwrap_or_default();
        if !name.contains("vsyscall") || !taken.in_kernel {
            return reads_clock(&name).then_some(name);
        }
        let saved = taken
            .stack
            .get(12..16)
            .and_then(|word| word.try_into().ok());
        let caller = u64::from(saved.map_or(0, u32::from_ne_bytes));
        return (space.is_vdso(caller) || has_clock_number(space, caller, I386)).then_some(name);
    }
    let is_read = match (taken.number, taken.is_64_bit) {
        _ if !taken.in_kernel => false,
        (Some(number), is_64_bit) => (if is_64_bit { AARCH64 } else { ARM }).contains(&number),
        (None, is_64_bit) => has_clock_number(space, pc, if is_64_bit { X86_64 } else { I386 }),
    };
    is_read.then(|| SYSTEM_CALL.into())
}

/// Returns whether a function of the vDSO reads a clock.
pub(crate) fn reads_clock(name: &str) -> bool {
    !OTHERS.iter().any(|other| name.contains(other))
}

fn has_clock_number(space: &mut Space, pc: u64, numbers: &[u64]) -> bool {
    let code = space.code_before::<CODE>(pc);
    code.and_then(|code| number_before(&code))
        .is_some_and(|number| numbers.contains(&number))
}

/// Returns the number of the system call, or of the call of `__kernel_vsyscall`, at the end of this
/// code.
fn number_before(code: &[u8]) -> Option<u64> {
    let enters = [
        &[0x0f, 0x05][..],
        &[0x0f, 0x34],
        &[0xcd, 0x80],
        &[0x65, 0xff, 0x15, 0x10, 0, 0, 0],
    ];
    let code = enters.iter().find_map(|enter| code.strip_suffix(*enter))?;
    // mov $NUMBER, %eax. Numbers are below 65536.
    let moves = code
        .windows(5)
        .rev()
        .find(|code| code[0] == 0xb8 && code[3..] == [0, 0])?;
    Some(u64::from(u16::from_le_bytes([moves[1], moves[2]])))
}

#[cfg(test)]
#[path = "../tests/unit/clock_read.rs"]
mod tests;

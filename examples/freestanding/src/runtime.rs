//! The runtime, which libc and std provide in other programs: the entry point, the standard output,
//! the exit, and the functions that the compiler calls.

use core::arch::{asm, global_asm};
use core::{fmt, panic, ptr};

// The kernel starts the program at `_start`. The stack pointer is then the address of argc.
#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start: mov rdi, rsp", "and rsp, -16", "call {0}", sym start);
#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start: mov x0, sp", "bl {0}", sym start);
#[cfg(target_arch = "riscv64")]
global_asm!(
    ".globl _start",
    "_start: .option push",
    ".option norelax",
    "la gp, __global_pointer$",
    ".option pop",
    "mv a0, sp",
    "call {0}",
    sym start
);

/// The numbers of write(2) and exit_group(2).
const CALLS: [usize; 2] = if cfg!(target_arch = "x86_64") {
    [1, 231]
} else {
    [64, 94]
};

/// Calls `main` with argc and the value of `AT_SYSINFO_EHDR`, or null.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    const AT_SYSINFO_EHDR: usize = 33;
    // The stack begins with argc, that many arguments, 0, the environment, 0, and the auxiliary
    // vector (System V ABI, "Initial Process Stack"). The last pair of the vector is 0, 0.
    // SAFETY: no word beyond that pair is read.
    let word = |at: usize| unsafe { stack.wrapping_add(at).read() };
    let mut at = word(0) + 2;
    while word(at) != 0 {
        at += 1;
    }
    at += 1;
    while ![AT_SYSINFO_EHDR, 0].contains(&word(at)) {
        at += 2;
    }
    exit(crate::main(
        word(0),
        ptr::with_exposed_provenance(word(at + 1)),
    ))
}

/// The standard output.
pub struct Stdout;

impl fmt::Write for Stdout {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = text.as_ptr().expose_provenance();
        // SAFETY: write(2) reads only the bytes of `text`.
        let written = unsafe { system_call(CALLS[0], [1, start, text.len()]) };
        if written == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

fn exit(status: i32) -> ! {
    loop {
        // SAFETY: exit_group(2) takes any status and ends the process.
        unsafe { system_call(CALLS[1], [status as usize, 0, 0]) };
    }
}

#[panic_handler]
fn panic(_: &panic::PanicInfo<'_>) -> ! {
    exit(101)
}

/// Makes a system call.
///
/// # Safety
/// The pointers among the arguments must be valid for what the system call does with them.
pub unsafe fn system_call(number: usize, [first, second, third]: [usize; 3]) -> usize {
    let result;
    // SAFETY: the registers are those of the architecture's system call convention, and the caller
    // vouches for the arguments.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second,
            in("rdx") third, lateout("rcx") _, lateout("r11") _, options(nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("svc 0", in("x8") number, inlateout("x0") first => result, in("x1") second,
            in("x2") third, options(nostack));
        #[cfg(target_arch = "riscv64")]
        asm!("ecall", in("a7") number, inlateout("a0") first => result, in("a1") second,
            in("a2") third, options(nostack));
    }
    result
}

// The compiler generates calls of memmove, memcpy, memset, memcmp and bcmp, which libc provides in
// other programs. It would also turn the loops in the functions below into such calls, so that a
// function would call itself. The volatile accesses in the loops prevent that.

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for step in 0..len {
        // The buffers may overlap. If `to` is not after `from`, the loop copies forwards, and
        // otherwise backwards. In both directions, each byte is read before it is overwritten.
        let at = if to.addr() <= from.addr() {
            step
        } else {
            len - 1 - step
        };
        // SAFETY: the caller passes `len` bytes that can be read.
        let byte = unsafe { from.wrapping_add(at).read_volatile() };
        // SAFETY: the caller passes `len` bytes that can be written.
        unsafe { to.wrapping_add(at).write_volatile(byte) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: memcpy requires of its caller all that memmove requires.
    unsafe { memmove(to, from, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: the caller passes `len` bytes that can be written.
        unsafe { to.wrapping_add(at).write_volatile(byte as u8) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: the caller passes two buffers of `len` bytes that can be read.
        let pair =
            [left, right].map(|from| i32::from(unsafe { from.wrapping_add(at).read_volatile() }));
        if pair[0] != pair[1] {
            return pair[0] - pair[1];
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: bcmp and memcmp require the same of their caller.
    unsafe { memcmp(left, right, len) }
}

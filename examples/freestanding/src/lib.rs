//! The entry point, the memory functions and the panic handler, which libc and std provide
//! elsewhere.

#![no_std]

use core::fmt;
use core::panic::PanicInfo;
use core::ptr;

/// Defines `_start`, which calls a function with argc and the value of `AT_SYSINFO_EHDR`, or 0, and
/// exits with its result.
#[macro_export]
macro_rules! start {
    ($main:expr) => {
        // The kernel enters here. The stack pointer is the address of argc.
        #[cfg(target_arch = "x86_64")]
        core::arch::global_asm!(
            ".globl _start",
            "_start: xor ebp, ebp",
            "mov rdi, rsp",
            "and rsp, -16",
            "call {start}",
            start = sym start,
        );
        #[cfg(target_arch = "x86")]
        core::arch::global_asm!(
            ".globl _start",
            "_start: xor ebp, ebp",
            "mov eax, esp",
            "and esp, -16",
            "sub esp, 12",
            "push eax",
            "call {start}",
            start = sym start,
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::global_asm!(
            ".globl _start",
            "_start: mov x29, xzr",
            "mov x30, xzr",
            "mov x0, sp",
            "b {start}",
            start = sym start,
        );
        #[cfg(target_arch = "arm")]
        core::arch::global_asm!(
            ".globl _start",
            ".type _start, %function",
            "_start: mov r0, sp",
            "bic sp, sp, #7",
            "bl {start}",
            start = sym start,
        );

        unsafe extern "C" fn start(stack: *const usize) -> ! {
            // SAFETY: `_start` passes the stack pointer with which the kernel started the process.
            unsafe { $crate::run(stack, $main) }
        }
    };
}

const AT_SYSINFO_EHDR: usize = 33;

/// Calls `main` with argc and the value of `AT_SYSINFO_EHDR`, or 0, and exits with its result.
///
/// # Safety
/// `stack` must be the stack pointer with which the kernel started the process.
pub unsafe fn run(stack: *const usize, main: fn(usize, usize) -> i32) -> ! {
    // SAFETY: the stack begins with argc (System V ABI, "Initial Process Stack").
    let argc = unsafe { stack.read() };
    // SAFETY: `argc` pointers and a null follow, so this is on the stack.
    let mut word = unsafe { stack.add(argc + 2) };
    // SAFETY: `word` is in the environment, which ends with a null.
    while unsafe { word.read() } != 0 {
        // SAFETY: this word was not the null, so another one follows.
        word = unsafe { word.add(1) };
    }
    // SAFETY: the auxiliary vector follows the null.
    let mut entry = unsafe { word.add(1) }.cast::<[usize; 2]>();
    let ehdr = loop {
        // SAFETY: the vector ends with AT_NULL, and no entry before this one was AT_NULL.
        match unsafe { entry.read() } {
            [0, _] => break 0,
            [AT_SYSINFO_EHDR, address] => break address,
            // SAFETY: this entry was not AT_NULL, so another one follows.
            _ => entry = unsafe { entry.add(1) },
        }
    };
    exit(main(argc, ehdr))
}

/// The standard output.
pub struct Stdout;

impl fmt::Write for Stdout {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: write(2) reads only the bytes of `text`.
        let written = unsafe { system_call(CALLS[0], [1, text.as_ptr().addr(), text.len()]) };
        if written == text.len() as isize { Ok(()) } else { Err(fmt::Error) }
    }
}

fn exit(status: i32) -> ! {
    loop {
        // SAFETY: exit_group(2) takes any status and ends the process.
        unsafe { system_call(CALLS[1], [status as usize, 0, 0]) };
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

/// The numbers of write(2) and exit_group(2).
#[cfg(target_arch = "x86_64")]
const CALLS: [usize; 2] = [1, 231];
#[cfg(target_arch = "x86")]
const CALLS: [usize; 2] = [4, 252];
#[cfg(target_arch = "aarch64")]
const CALLS: [usize; 2] = [64, 94];
#[cfg(target_arch = "arm")]
const CALLS: [usize; 2] = [4, 248];

/// # Safety
/// The pointers among the arguments must be valid for what the system call does with them.
unsafe fn system_call(number: usize, args: [usize; 3]) -> isize {
    let result;
    // SAFETY: the registers are those of the architecture's system call convention, and the caller
    // vouches for the arguments.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("syscall", inlateout("rax") number => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            lateout("rcx") _, lateout("r11") _, options(nostack));
        #[cfg(target_arch = "x86")]
        core::arch::asm!("int 0x80", inlateout("eax") number => result,
            in("ebx") args[0], in("ecx") args[1], in("edx") args[2], options(nostack));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("svc 0", in("x8") number, inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], options(nostack));
        #[cfg(target_arch = "arm")]
        core::arch::asm!("mov {saved}, r7", "mov r7, {number}", "svc 0", "mov r7, {saved}",
            number = in(reg) number, saved = out(reg) _, inlateout("r0") args[0] => result,
            in("r1") args[1], in("r2") args[2], options(nostack));
    }
    result
}

// The compiler generates calls of these functions. Volatile accesses keep it from replacing the
// loops by calls of the functions themselves.

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: memcpy requires of its caller all that memmove requires.
    unsafe { memmove(to, from, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for step in 0..len {
        // In this direction each byte is read before it is written.
        let at = if to.addr() <= from.addr() { step } else { len - 1 - step };
        // SAFETY: the caller passes `len` bytes that can be read, and `len` that can be written.
        unsafe { ptr::write_volatile(to.add(at), ptr::read_volatile(from.add(at))) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: the caller passes `len` bytes that can be written.
        unsafe { ptr::write_volatile(to.add(at), byte as u8) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: the caller passes two buffers of `len` bytes that can be read.
        let (left, right) = unsafe { (ptr::read_volatile(left.add(at)), ptr::read_volatile(right.add(at))) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: bcmp and memcmp require the same of their caller.
    unsafe { memcmp(left, right, len) }
}

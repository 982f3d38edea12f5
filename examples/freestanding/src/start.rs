//! What the C library's start file, its memory functions and std's panic handler would be.

use core::fmt;
use core::panic::PanicInfo;
use core::ptr;

// The kernel enters here, with the stack pointer at argc.
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

/// The stack that a process begins with: argc, argv, a null, the environment, a null, the auxiliary vector.
unsafe extern "C" fn start(stack: *const usize) -> ! {
    // SAFETY: argc is the first word.
    let argc = unsafe { stack.read() };
    // SAFETY: argv and its null follow.
    let mut word = unsafe { stack.add(argc + 2) };
    // SAFETY: the environment ends with a null.
    while unsafe { word.read() } != 0 {
        // SAFETY: this was not the null yet.
        word = unsafe { word.add(1) };
    }
    // SAFETY: the auxiliary vector follows that null.
    let auxv = unsafe { word.add(1) }.cast::<[usize; 2]>();
    exit(crate::main(argc, auxv))
}

/// The value of an entry of the auxiliary vector; 0 if there is none.
#[allow(dead_code, reason = "not every program asks")]
pub fn auxv_value(auxv: *const [usize; 2], tag: usize) -> usize {
    let mut entry = auxv;
    loop {
        // SAFETY: the vector ends with AT_NULL, which has not been seen yet.
        match unsafe { entry.read() } {
            [0, _] => return 0,
            [found, value] if found == tag => return value,
            // SAFETY: this was not AT_NULL.
            _ => entry = unsafe { entry.add(1) },
        }
    }
}

/// The standard output.
pub struct Stdout;

impl fmt::Write for Stdout {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            // SAFETY: write(2) reads these bytes.
            let written = unsafe { system_call(WRITE, [1, rest.as_ptr() as usize, rest.len()]) };
            rest = usize::try_from(written).ok().and_then(|written| rest.get(written..)).ok_or(fmt::Error)?;
        }
        Ok(())
    }
}

fn exit(status: i32) -> ! {
    loop {
        // SAFETY: exit_group(2) does not come back.
        unsafe { system_call(EXIT_GROUP, [status as usize, 0, 0]) };
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = fmt::Write::write_fmt(&mut Stdout, format_args!("{info}\n"));
    exit(101)
}

#[cfg(target_arch = "x86_64")]
const WRITE: usize = 1;
#[cfg(target_arch = "x86_64")]
const EXIT_GROUP: usize = 231;
#[cfg(target_arch = "aarch64")]
const WRITE: usize = 64;
#[cfg(target_arch = "aarch64")]
const EXIT_GROUP: usize = 94;
#[cfg(any(target_arch = "x86", target_arch = "arm"))]
const WRITE: usize = 4;
#[cfg(target_arch = "x86")]
const EXIT_GROUP: usize = 252;
#[cfg(target_arch = "arm")]
const EXIT_GROUP: usize = 248;

unsafe fn system_call(number: usize, args: [usize; 3]) -> isize {
    let result;
    // SAFETY: the caller's duty.
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

// The functions that the compiler calls by name. The accesses are volatile, or it would make calls of these loops.

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: the caller has `len` bytes to read and to write.
        unsafe { ptr::write_volatile(to.add(at), ptr::read_volatile(from.add(at))) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.addr() <= from.addr() {
        // SAFETY: forwards, no byte is written before it is read.
        return unsafe { memcpy(to, from, len) };
    }
    for at in (0..len).rev() {
        // SAFETY: the caller has `len` bytes to read and to write.
        unsafe { ptr::write_volatile(to.add(at), ptr::read_volatile(from.add(at))) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: the caller has `len` bytes to write.
        unsafe { ptr::write_volatile(to.add(at), byte as u8) };
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    for at in 0..len {
        // SAFETY: the caller has `len` bytes to read on either side.
        let (left, right) = unsafe { (ptr::read_volatile(left.add(at)), ptr::read_volatile(right.add(at))) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: the caller's duty is the same.
    unsafe { memcmp(left, right, len) }
}

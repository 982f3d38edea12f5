//! The system call of `x86_64`.

pub(crate) use crate::arch::table::x86_64::ABI;

system_call!(#[inline] (number, args, result) {
    "syscall",
    inlateout("rax") number => result,
    in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4],
    lateout("rcx") _, lateout("r11") _, // arch/x86/entry/entry_64.S
});

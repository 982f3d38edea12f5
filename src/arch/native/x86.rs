//! The system call of `x86` (i386). It goes through the vDSO's `__kernel_vsyscall`. Until the vDSO
//! has been found, it is made with `int 0x80`.
//!
//! Every x86 kernel accepts `int 0x80`, but in a virtual machine it costs 3 to 30 times as much as
//! `sysenter` or `syscall`. The vDSO's function (arch/x86/entry/vdso/vdso32/system_call.S) uses the
//! fastest of these three instructions that the CPU has. It takes its arguments in the same
//! registers as `int 0x80`, and changes only eax.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use crate::arch::table::x86::ABI;

unsafe extern "C" {
    /// Makes a system call through the code at `entry`, or through `int 0x80` if `entry` is null.
    fn vdso_time_enter(number: u32, args: *const [usize; 5], entry: *mut ()) -> isize;
}

// The kernel delivers most signals right after the instruction that enters it, and a signal handler
// may unwind from there. So the system call is in a function with its own unwind tables. Inline
// assembly would have to push esi in order to put the fourth argument there, because LLVM reserves
// esi and does not accept it as an operand. An unwinder does not know about this push, and would
// look for the return address at the wrong stack offset.
core::arch::global_asm!(
    ".ifndef vdso_time_enter",
    ".pushsection .text.vdso_time_enter,\"ax\",@progbits",
    ".weak vdso_time_enter",
    ".hidden vdso_time_enter",
    ".type vdso_time_enter,@function",
    "vdso_time_enter:",
    ".cfi_startproc",
    "push ebp",
    ".cfi_def_cfa_offset 8",
    ".cfi_offset ebp, -8",
    "mov ebp, esp",
    ".cfi_def_cfa_register ebp",
    "push ebx",
    ".cfi_offset ebx, -12",
    "push esi",
    ".cfi_offset esi, -16",
    "push edi",
    ".cfi_offset edi, -20",
    "mov eax, [ebp + 8]",
    "mov edi, [ebp + 12]",
    "mov ebx, [edi]",
    "mov ecx, [edi + 4]",
    "mov edx, [edi + 8]",
    "mov esi, [edi + 12]",
    "mov edi, [edi + 16]",
    "cmp dword ptr [ebp + 16], 0",
    "je 2f",
    "call dword ptr [ebp + 16]",
    "jmp 3f",
    "2: int 0x80",
    "3: pop edi",
    ".cfi_restore edi",
    "pop esi",
    ".cfi_restore esi",
    "pop ebx",
    ".cfi_restore ebx",
    "pop ebp",
    ".cfi_restore ebp",
    ".cfi_def_cfa esp, 4",
    "ret",
    ".cfi_endproc",
    ".size vdso_time_enter, . - vdso_time_enter",
    ".popsection",
    ".endif",
);

/// The address of `__kernel_vsyscall`, or null until the vDSO has been found.
///
/// Every access is `Relaxed`, because no other data is published with the address. A thread that
/// still sees null uses `int 0x80`, which works at any time. A thread that sees the address can
/// call it, because the kernel mapped the code of `__kernel_vsyscall` before the process ran its
/// first instruction.
static ENTRY: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Sets the address of `__kernel_vsyscall`, through which later system calls go.
///
/// # Safety
///
/// `__kernel_vsyscall` must be at `address` for the life of the process.
pub(crate) unsafe fn set_kernel_entry(address: usize) {
    ENTRY.store(ptr::with_exposed_provenance_mut(address), Ordering::Relaxed);
}

/// Enters the kernel. A result in `-4095..=-1` is a negated error number.
///
/// This function must not be inlined, because it calls `vdso_time_enter`, whose symbol is hidden
/// (see the module `native`).
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[inline(never)]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    // SAFETY: the caller promises that the call is sound. `ENTRY` is null or the vDSO's function,
    // which `set_kernel_entry` stored.
    unsafe { vdso_time_enter(number, &raw const args, ENTRY.load(Ordering::Relaxed)) }
}

//! The system call of `riscv64`.

pub(crate) use crate::arch::table::riscv64::ABI;

// The function is not inlined, because a system call clears the vector registers
// (Documentation/arch/riscv/vector.rst). A function call may clear them as well, so the callers do
// not rely on them.
system_call!(#[inline(never)] (number, args, result) {
    "ecall",
    in("a7") number,
    inlateout("a0") args[0] => result,
    in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
});

//! The system call of `riscv64`.

pub(crate) use crate::arch::table::riscv64::ABI;

// A system call clears the vector registers (Documentation/arch/riscv/vector.rst). The calling
// convention allows every function to change these registers, so no caller relies on them after a
// call. For this reason the system call is in a function that is not inlined.
system_call!(#[inline(never)] (number, args, result) {
    "ecall",
    in("a7") number,
    inlateout("a0") args[0] => result,
    in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
});

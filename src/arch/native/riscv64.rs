//! The system call of `riscv64`.

pub(crate) use crate::arch::table::riscv64::ABI;

// A system call clears the vector registers (Documentation/arch/riscv/vector.rst). By the calling
// convention, any function may do so as well. So this is a function and is not inlined: its callers
// then do not rely on these registers.
system_call!(#[inline(never)] (number, args, result) {
    "ecall",
    in("a7") number,
    inlateout("a0") args[0] => result,
    in("a1") args[1], in("a2") args[2], in("a3") args[3], in("a4") args[4],
});

//! The system call of `aarch64`.

pub(crate) use crate::arch::table::aarch64::ABI;

// A system call may clear the SVE registers beyond the 128 bits that they share with the SIMD
// registers, and the predicate registers (Documentation/arch/arm64/sve.rst). The calling convention
// allows every function to change them, so no caller relies on them after a call. For this reason
// the system call is in a function that is not inlined.
system_call!(#[inline(never)] (number, args, result) {
    "svc 0",
    in("x8") number,
    inlateout("x0") args[0] => result,
    in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4],
});

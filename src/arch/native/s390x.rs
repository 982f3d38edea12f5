//! The system call of `s390x`.

pub(crate) use crate::arch::table::s390x::ABI;

system_call!(#[inline] (number, args, result) {
    "svc 0",
    in("r1") number,
    inlateout("r2") args[0] => result,
    in("r3") args[1], in("r4") args[2], in("r5") args[3], in("r6") args[4],
});

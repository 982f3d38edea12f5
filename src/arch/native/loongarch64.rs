//! The system call of `loongarch64`.

pub(crate) use crate::arch::table::loongarch64::ABI;

system_call!(#[inline] (number, args, result) {
    "syscall 0",
    in("$a7") number,
    inlateout("$a0") args[0] => result,
    in("$a1") args[1], in("$a2") args[2], in("$a3") args[3], in("$a4") args[4],
    // arch/loongarch/kernel/entry.S
    lateout("$t0") _, lateout("$t1") _, lateout("$t2") _, lateout("$t3") _, lateout("$t4") _,
    lateout("$t5") _, lateout("$t6") _, lateout("$t7") _, lateout("$t8") _,
});

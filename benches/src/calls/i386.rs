//! The two ways into the kernel on x86 (i386): `int 0x80` and the vDSO's `__kernel_vsyscall`.

use crate::harness::Row;

/// The row, which only i386 has.
pub const ENTRIES: &str = "getppid() on i386";
/// Its contenders.
pub const WAYS: [&str; 2] = ["int 0x80", "__kernel_vsyscall"];

#[cfg(not(target_arch = "x86"))]
pub(super) fn entries() -> Option<Row> {
    None
}

#[cfg(target_arch = "x86")]
#[allow(unsafe_code, reason = "system calls in assembly")]
pub(super) fn entries() -> Option<Row> {
    use std::arch::asm;

    use crate::harness::Contender;

    const GETPPID: usize = 64;
    let vdso = vdso_time::vdso::Vdso::locate().ok()?;
    let entry = vdso.symbol_address(WAYS[1], None)?.addr();
    let by_interrupt = Contender::new(WAYS[0], || {
        let mut eax = GETPPID;
        // SAFETY: getppid(2) has no arguments and no effect; the kernel changes eax alone.
        unsafe { asm!("int 0x80", inlateout("eax") eax) };
        super::keep(eax);
    });
    let by_vdso = Contender::new(WAYS[1], move || {
        let mut eax = GETPPID;
        // SAFETY: as above; the vDSO's entry has the registers of `int 0x80`.
        unsafe { asm!("call {entry}", entry = in(reg) entry, inlateout("eax") eax) };
        super::keep(eax);
    });
    Some(Row::new(ENTRIES, [by_interrupt, by_vdso]))
}

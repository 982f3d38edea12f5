//! The rseq area that glibc registered for this thread (rseq(2)).

use std::arch::asm;

unsafe extern "C" {
    safe static __rseq_offset: isize;
    safe static __rseq_size: u32;
}

/// glibc's RSEQ_SIG (sys/rseq.h).
const SIGNATURE: u32 = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
    0x5305_3053
} else if cfg!(target_arch = "aarch64") {
    0xd428_bc00
} else if cfg!(target_arch = "arm") {
    0xe7f5_def3
} else if cfg!(target_arch = "riscv64") {
    0xf140_1073
} else if cfg!(target_arch = "s390x") {
    0xb2ff_0fff
} else if cfg!(target_arch = "loongarch64") {
    0x002a_0010
} else {
    0
};

/// Whether glibc registers an area for each thread of this program.
pub fn is_registered() -> bool {
    let (mut offset, mut size) = (&raw const __rseq_offset, &raw const __rseq_size);
    // SAFETY: no instruction. It makes the symbols weak, so their addresses can be null, and the
    // compiler cannot know that they are not.
    unsafe {
        asm!(".weak __rseq_offset", ".weak __rseq_size", "/* {} {} */", inout(reg) offset, inout(reg) size);
    }
    // SAFETY: if the symbol exists, it is glibc's.
    !offset.is_null() && !size.is_null() && unsafe { size.read() } != 0
}

/// Takes this thread's area from the kernel, if it has one. The CPU's number in it is negative then.
pub fn unregister() {
    const RSEQ_FLAG_UNREGISTER: usize = 1;
    if !is_registered() {
        return;
    }
    let area = thread_pointer().wrapping_add_signed(__rseq_offset);
    // The kernel requires the length that glibc registered: 32, or since 2.41 what the kernel fills.
    for length in 32..=256 {
        // SAFETY: the kernel only stops writing to the area.
        let result =
            unsafe { libc::syscall(libc::SYS_rseq, area, length, RSEQ_FLAG_UNREGISTER, SIGNATURE as usize) };
        if result == 0 {
            return;
        }
    }
    panic!("rseq: {}", std::io::Error::last_os_error());
}

fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "x86")]
    unsafe {
        asm!("mov {}, gs:0", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "arm")]
    unsafe {
        asm!("mrc p15, 0, {}, c13, c0, 3", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        asm!("mv {}, tp", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "loongarch64")]
    unsafe {
        asm!("move {}, $tp", out(reg) pointer);
    }
    // SAFETY: it only writes its output.
    #[cfg(target_arch = "s390x")]
    unsafe {
        asm!("ear {0}, %a0", "sllg {0}, {0}, 32", "ear {0}, %a1", out(reg) pointer);
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64",
        target_arch = "loongarch64",
        target_arch = "s390x"
    )))]
    {
        pointer = 0;
    }
    pointer
}

//! The rseq area that glibc registered for this thread (rseq(2)).

use std::arch::asm;

unsafe extern "C" {
    safe static __rseq_offset: isize;
    safe static __rseq_size: u32;
}

/// For each architecture glibc's `RSEQ_SIG` (sys/rseq.h), and code that reads the thread pointer.
macro_rules! architectures {
    ($($arch:literal: $signature:literal, $code:literal;)*) => {$(
        #[cfg(target_arch = $arch)]
        const SIGNATURE: u32 = $signature;

        #[cfg(target_arch = $arch)]
        fn thread_pointer() -> usize {
            let pointer: usize;
            // SAFETY: it only writes its output.
            unsafe { asm!($code, out(reg) pointer) };
            pointer
        }
    )*};
}

architectures! {
    "x86_64": 0x5305_3053, "mov {}, fs:0";
    "x86": 0x5305_3053, "mov {}, gs:0";
    "aarch64": 0xd428_bc00, "mrs {}, tpidr_el0";
    "arm": 0xe7f5_def3, "mrc p15, 0, {}, c13, c0, 3";
    "riscv64": 0xf140_1073, "mv {}, tp";
    "loongarch64": 0x002a_0010, "move {}, $tp";
    "s390x": 0xb2ff_0fff, "ear {0}, %a0\nsllg {0}, {0}, 32\near {0}, %a1";
}

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

/// Takes this thread's area from the kernel, if it has one. The CPU's number in it is negative
/// then.
pub fn unregister() {
    const RSEQ_FLAG_UNREGISTER: usize = 1;
    if !is_registered() {
        return;
    }
    let area = thread_pointer().wrapping_add_signed(__rseq_offset);
    // SAFETY: glibc's area is there, with the number of the CPU after 4 bytes.
    if unsafe { std::ptr::with_exposed_provenance::<i32>(area + 4).read_volatile() } < 0 {
        return;
    }
    // The kernel requires the length that glibc registered: 32, or since 2.41 what the kernel
    // fills.
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

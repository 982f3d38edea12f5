//! The functions of an architecture that are assembly. What holds on all of them is here.

#![allow(unused_macros, unused_imports, reason = "no target uses all of them")]

/// Defines `syscall` by the operands of the instruction that enters the kernel.
macro_rules! syscall {
    ($(#[$inline:meta])+ |$number:ident, $args:ident, $result:ident| $($asm:tt)+) => {
        /// Enters the kernel.
        ///
        /// # Safety
        ///
        /// The system call must be sound with these arguments.
        $(#[$inline])+
        pub(crate) unsafe fn syscall($number: u32, $args: [usize; 5]) -> isize {
            let $result;
            // SAFETY: the caller promises that the call is sound. Every register that the kernel
            // changes is an output, or one that the callers of a function do not rely on.
            unsafe { core::arch::asm!($($asm)+ options(nostack)) };
            $result
        }
    };
}

/// Defines `mod counter` by the instructions that read a counter of constant rate, which every
/// program may read: at once, after earlier instructions, the same by one instruction unless a
/// static is true, and those that read its rate.
macro_rules! counter {
    (
        IS_PER_CPU = $is_per_cpu:literal;
        ticks: $ticks:literal;
        ticks_ordered: $($ordered:literal),+;
        $(unless $needs_barrier:ident: $synchronized:literal;)?
        $(stated_frequency: $frequency:literal;)?
    ) => {
        pub(crate) mod counter {
            pub(crate) const IS_READABLE: bool = true;
            pub(crate) const IS_PER_CPU: bool = $is_per_cpu;

            #[inline]
            pub(crate) fn ticks() -> u64 {
                let ticks;
                // SAFETY: the instruction only writes its output.
                unsafe { core::arch::asm!($ticks, out(reg) ticks, options(nomem, nostack, preserves_flags)) };
                ticks
            }

            #[inline]
            pub(crate) fn ticks_ordered() -> u64 {
                let ticks;
                $(if !super::$needs_barrier.load(core::sync::atomic::Ordering::Relaxed) {
                    // SAFETY: as below. The CPU has the instruction.
                    unsafe { core::arch::asm!($synchronized, out(reg) ticks, options(nostack, preserves_flags)) };
                    return ticks;
                })?
                // SAFETY: the instructions only write the output. Without `nomem`, the compiler
                // does not move memory accesses across the read.
                unsafe { core::arch::asm!($($ordered,)+ out(reg) ticks, options(nostack, preserves_flags)) };
                ticks
            }

            pub(crate) fn is_invariant() -> bool {
                true
            }

            pub(crate) fn stated_frequency() -> Option<u64> {
                let rates: &[fn() -> u64] = &[$(|| {
                    let hertz;
                    // SAFETY: the instruction only writes its output.
                    unsafe { core::arch::asm!($frequency, out(reg) hertz, options(nomem, nostack, preserves_flags)) };
                    hertz
                })?];
                rates.iter().map(|rate| rate()).find(|hertz| *hertz != 0)
            }
        }
    };
}

/// Defines `mod rseq` for glibc's rseq area: by instructions that load two addresses from the
/// global offset table, and by those that read 4 bytes, with their operands besides `value` and
/// `offset`.
macro_rules! rseq {
    (
        symbols($($option:ident),+): $($load:literal),+;
        read($class:ident): $($read:literal),+ $(; $($operand:tt)+)?
    ) => {
        pub(crate) mod rseq {
            use core::arch::asm;

            pub(crate) const NEEDED_HWCAP: Option<usize> = None;

            /// Returns the addresses of `__rseq_offset` and `__rseq_size`, null in a program
            /// without them.
            pub(crate) fn symbols() -> (*const isize, *const u32) {
                let (offset, size);
                // SAFETY: it loads two addresses from the global offset table. A weak symbol that
                // is not defined has address 0.
                unsafe {
                    asm!(
                        ".weak __rseq_offset",
                        ".weak __rseq_size",
                        $($load,)+
                        offset = out(reg) offset, size = out(reg) size,
                        options(pure, nomem, $($option),+),
                    );
                }
                (offset, size)
            }

            /// Reads 4 bytes.
            ///
            /// # Safety
            ///
            /// They must be readable in every thread.
            #[inline]
            pub(crate) unsafe fn read(offset: isize) -> u32 {
                let value;
                // SAFETY: the caller promises that the bytes are readable.
                unsafe {
                    asm!(
                        $($read,)+
                        $($($operand)+,)?
                        value = out(reg) value, offset = in($class) offset,
                        options(readonly, nostack, preserves_flags),
                    );
                }
                value
            }
        }
    };
}

pub(crate) use {counter, rseq, syscall};

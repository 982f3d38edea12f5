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

pub(crate) use {rseq, syscall};

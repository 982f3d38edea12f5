//! What a loop does with an answer: it keeps it from being optimised away.

use std::hint::black_box;
use std::time::{Instant, SystemTime};

use vdso_time::{Cpu, Errno, Timespec, Timeval};

/// An answer.
///
/// Its numbers go to the black box one by one, as a program that uses them takes them. As one block they would be read 16
/// bytes at once just after they were stored 8 and 8, and the CPU would stall for that.
pub trait Keep {
    /// Keeps it.
    fn keep(self);
}

/// A number, or a time of std's: it comes in registers.
macro_rules! keep_whole {
    ($($type:ty)*) => {$(
        impl Keep for $type {
            #[inline]
            fn keep(self) {
                black_box(self);
            }
        }
    )*};
}

keep_whole! { i32 u32 i64 u64 isize Instant SystemTime }

impl<N: Keep> Keep for [N; 2] {
    #[inline]
    fn keep(self) {
        let [first, second] = self;
        first.keep();
        second.keep();
    }
}

impl Keep for Timespec {
    #[inline]
    fn keep(self) {
        [self.tv_sec, self.tv_nsec].keep();
    }
}

impl Keep for Timeval {
    #[inline]
    fn keep(self) {
        [self.tv_sec, self.tv_usec].keep();
    }
}

impl Keep for Cpu {
    #[inline]
    fn keep(self) {
        [self.cpu, self.node].keep();
    }
}

impl<T: Keep> Keep for Result<T, Errno> {
    #[inline]
    fn keep(self) {
        match self {
            Ok(answer) => answer.keep(),
            Err(error) => error.raw_os_error().keep(),
        }
    }
}

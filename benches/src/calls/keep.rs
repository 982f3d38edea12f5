//! Keeps answers from being optimised away.

use std::hint::black_box;
use std::time::{Instant, SystemTime};

use vdso_time::{Cpu, Errno, Timespec, Timeval};

/// An answer.
///
/// Each number goes to the black box by itself. As one block, two numbers of 8 bytes would be read as
/// 16 bytes just after they were stored, and the CPU would stall.
pub trait Keep {
    fn keep(self);
}

macro_rules! keep {
    ($($type:ty: $($field:ident)*;)*) => {$(
        impl Keep for $type {
            #[inline]
            fn keep(self) {
                $(black_box(self.$field);)*
            }
        }
    )*};
    ($($type:ty)*) => {$(
        impl Keep for $type {
            #[inline]
            fn keep(self) {
                black_box(self);
            }
        }
    )*};
}

keep! { () i32 u32 i64 u64 isize Instant SystemTime }

keep! {
    Timespec: tv_sec tv_nsec;
    Timeval: tv_sec tv_usec;
    Cpu: cpu node;
    libc::timespec: tv_sec tv_nsec;
    libc::timeval: tv_sec tv_usec;
}

impl<N: Keep> Keep for [N; 2] {
    #[inline]
    fn keep(self) {
        let [first, second] = self;
        first.keep();
        second.keep();
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

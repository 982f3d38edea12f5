//! Keeps answers from being optimised away.

use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use vdso_time::{Cpu, Errno, Timespec, Timeval};

/// An answer.
///
/// Each number goes to the black box by itself. As one block, two numbers of 8 bytes would be read
/// as 16 bytes just after they were stored, and the CPU would stall.
pub trait Keep {
    fn keep(self);
}

macro_rules! impl_keep {
    ($($type:ty: |$answer:ident| $($number:expr),+;)*) => {$(
        impl Keep for $type {
            #[inline]
            fn keep(self) {
                let $answer = self;
                $(black_box($number);)+
            }
        }
    )*};
}

impl_keep! {
    (): |answer| answer;
    i32: |answer| answer;
    u32: |answer| answer;
    i64: |answer| answer;
    u64: |answer| answer;
    isize: |answer| answer;
    Duration: |time| time.as_secs(), time.subsec_nanos();
    Instant: |answer| answer;
    SystemTime: |answer| answer;
    Timespec: |time| time.tv_sec, time.tv_nsec;
    Timeval: |time| time.tv_sec, time.tv_usec;
    Cpu: |at| at.cpu, at.node;
    libc::timespec: |time| time.tv_sec, time.tv_nsec;
    libc::timeval: |time| time.tv_sec, time.tv_usec;
}

impl<C> Keep for vdso_time::Instant<C> {
    #[inline]
    fn keep(self) {
        self.as_nanos().keep();
    }
}

impl<C> Keep for vdso_time::SystemTime<C> {
    #[inline]
    fn keep(self) {
        Timespec::from(self).keep();
    }
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

//! The reads of the kernel's clocks. Without a clock to read, the types are left.

use super::kernel::{self, clocks};
use super::monotonic::{Instant, MonotonicClock};
use super::wall::{SystemTime, WallClock};
use crate::errno::Errno;
use crate::sys::calls;
use crate::types::ClockId;

/// Gives a type the reads of a clock as methods.
macro_rules! now {
    ($Type:ty, $what:literal: $Time:ty = $($Clock:tt)+) => {
        impl $Type {
            #[doc = concat!("Returns the time of ", $what, ".")]
            ///
            /// # Panics
            ///
            /// If the clock cannot be read. `try_now` returns the error.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> $Time {
                $($Clock)+::now()
            }

            #[doc = concat!("Returns the time of ", $what, ", or the error of the read.")]
            ///
            /// # Errors
            ///
            /// Those of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<$Time, Errno> {
                $($Clock)+::try_now()
            }
        }
    };
}

now!(Instant, "`CLOCK_MONOTONIC`": Self = kernel::Monotonic);
now!(SystemTime, "`CLOCK_REALTIME`": Self = kernel::Realtime);

macro_rules! reads {
    ($($(#[$doc:meta])* $([$cfg:meta])? $Trait:ident, $Time:ident, $Clock:ident = $ID:ident;)*) => {$(
        $(#[cfg($cfg)])?
        now!(kernel::$Clock, "this clock": $Time<Self> = <Self as $Trait>);

        $(#[cfg($cfg)])?
        impl $Trait for kernel::$Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                calls::clock_gettime(ClockId::$ID).map($Time::from_kernel)
            }
        }
    )*};
}

clocks!(reads);

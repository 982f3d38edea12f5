//! The reads of the kernel's clocks. Without a clock to read, the types are left.

use core::time::Duration;

#[cfg(vdso_time_linux)]
use super::kernel::{Boottime, MonotonicRaw, ProcessCpuTime, Tai, ThreadCpuTime, linux_clocks};
use super::kernel::{Monotonic, MonotonicCoarse, Realtime, RealtimeCoarse, clocks};
use super::monotonic::{Instant, MonotonicClock};
use super::wall::{SystemTime, WallClock};
use crate::errno::Errno;
use crate::sys::calls;
use crate::types::ClockId;

/// The reads of a clock, as methods of its type and as a trait.
macro_rules! reads {
    ($($(#[$doc:meta])* $Trait:ident, $Time:ident, $Clock:ident = $ID:ident;)*) => {$(
        impl $Clock {
            /// Returns the time of this clock.
            ///
            /// # Panics
            ///
            /// If the clock cannot be read. `try_now` returns the error.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> $Time<Self> {
                <Self as $Trait>::now()
            }

            /// Returns the time of this clock, or the error of the read.
            ///
            /// # Errors
            ///
            /// Those of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<$Time<Self>, Errno> {
                calls::clock_gettime(ClockId::$ID).map($Time::from_kernel)
            }

            /// Returns the resolution of this clock (clock_getres(2)).
            ///
            /// It is 1 ns, or the length of a timer tick (1 to 10 ms) for a coarse clock and in a
            /// kernel without high-resolution timers. It is neither the cost of a read nor the
            /// accuracy of the clock.
            ///
            /// # Errors
            ///
            /// Those of [`clock_getres`](crate::clock_getres).
            #[inline]
            pub fn resolution() -> Result<Duration, Errno> {
                calls::clock_getres(ClockId::$ID)?.try_into()
            }
        }

        impl $Trait for $Clock {
            #[inline]
            fn try_now() -> Result<$Time<Self>, Errno> {
                Self::try_now()
            }
        }
    )*};
}

clocks!(reads);
#[cfg(vdso_time_linux)]
linux_clocks!(reads);

/// The reads of the default clock, as functions of the time's type.
macro_rules! default_reads {
    ($Time:ident, $Default:ident, $clock:literal) => {
        impl $Time {
            #[doc = concat!("Returns the time of `", $clock, "`.")]
            ///
            /// # Panics
            ///
            /// If the clock cannot be read. `try_now` returns the error.
            #[inline]
            #[must_use]
            #[track_caller]
            pub fn now() -> Self {
                $Default::now()
            }

            #[doc = concat!("Returns the time of `", $clock, "`, or the error of the read.")]
            ///
            /// # Errors
            ///
            /// Those of [`clock_gettime`](crate::clock_gettime).
            #[inline]
            pub fn try_now() -> Result<Self, Errno> {
                $Default::try_now()
            }
        }
    };
}

default_reads!(Instant, Monotonic, "CLOCK_MONOTONIC");
default_reads!(SystemTime, Realtime, "CLOCK_REALTIME");

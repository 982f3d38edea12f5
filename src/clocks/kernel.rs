//! The kernel's clocks: one list. Here it makes a type of each, and in `reads.rs` its methods.

/// Gives the clocks to a macro: of each its documentation, the condition under which there is one
/// (std's clocks are fewer), its trait, the type of its times, its own type and its id.
macro_rules! clocks {
    ($make:ident) => {
        $make! {
            /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stops while the system is suspended.
            MonotonicClock, Instant, Monotonic = MONOTONIC;
            /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, usually at most
            /// 10 ms ago. A read uses no counter.
            ///
            /// Its times convert `into` an [`Instant`](crate::Instant).
            MonotonicClock, Instant, MonotonicCoarse = MONOTONIC_COARSE;
            /// `CLOCK_REALTIME`: the wall clock, UTC without leap seconds. It can step, and it
            /// counts while the system is suspended.
            WallClock, SystemTime, Realtime = REALTIME;
            /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, usually at most
            /// 10 ms ago. A read uses no counter.
            ///
            /// Its times convert `into` a [`SystemTime`](crate::SystemTime).
            WallClock, SystemTime, RealtimeCoarse = REALTIME_COARSE;
            /// `CLOCK_MONOTONIC_RAW`: the hardware's own rate, not slewed. It stops while the
            /// system is suspended.
            [vdso_time_linux] MonotonicClock, Instant, MonotonicRaw = MONOTONIC_RAW;
            /// `CLOCK_BOOTTIME`: `CLOCK_MONOTONIC` that also counts while the system is suspended.
            [vdso_time_linux] MonotonicClock, Instant, Boottime = BOOTTIME;
            /// `CLOCK_PROCESS_CPUTIME_ID`: the CPU time that all threads of this process used.
            ///
            /// A read is a system call. A forked child begins at 0, so its parent's times are in
            /// its future.
            [vdso_time_linux] MonotonicClock, Instant, ProcessCpuTime = PROCESS_CPUTIME;
            /// `CLOCK_THREAD_CPUTIME_ID`: the CPU time that the calling thread used.
            ///
            /// A read is a system call. Each thread has its own clock, so times of two threads
            /// cannot be compared.
            [vdso_time_linux] MonotonicClock, Instant, ThreadCpuTime = THREAD_CPUTIME;
            /// `CLOCK_TAI`: International Atomic Time, which counts leap seconds.
            ///
            /// It is the same as `CLOCK_REALTIME` until NTP sets its offset. It can step.
            [vdso_time_linux] WallClock, SystemTime, Tai = TAI;
        }
    };
}

macro_rules! types {
    ($($(#[$doc:meta])* $([$cfg:meta])? $Trait:ident, $Time:ident, $Clock:ident = $ID:ident;)*) => {$(
        $(#[$doc])*
        $(#[cfg($cfg)])?
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Clock {}
    )*};
}

clocks!(types);

pub(super) use clocks;

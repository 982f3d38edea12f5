//! A type for each of the kernel's clocks. std has only some of them on other systems.

macro_rules! clocks {
    ($($(#[$doc:meta])* $Clock:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Clock {}
    )*};
}

clocks! {
    /// `CLOCK_MONOTONIC`: slewed by NTP, never set. It stops while the system is suspended.
    Monotonic;
    /// `CLOCK_MONOTONIC_RAW`: the hardware's own rate, not slewed. It stops while the system is
    /// suspended.
    #[cfg(vdso_time_linux)]
    MonotonicRaw;
    /// `CLOCK_MONOTONIC_COARSE`: `CLOCK_MONOTONIC` at the last timer tick, usually at most 10 ms
    /// ago.
    ///
    /// A read does not read the hardware counter. Its times convert `into` an
    /// [`Instant`](crate::Instant).
    MonotonicCoarse;
    /// `CLOCK_BOOTTIME`: `CLOCK_MONOTONIC` that also counts while the system is suspended.
    #[cfg(vdso_time_linux)]
    Boottime;
    /// `CLOCK_PROCESS_CPUTIME_ID`: the CPU time that all threads of this process used.
    ///
    /// A read is a system call. A forked child begins at 0, so its parent's times are in its
    /// future.
    #[cfg(vdso_time_linux)]
    ProcessCpuTime;
    /// `CLOCK_THREAD_CPUTIME_ID`: the CPU time that the calling thread used.
    ///
    /// A read is a system call. Each thread has its own clock, so times of two threads cannot be
    /// compared.
    #[cfg(vdso_time_linux)]
    ThreadCpuTime;
    /// `CLOCK_REALTIME`: the wall clock, UTC without leap seconds. It can step, and it counts while
    /// the system is suspended.
    Realtime;
    /// `CLOCK_REALTIME_COARSE`: `CLOCK_REALTIME` at the last timer tick, usually at most 10 ms ago.
    ///
    /// A read does not read the hardware counter. Its times convert `into` a
    /// [`SystemTime`](crate::SystemTime).
    RealtimeCoarse;
    /// `CLOCK_TAI`: International Atomic Time, which counts leap seconds.
    ///
    /// It is the same as `CLOCK_REALTIME` until NTP sets its offset. It can step.
    #[cfg(vdso_time_linux)]
    Tai;
}

//! The clocks, as a report names them.

/// The names of the clocks. The index of each `CLOCK_` name is the kernel's id of that clock. The
/// entries after the `CLOCK_` names have no fixed id in the kernel.
const NAMES: [&str; Clock::COUNT] = [
    "CLOCK_REALTIME",
    "CLOCK_MONOTONIC",
    "CLOCK_PROCESS_CPUTIME_ID",
    "CLOCK_THREAD_CPUTIME_ID",
    "CLOCK_MONOTONIC_RAW",
    "CLOCK_REALTIME_COARSE",
    "CLOCK_MONOTONIC_COARSE",
    "CLOCK_BOOTTIME",
    "CLOCK_REALTIME_ALARM",
    "CLOCK_BOOTTIME_ALARM",
    "CLOCK_SGI_CYCLE",
    "CLOCK_TAI",
    "gettimeofday",
    "time",
    "the CPU time of another process or thread",
    "a device's clock",
];

/// A clock, as an index into `NAMES`. The clock of a read can be known only if the read is a system
/// call, or if it was counted with `--exact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock(usize);

impl Clock {
    pub(crate) const COUNT: usize = 16;
    pub(super) const GETTIMEOFDAY: Self = Self(12);
    pub(super) const TIME: Self = Self(13);
    const CPU_TIME: Self = Self(14);
    const DEVICE: Self = Self(15);

    /// Returns the clock that clock_gettime(2) reads for this id, or `None` if there is no such
    /// clock.
    pub(super) fn of_id(id: i32) -> Option<Self> {
        /// A negative id stands for a CPU-time clock of a process or thread, or for the clock of a
        /// device that is open as a file. The id's two lowest bits (`CPUCLOCK_CLOCK_MASK`) tell
        /// which: both bits are set only for a device (`CLOCKFD`).
        const KIND: i32 = 3;
        match usize::try_from(id) {
            Ok(id) if id < Self::GETTIMEOFDAY.0 => Some(Self(id)),
            Ok(_) => None,
            Err(_) if id & KIND == KIND => Some(Self::DEVICE),
            Err(_) => Some(Self::CPU_TIME),
        }
    }

    /// Returns the clock of an index, which must be less than [`Clock::COUNT`].
    pub(crate) fn of_index(index: usize) -> Self {
        Self(index)
    }

    pub(crate) fn index(self) -> usize {
        self.0
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Returns whether no vDSO reads this clock, so that each read is a system call on every
    /// machine.
    pub(crate) fn is_in_no_vdso(self) -> bool {
        let name = self.name();
        name.contains("CPUTIME") || name.contains("ALARM") || self.0 >= Self::CPU_TIME.0
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    /// Tests the ids of libc, the id that clock_getcpuclockid(3) returns for a process, and the id
    /// that clock_gettime(2) describes for a device.
    #[test]
    fn a_clock_has_the_name_of_its_id() {
        for (id, expected) in [
            (libc::CLOCK_REALTIME, Some("CLOCK_REALTIME")),
            (
                libc::CLOCK_THREAD_CPUTIME_ID,
                Some("CLOCK_THREAD_CPUTIME_ID"),
            ),
            (libc::CLOCK_MONOTONIC_COARSE, Some("CLOCK_MONOTONIC_COARSE")),
            (libc::CLOCK_BOOTTIME_ALARM, Some("CLOCK_BOOTTIME_ALARM")),
            (libc::CLOCK_TAI, Some("CLOCK_TAI")),
            (12, None),
            // The clocks of process 1 and of file descriptor 3.
            (
                (!1 << 3) | 2,
                Some("the CPU time of another process or thread"),
            ),
            ((!3 << 3) | 3, Some("a device's clock")),
        ] {
            assert_eq!(Clock::of_id(id).map(Clock::name), expected, "{id}");
        }
        assert!(
            Clock::of_id(libc::CLOCK_THREAD_CPUTIME_ID)
                .unwrap()
                .is_in_no_vdso()
        );
        assert!(!Clock::of_id(libc::CLOCK_MONOTONIC).unwrap().is_in_no_vdso());
    }
}

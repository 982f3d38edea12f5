//! The calls that are checked.

use std::fmt;

use vdso_time::{ClockId, Errno, Route, Routes};

/// One way to read a clock, or to ask about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `time()`.
    Time,
    /// `gettimeofday()`.
    Gettimeofday,
    /// `getcpu()`.
    Getcpu,
    /// `clock_gettime()` of a clock.
    ClockGettime(ClockId),
    /// `clock_getres()` of a clock.
    ClockGetres(ClockId),
}

/// Returns every call, in the order of the report. The auxiliary clocks (16 to 23) are among them
/// only if this kernel has them.
pub(crate) fn all() -> Vec<Call> {
    let mut clocks: Vec<ClockId> = (0..12).map(ClockId::from_raw).collect();
    for clock in (16..24).map(ClockId::from_raw) {
        if vdso_time::clock_gettime(clock).is_ok() {
            clocks.push(clock);
        }
    }
    let mut calls = vec![Call::Time, Call::Gettimeofday, Call::Getcpu];
    calls.extend(clocks.iter().copied().map(Call::ClockGettime));
    calls.extend(clocks.iter().copied().map(Call::ClockGetres));
    calls
}

impl Call {
    /// The calls that a verdict is about by default.
    pub const USUAL: [Self; 2] = [
        Self::ClockGettime(ClockId::REALTIME),
        Self::ClockGettime(ClockId::MONOTONIC),
    ];

    /// The calls that return the time of the last timer tick. They do not read the clock source, so
    /// they can stay in user space with every clock source.
    pub(crate) const COARSE: [Self; 2] =
        [Self::Time, Self::ClockGettime(ClockId::MONOTONIC_COARSE)];

    /// Returns the function's name.
    #[must_use]
    pub fn function(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Gettimeofday => "gettimeofday",
            Self::Getcpu => "getcpu",
            Self::ClockGettime(_) => "clock_gettime",
            Self::ClockGetres(_) => "clock_getres",
        }
    }

    /// Returns the clock that is passed to the function, or `None` if it takes no clock.
    #[must_use]
    pub fn clock(self) -> Option<ClockId> {
        match self {
            Self::ClockGettime(clock) | Self::ClockGetres(clock) => Some(clock),
            Self::Time | Self::Gettimeofday | Self::Getcpu => None,
        }
    }

    /// Returns the route of the call's function.
    pub(crate) fn route(self, routes: &Routes) -> Route {
        match self {
            Self::Time => routes.time,
            Self::Gettimeofday => routes.gettimeofday,
            Self::Getcpu => routes.getcpu,
            Self::ClockGettime(_) => routes.clock_gettime,
            Self::ClockGetres(_) => routes.clock_getres,
        }
    }

    /// Makes the call through vdso-time, which calls the vDSO's function or, if there is none,
    /// makes the system call.
    pub(crate) fn make(self) -> Result<(), Errno> {
        match self {
            Self::Time => vdso_time::try_time().map(drop),
            Self::Gettimeofday => vdso_time::gettimeofday().map(drop),
            Self::Getcpu => vdso_time::getcpu().map(drop),
            Self::ClockGettime(clock) => vdso_time::clock_gettime(clock).map(drop),
            Self::ClockGetres(clock) => vdso_time::clock_getres(clock).map(drop),
        }
    }

    /// Returns whether the call's clock is one that no kernel's vDSO serves.
    pub(crate) fn is_in_no_vdso(self) -> bool {
        matches!(
            self.clock(),
            Some(
                ClockId::PROCESS_CPUTIME
                    | ClockId::THREAD_CPUTIME
                    | ClockId::REALTIME_ALARM
                    | ClockId::BOOTTIME_ALARM
            )
        )
    }

    /// Returns whether the call reads one of the precise clocks that vDSOs usually serve. For such
    /// a call, the vDSO must read the clock source. The other calls return the time of the last
    /// timer tick, read no clock, or are for a clock that the vDSO usually does not serve.
    pub(crate) fn reads_clock_source(self) -> bool {
        const PRECISE: [ClockId; 5] = [
            ClockId::REALTIME,
            ClockId::MONOTONIC,
            ClockId::MONOTONIC_RAW,
            ClockId::BOOTTIME,
            ClockId::TAI,
        ];
        match self {
            Self::Gettimeofday => true,
            Self::ClockGettime(clock) => PRECISE.contains(&clock),
            Self::Time | Self::Getcpu | Self::ClockGetres(_) => false,
        }
    }
}

impl From<ClockId> for Call {
    fn from(clock: ClockId) -> Self {
        Self::ClockGettime(clock)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clock() {
            Some(clock) => f.pad(&format!("{}({clock:?})", self.function())),
            None => f.pad(&format!("{}()", self.function())),
        }
    }
}

//! The five functions, each on two paths, and the comparison with the kernel's answers.

use std::fmt::{Debug, Display};
use std::panic::{self, AssertUnwindSafe, catch_unwind};

use vdso_time::{ClockId, Cpu, Errno, Timespec, Timeval, syscall};

use crate::oracle::{self, Answer};

/// The five functions, through the vDSO or through system calls alone.
pub struct Path {
    pub name: &'static str,
    pub clock_gettime: fn(ClockId) -> Result<Timespec, Errno>,
    pub clock_getres: fn(ClockId) -> Result<Timespec, Errno>,
    pub gettimeofday: fn() -> Result<Timeval, Errno>,
    pub time: fn() -> Result<i64, Errno>,
    pub getcpu: fn() -> Result<Cpu, Errno>,
}

pub static PATHS: [Path; 2] = [
    Path {
        name: "vDSO",
        clock_gettime: vdso_time::clock_gettime,
        clock_getres: vdso_time::clock_getres,
        gettimeofday: vdso_time::gettimeofday,
        time: || Ok(vdso_time::time()),
        getcpu: vdso_time::getcpu,
    },
    Path {
        name: "kernel",
        clock_gettime: syscall::clock_gettime,
        clock_getres: syscall::clock_getres,
        gettimeofday: syscall::gettimeofday,
        time: syscall::try_time,
        getcpu: syscall::getcpu,
    },
];

/// The clocks that every kernel has.
pub const CLOCKS: [ClockId; 9] = [
    ClockId::REALTIME,
    ClockId::BOOTTIME,
    ClockId::TAI,
    ClockId::REALTIME_COARSE,
    ClockId::MONOTONIC,
    ClockId::MONOTONIC_RAW,
    ClockId::MONOTONIC_COARSE,
    ClockId::PROCESS_CPUTIME,
    ClockId::THREAD_CPUTIME,
];

/// The answer of any of the functions: seconds and their fraction, or a CPU and its node.
pub type Reading = (i64, i64);

/// One of the five functions, and the kernel's answer to the same question.
pub struct Function {
    pub name: &'static str,
    /// The functions without a clock ignore it.
    pub read: fn(&Path, ClockId) -> Result<Reading, Errno>,
    kernel: fn(i32) -> Answer<Reading>,
    has_clock: bool,
}

pub static FUNCTIONS: [Function; 5] = [
    Function {
        name: "time",
        read: |path, _| {
            let seconds = (path.time)()?;
            Ok((seconds, 0))
        },
        kernel: |_| {
            let now = oracle::clock_gettime(libc::CLOCK_REALTIME_COARSE)?;
            Ok((now.tv_sec, 0))
        },
        has_clock: false,
    },
    Function {
        name: "gettimeofday",
        read: |path, _| {
            let now = (path.gettimeofday)()?;
            Ok((now.tv_sec, now.tv_usec))
        },
        kernel: |_| {
            let now = oracle::clock_gettime(libc::CLOCK_REALTIME)?;
            Ok((now.tv_sec, now.tv_nsec / 1000))
        },
        has_clock: false,
    },
    Function {
        name: "clock_gettime",
        read: |path, clock| {
            let now = (path.clock_gettime)(clock)?;
            Ok((now.tv_sec, now.tv_nsec))
        },
        kernel: |id| {
            let now = oracle::clock_gettime(id)?;
            Ok((now.tv_sec, now.tv_nsec))
        },
        has_clock: true,
    },
    Function {
        name: "clock_getres",
        read: |path, clock| {
            let tick = (path.clock_getres)(clock)?;
            Ok((tick.tv_sec, tick.tv_nsec))
        },
        kernel: |id| {
            let tick = oracle::clock_getres(id)?;
            Ok((tick.tv_sec, tick.tv_nsec))
        },
        has_clock: true,
    },
    Function {
        name: "getcpu",
        read: |path, _| {
            let here = (path.getcpu)()?;
            Ok((here.cpu.into(), here.node.into()))
        },
        kernel: |_| {
            let (cpu, node) = oracle::getcpu()?;
            Ok((cpu.into(), node.into()))
        },
        has_clock: false,
    },
];

impl Function {
    /// Returns the clocks for which this function can be compared with the kernel.
    pub fn clocks(&self) -> &'static [ClockId] {
        if self.has_clock {
            &CLOCKS
        } else {
            &CLOCKS[..1]
        }
    }

    /// Compares one answer with the kernel's. `start` is called after the kernel's first answer.
    pub fn compare_once(
        &self,
        path: &Path,
        clock: ClockId,
        start: impl FnOnce(),
    ) -> Compared<Reading> {
        let kernel = || (self.kernel)(clock.as_raw());
        compare(kernel, || {
            start();
            (self.read)(path, clock)
        })
    }

    /// Compares with the kernel, again if the clock may have been set or the thread moved
    /// meanwhile.
    pub fn compare(&self, path: &Path, clock: ClockId) -> Compared<Reading> {
        let tries = match self.name {
            "getcpu" => 100,
            "clock_gettime" | "clock_getres" => tries(settable(clock.as_raw())),
            _ => tries(true),
        };
        again(tries, || self.compare_once(path, clock, || ()))
    }

    /// Fails unless the answer is the kernel's.
    #[track_caller]
    pub fn assert_right(&self, path: &Path, clock: ClockId) {
        assert_compared(
            format_args!("{} {} {clock:?}", path.name, self.name),
            self.compare(path, clock),
        );
    }
}

/// Fails unless every function of a path answers what the kernel does.
#[track_caller]
pub fn assert_all_right(path: &Path) {
    for function in &FUNCTIONS {
        for clock in function.clocks() {
            function.assert_right(path, *clock);
        }
    }
}

/// Fails unless every function of both paths answers for this clock what the kernel does.
#[track_caller]
pub fn assert_clock_right(clock: ClockId) {
    for path in &PATHS {
        for function in &FUNCTIONS {
            function.assert_right(path, clock);
        }
    }
}

/// Fails unless each read panics at a line of this file, and names its clock and this error.
#[track_caller]
pub fn assert_panics(file: &'static str, expected: Errno, reads: &[(&str, &dyn Fn())]) {
    panic::set_hook(Box::new(move |info| {
        assert_eq!(info.location().map(panic::Location::file), Some(file));
    }));
    for (clock, read) in reads {
        let panic = catch_unwind(AssertUnwindSafe(read)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        let end = format!("::{clock}: {expected} (try_now() returns this error)");
        assert!(
            message.starts_with("cannot read vdso_time") && message.ends_with(&end),
            "{message}"
        );
    }
    let _ = panic::take_hook();
}

/// Returns the first function of a path that has no answer, or one that differs from the kernel's.
/// It does not panic, allocate or take a lock, so a signal handler may call it.
pub fn wrong(path: &Path) -> Option<&'static str> {
    for function in &FUNCTIONS {
        for clock in function.clocks() {
            if !matches!(function.compare(path, *clock), Ok(true)) {
                return Some(function.name);
            }
        }
    }
    None
}

/// `Ok` if the answer is right: true for a time, false for an error. Otherwise the kernel's answer
/// before, the crate's, and the kernel's after it.
pub type Compared<T> = Result<bool, [Answer<T>; 3]>;

/// Compares an answer with two of the kernel. It is right if it lies between them, or is the
/// kernel's error.
fn compare<T: PartialOrd>(
    kernel: impl Fn() -> Answer<T>,
    read: impl FnOnce() -> Result<T, Errno>,
) -> Compared<T> {
    let before = kernel();
    let ours = read().map_err(Errno::raw_os_error);
    let after = kernel();
    match (&before, &ours, &after) {
        (Ok(before), Ok(ours), Ok(after)) if before <= ours && ours <= after => Ok(true),
        (Err(before), Err(ours), _) if before == ours => Ok(false),
        _ => Err([before, ours, after]),
    }
}

/// Compares until an answer is right, at most `tries` times.
fn again<T>(tries: usize, compare: impl Fn() -> Compared<T>) -> Compared<T> {
    let mut compared = compare();
    for _ in 1..tries {
        if compared.is_ok() {
            break;
        }
        compared = compare();
    }
    compared
}

#[track_caller]
fn assert_compared<T: Debug>(what: impl Display, compared: Compared<T>) {
    if let Err([before, ours, after]) = compared {
        panic!("{what}: not true that {before:?} <= {ours:?} <= {after:?}");
    }
}

/// Fails unless `read` answers what the kernel does.
#[track_caller]
pub fn assert_bracketed<T: PartialOrd + Debug>(
    what: &str,
    settable: bool,
    kernel: impl Fn() -> Answer<T>,
    read: impl Fn() -> Result<T, Errno>,
) {
    assert_compared(what, again(tries(settable), || compare(&kernel, &read)));
}

/// Returns the number of tries. A settable clock gets three, because another program may set it
/// back during one.
fn tries(settable: bool) -> usize {
    if settable { 3 } else { 1 }
}

/// Returns whether a program, NTP or a hypervisor can set a clock.
pub fn settable(id: i32) -> bool {
    [
        libc::CLOCK_REALTIME,
        libc::CLOCK_REALTIME_COARSE,
        libc::CLOCK_REALTIME_ALARM,
        libc::CLOCK_TAI,
    ]
    .contains(&id)
}

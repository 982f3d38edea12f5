//! The clocks under test. Each model is written from the rules of a program's source, whose
//! version, file and licence its first comment names; no line of it is copied.
//!
//! None of the crates can be driven itself: quanta's `Clock::mock` replaces the counter and the
//! calibration together, and minstant and fastant read the CPU's counter directly.

mod bare;
mod counter;
mod instants;
mod postgres;
mod quanta;
mod quill;
mod redis;
mod tscns;
mod valkey;

use std::rc::Rc;

use crate::thread::Thread;

/// A clock of a program.
pub(crate) trait Clock {
    /// Starts the clock, as the program does at its own start.
    fn start(thread: &Rc<Thread>) -> Self
    where
        Self: Sized;

    /// Returns the time in nanoseconds since a moment of the clock's own.
    fn read(&self) -> u64;

    /// Returns what the clock says about itself: the text of its interface, or nothing.
    fn says(&self) -> String;
}

/// The kernel's clock that a clock follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    Monotonic,
    Realtime,
}

#[derive(Clone, Copy)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) follows: Follows,
    pub(crate) start: fn(&Rc<Thread>) -> Box<dyn Clock>,
}

impl Contender {
    const fn new<C: Clock + 'static>(name: &'static str) -> Self {
        Self {
            name,
            follows: Follows::Monotonic,
            start: |thread| Box::new(C::start(thread)),
        }
    }

    const fn wall<C: Clock + 'static>(name: &'static str) -> Self {
        Self {
            follows: Follows::Realtime,
            ..Self::new::<C>(name)
        }
    }
}

/// This project's clock.
pub(crate) const OURS: [Contender; 3] = [
    Contender::new::<counter::Ordered>("vdso-time, ordered"),
    Contender::new::<counter::Unordered>("vdso-time, unordered"),
    Contender::new::<counter::Trusting>("vdso-time, trusting"),
];

/// Clocks that any program can use.
pub(crate) const LIBRARIES: [Contender; 5] = [
    Contender::new::<bare::Vdso>("clock_gettime"),
    Contender::new::<quanta::Quanta>("quanta"),
    Contender::new::<instants::Minstant>("minstant"),
    Contender::new::<instants::Fastant>("fastant"),
    Contender::new::<bare::BareCounter>("bare counter"),
];

/// The clocks of databases and of C++ loggers.
pub(crate) const PROGRAMS: [Contender; 6] = [
    Contender::new::<valkey::Valkey910>("Valkey 9.1.0"),
    Contender::new::<valkey::ValkeyToday>("Valkey today"),
    Contender::new::<redis::Redis>("Redis"),
    Contender::new::<postgres::Postgres>("PostgreSQL 19"),
    Contender::wall::<tscns::Tscns>("tscns"),
    Contender::wall::<quill::Quill>("quill"),
];

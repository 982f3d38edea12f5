//! Breakpoints on the vDSO's functions: where they are, and whether this host can have them.

#![allow(unsafe_code, reason = "a signal handler is installed")]

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::perf::{Event, Events};
use crate::stack::Space;
use crate::watch::explain;
use crate::{Error, Result};

/// Functions of a vDSO that read a clock. A CPU has four breakpoints.
const FUNCTIONS: [&str; 5] = ["clock_gettime", "clock_gettime64", "gettimeofday", "time", "clock_getres"];
const BREAKPOINTS: usize = 4;

/// Where reads are counted.
pub(crate) fn addresses(space: &mut Space) -> Result<Vec<u64>> {
    let symbols = space.vdso_symbols().ok_or("it has no vDSO, where reads are counted: omit --exact")?;
    let mut addresses = Vec::new();
    for function in FUNCTIONS {
        let is_named =
            |name: &str| name.trim_start_matches("__vdso_").trim_start_matches("__kernel_") == function;
        let found = symbols.iter().find(|(name, _)| is_named(name)).map(|(_, address)| *address);
        addresses.extend(found.filter(|address| !addresses.contains(address)));
    }
    addresses.truncate(BREAKPOINTS);
    if addresses.is_empty() { Err("its vDSO has no functions: omit --exact".into()) } else { Ok(addresses) }
}

/// How often this program hits its own breakpoint before another process does.
const ROUNDS: usize = 100;
const READS: usize = 1000;
/// The rounds whose records are read. The others fill the buffers.
const TIMED: usize = 5;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Disables all events of this thread, because a breakpoint that is never named would be hit again
/// and again.
extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: this operation takes no argument.
    unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_DISABLE) };
}

/// Hits a breakpoint 100,000 times, and returns the nanoseconds of one.
///
/// # Errors
/// If one raises SIGTRAP, which ends a process.
pub(crate) fn test_host() -> Result<u64> {
    let action = SigAction::new(SigHandler::Handler(count), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler adds to an atomic number and makes a system call.
    let before = unsafe { sigaction(Signal::SIGTRAP, &action) }?;
    let tested = hit();
    // SAFETY: this restores what was there before.
    unsafe { sigaction(Signal::SIGTRAP, &before) }?;
    if SIGNALS.swap(0, Ordering::Relaxed) != 0 {
        return Err("a breakpoint raised SIGTRAP on this host, as KVM without the fix of CVE-2025-21839 \
                    does. It would end a process: omit --exact"
            .into());
    }
    tested
}

fn hit() -> Result<u64> {
    let mut own = Space::of(id(), std::rc::Rc::default())?;
    let mut events = Events::count(id(), &addresses(&mut own)?).map_err(|error| explain(&error))?;
    let mut gaps = Vec::new();
    for round in 0..ROUNDS {
        events.enable_breakpoints();
        for _ in 0..READS {
            std::hint::black_box(Instant::now());
        }
        events.disable_breakpoints();
        if round >= TIMED {
            continue;
        }
        let records = events.drain(None).into_iter();
        let times = records.filter_map(|(time, event)| matches!(event, Event::Sample(_)).then_some(time));
        gaps.extend(times.collect::<Vec<_>>().windows(2).map(|pair| pair[1] - pair[0]));
    }
    let middle = gaps.len() / 2;
    let none = || Error::from("breakpoints do not fire on this machine: omit --exact");
    let hits = events.executions();
    if hits < (ROUNDS * READS) as u64 || gaps.is_empty() {
        return Err(none());
    }
    Ok(*gaps.select_nth_unstable(middle).1)
}

//! Breakpoints on the vDSO's functions: where they are, and whether this host can have them.

#![allow(unsafe_code, reason = "a signal handler is installed")]

use std::hint::black_box;
use std::process::id;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::time::ClockId;

use crate::Result;
use crate::clock_read::reads_clock;
use crate::perf::{Events, Plan, explain};
use crate::space::{Files, Space};

/// The breakpoints of a CPU.
const BREAKPOINTS: usize = 4;

/// Where reads are counted.
pub(crate) fn addresses(space: &mut Space) -> Result<Vec<u64>> {
    let symbols = space.vdso_symbols().ok_or("it has no vDSO, where reads are counted: omit --exact")?;
    let mut functions: Vec<_> = symbols.into_iter().filter(|(name, _)| reads_clock(name)).collect();
    // A 32-bit vDSO has more than four. A resolution is read seldom.
    functions.sort_by_key(|(name, _)| name.contains("clock_getres"));
    let addresses: Vec<_> = functions.into_iter().map(|(_, address)| address).take(BREAKPOINTS).collect();
    if addresses.is_empty() { Err("its vDSO has no functions: omit --exact".into()) } else { Ok(addresses) }
}

/// How often this program hits its own breakpoint before another process does.
const ROUNDS: u64 = 100;
const READS: u64 = 1000;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Disables all events of this thread, because a breakpoint that is never named would be hit again
/// and again.
extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: this operation takes no argument.
    unsafe { libc::prctl(libc::PR_TASK_PERF_EVENTS_DISABLE) };
}

/// Hits a breakpoint 100,000 times, once in a process, and returns the nanoseconds of one.
///
/// # Errors
/// If one raises SIGTRAP, which ends a process.
pub(crate) fn test_host() -> Result<u64> {
    static TRAP_NS: OnceLock<u64> = OnceLock::new();
    if let Some(nanos) = TRAP_NS.get() {
        return Ok(*nanos);
    }
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
    tested.map(|nanos| *TRAP_NS.get_or_init(|| nanos))
}

fn hit() -> Result<u64> {
    let addresses = addresses(&mut Space::of(id(), Files::default())?)?;
    let plan = Plan { pid: Some(id()), cgroup: None, follows: false, period: 0, addresses: &addresses };
    let mut events = Events::open(&plan).map_err(|error| explain(&error))?;
    // Later rounds find the buffers full, which costs less. Others use the CPU meanwhile.
    let cpu_time = || ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from);
    let (start, mut first) = (cpu_time()?, None);
    for _ in 0..ROUNDS {
        for _ in 0..READS {
            black_box(Instant::now());
        }
        first = first.or(Some(cpu_time()?.saturating_sub(start)));
    }
    match first {
        Some(first) if events.executions() >= ROUNDS * READS => Ok(first.as_nanos() as u64 / READS),
        _ => Err("breakpoints do not fire on this machine: omit --exact".into()),
    }
}

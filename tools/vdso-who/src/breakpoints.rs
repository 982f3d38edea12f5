//! Breakpoints on the vDSO's functions: where they are, and whether this host can have them.

#![allow(unsafe_code, reason = "a process is forked")]

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::time::ClockId;
use nix::unistd::{ForkResult, fork};

use crate::clock_read::reads_clock;
use crate::guard::wait_for;
use crate::perf::{Events, Plan, explain};
use crate::space::{Files, Space};
use crate::{Result, not_started};

/// The breakpoints of a CPU.
const BREAKPOINTS: usize = 4;

/// Returns the addresses at which reads of a process are counted.
pub(crate) fn addresses(pid: u32) -> Result<Vec<u64>> {
    let lacks = |what: &str| format!("{what}: omit --exact");
    let symbols = Space::of(pid, Files::default())?.vdso_symbols();
    let symbols = symbols.ok_or_else(|| lacks("it has no vDSO, where reads are counted"))?;
    let mut functions: Vec<_> = symbols
        .into_iter()
        .filter(|(name, _)| reads_clock(name))
        .collect();
    // A 32-bit vDSO has more than four. A resolution is read seldom.
    functions.sort_by_key(|(name, _)| name.contains("clock_getres"));
    let addresses: Vec<_> = functions
        .into_iter()
        .map(|(_, address)| address)
        .take(BREAKPOINTS)
        .collect();
    if addresses.is_empty() {
        Err(lacks("its vDSO has no functions").into())
    } else {
        Ok(addresses)
    }
}

/// How often a child of this program hits a breakpoint before another process may.
const ROUNDS: u64 = 100;
const READS: u64 = 1000;

/// Hits a breakpoint 100,000 times in a forked child, which SIGTRAP may end, and returns the
/// nanoseconds of one.
///
/// # Errors
/// If one raises SIGTRAP, which ends a process.
pub(crate) fn test_host() -> Result<u64> {
    let (gate, end) = UnixStream::pair()?;
    // SAFETY: the child makes system calls and reads clocks until it ends. It allocates nothing and
    // takes no lock, which another thread may have had.
    let ForkResult::Parent { child } = unsafe { fork() }.map_err(not_started)? else {
        drop(gate);
        hit(end)
    };
    drop(end);
    let counted = count(child.as_raw() as u32, gate);
    let (_, status) = wait_for(child.as_raw(), 0)?;
    let lacks = |what: &str| Err(format!("{what}: omit --exact").into());
    match counted? {
        _ if status.signal() == Some(libc::SIGTRAP) => lacks(
            "a breakpoint raised SIGTRAP on this host, as KVM without the fix of CVE-2025-21839 does. It would end a \
             process",
        ),
        Some(nanos) => Ok(nanos),
        None => lacks("breakpoints do not fire on this machine"),
    }
}

/// Reads the clock in the child. Later rounds find the buffers full, which costs less, so the first
/// one is timed: by its CPU time, because others use the CPU meanwhile.
fn hit(mut end: UnixStream) -> ! {
    // SIGTRAP would write a core dump.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let cpu_time = || {
        ClockId::CLOCK_THREAD_CPUTIME_ID
            .now()
            .map_or(Duration::ZERO, Duration::from)
    };
    let (mut byte, mut first) = ([0], None);
    if end.read_exact(&mut byte).is_ok() {
        let start = cpu_time();
        for _ in 0..ROUNDS {
            for _ in 0..READS {
                black_box(Instant::now());
            }
            first = first.or(Some(cpu_time().saturating_sub(start)));
        }
        let nanos = first.map_or(0, |first| first.as_nanos() as u64) / READS;
        // The other end closes when the executions were read.
        let _ = end
            .write_all(&nanos.to_ne_bytes())
            .and_then(|()| end.read_exact(&mut byte));
    }
    // SAFETY: this is a system call.
    unsafe { libc::_exit(0) }
}

/// Lets the child go on. Returns what a read costs there, if each hit a breakpoint.
fn count(pid: u32, mut gate: UnixStream) -> Result<Option<u64>> {
    // What sampling lacks here, too, is no reason to omit --exact.
    let sampling = Plan {
        pids: &[pid],
        cgroup: None,
        follows: false,
        period: 1_000_000,
        addresses: &[],
    };
    Events::open(&sampling).map_err(|error| explain(&error, &sampling))?;
    let plan = Plan {
        period: 0,
        addresses: &addresses(pid)?,
        ..sampling
    };
    let mut events = Events::open(&plan).map_err(|error| explain(&error, &plan))?;
    gate.write_all(&[0])?;
    let mut nanos = [0; 8];
    // It fails if the child was ended.
    let has_ended = gate.read_exact(&mut nanos).is_err();
    let is_counted = !has_ended && events.executions() >= ROUNDS * READS;
    Ok(is_counted.then_some(u64::from_ne_bytes(nanos)))
}

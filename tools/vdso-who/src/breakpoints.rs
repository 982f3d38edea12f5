//! Breakpoints on the vDSO's functions: where they are set, and whether they work on this host.

#![allow(unsafe_code, reason = "a process is forked")]

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::time::ClockId;
use nix::unistd::{ForkResult, fork};

use crate::address_space::{AddressSpace, Files};
use crate::clock_read::reads_clock;
use crate::error::{Error, Result, not_started};
use crate::guard::wait_for;
use crate::perf::{Events, Plan, explain};

/// The number of breakpoints that a CPU has.
const BREAKPOINTS: usize = 4;

/// Returns the addresses at which reads of a process are counted.
pub(crate) fn addresses(pid: u32) -> Result<Vec<u64>> {
    let space = AddressSpace::of(pid, Files::default())?;
    let Some(mut functions) = space.vdso_symbols() else {
        return Err(omit(
            "the process has no vDSO, so its reads cannot be counted",
        ));
    };
    functions.retain(|(name, _)| reads_clock(name));
    if functions.is_empty() {
        return Err(omit(
            "the vDSO of the process has no functions that read a clock",
        ));
    }
    // Only four functions can have a breakpoint, but a 32-bit vDSO can have more than four
    // functions that read clocks. Programs seldom read the resolution of a clock, so the functions
    // that return the resolution come last, and are left out first.
    functions.sort_by_key(|(name, _)| name.contains("clock_getres"));
    functions.truncate(BREAKPOINTS);
    Ok(functions.into_iter().map(|(_, address)| address).collect())
}

/// Returns the error for a machine or a process whose reads cannot be counted. `what` is the
/// reason. The error advises the user to omit --exact.
fn omit(what: &str) -> Error {
    format!("{what}: omit --exact").into()
}

/// The number of rounds in the test of this host, and the number of clock reads in each round. A
/// child of this program makes these reads before the command gets breakpoints. Even if none of
/// these reads raises SIGTRAP, a breakpoint of the command can raise SIGTRAP later. The thread that
/// traces the command ([`Guard`](crate::guard::Guard)) then swallows the signal.
const ROUNDS: u64 = 10;
const READS: u64 = 1000;

/// Tests whether breakpoints work on this host. A forked child hits a breakpoint 10,000 times. The
/// test needs a child, because SIGTRAP may end the process that hits the breakpoint. Returns how
/// many nanoseconds a counted read takes.
///
/// # Errors
/// If a breakpoint raises SIGTRAP, which would end a process, or if breakpoints do not fire.
pub(crate) fn test_host() -> Result<u64> {
    let (gate, end) = UnixStream::pair()?;
    // SAFETY: the child makes system calls and reads clocks until it ends. It allocates nothing and
    // takes no lock, because another thread may have held that lock during the fork.
    let ForkResult::Parent { child } = unsafe { fork() }.map_err(not_started)? else {
        drop(gate);
        hit(end)
    };
    drop(end);
    let counted = count(child.as_raw() as u32, gate);
    let (_, status) = wait_for(child.as_raw(), 0)?;
    let counted = counted?;
    if status.signal() == Some(libc::SIGTRAP) {
        return Err(omit(
            "a breakpoint raised SIGTRAP on this host, as under KVM without the fix for CVE-2025-21839. That signal \
             would end a process",
        ));
    }
    counted.ok_or_else(|| omit("breakpoints do not fire on this machine"))
}

/// Reads the clock in the child, once the parent has set the breakpoints.
fn hit(mut end: UnixStream) -> ! {
    // Without this limit, SIGTRAP could write a core dump.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut byte = [0];
    if end.read_exact(&mut byte).is_ok() {
        let nanos = first_round() / READS;
        for _ in 1..ROUNDS {
            read_clock();
        }
        // The parent reads how often the breakpoints were hit, and then closes its end of the
        // socket pair. The child must not end before the parent has read these numbers, so it waits
        // until the socket is closed.
        if end.write_all(&nanos.to_ne_bytes()).is_ok() {
            let _ = end.read_exact(&mut byte);
        }
    }
    // SAFETY: this is a system call.
    unsafe { libc::_exit(0) }
}

/// Returns the CPU time of the first round, in nanoseconds. Later rounds cost less, because the
/// buffers are full by then and no more records are written. CPU time is measured, not elapsed
/// time, because other programs may use the CPU meanwhile.
fn first_round() -> u64 {
    let start = cpu_time();
    read_clock();
    cpu_time().saturating_sub(start).as_nanos() as u64
}

fn cpu_time() -> Duration {
    match ClockId::CLOCK_THREAD_CPUTIME_ID.now() {
        Ok(time) => time.into(),
        Err(_) => Duration::ZERO,
    }
}

fn read_clock() {
    for _ in 0..READS {
        black_box(Instant::now());
    }
}

/// Sets breakpoints in the child and lets it continue. Returns the cost of a read in the child, if
/// each read hit a breakpoint.
fn count(pid: u32, mut gate: UnixStream) -> Result<Option<u64>> {
    let sampling = Plan {
        pids: &[pid],
        cgroup: None,
        follows: false,
        period: 1_000_000,
        addresses: &[],
    };
    // Events for sampling are opened first. If even these are denied, the error must not advise the
    // user to omit --exact, because that would not help.
    Events::open(&sampling).map_err(|error| explain(&error, &sampling))?;
    let plan = Plan {
        period: 0,
        addresses: &addresses(pid)?,
        ..sampling
    };
    let mut events = Events::open(&plan).map_err(|error| explain(&error, &plan))?;
    gate.write_all(&[0])?;
    let mut nanos = [0; 8];
    // This fails if SIGTRAP has ended the child.
    let has_ended = gate.read_exact(&mut nanos).is_err();
    if has_ended || events.executions() < ROUNDS * READS {
        return Ok(None);
    }
    Ok(Some(u64::from_ne_bytes(nanos)))
}

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

use crate::address_space::{AddressSpace, Files};
use crate::clock_read::reads_clock;
use crate::error::{Error, Result, not_started};
use crate::guard::wait_for;
use crate::perf::{Events, Plan, explain};

/// The breakpoints of a CPU.
const BREAKPOINTS: usize = 4;

/// Returns the addresses at which reads of a process are counted.
pub(crate) fn addresses(pid: u32) -> Result<Vec<u64>> {
    let space = AddressSpace::of(pid, Files::default())?;
    let Some(mut functions) = space.vdso_symbols() else {
        return Err(omit("it has no vDSO, where reads are counted"));
    };
    functions.retain(|(name, _)| reads_clock(name));
    if functions.is_empty() {
        return Err(omit("its vDSO has no functions"));
    }
    // A 32-bit vDSO has more than four. A resolution is read seldom.
    functions.sort_by_key(|(name, _)| name.contains("clock_getres"));
    functions.truncate(BREAKPOINTS);
    Ok(functions.into_iter().map(|(_, address)| address).collect())
}

/// Returns the error of a machine that cannot count reads.
fn omit(what: &str) -> Error {
    format!("{what}: omit --exact").into()
}

/// How often a child of this program hits a breakpoint before another process does. A guard
/// swallows the signals that come later.
const ROUNDS: u64 = 10;
const READS: u64 = 1000;

/// Hits a breakpoint 10,000 times in a forked child, which SIGTRAP may end, and returns the
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
    let counted = counted?;
    if status.signal() == Some(libc::SIGTRAP) {
        return Err(omit(
            "a breakpoint raised SIGTRAP on this host, as KVM without the fix of CVE-2025-21839 does. It would end a \
             process",
        ));
    }
    counted.ok_or_else(|| omit("breakpoints do not fire on this machine"))
}

/// Reads the clock in the child.
fn hit(mut end: UnixStream) -> ! {
    // SIGTRAP would write a core dump.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let mut byte = [0];
    if end.read_exact(&mut byte).is_ok() {
        let nanos = first_round() / READS;
        for _ in 1..ROUNDS {
            read_clock();
        }
        // The other end closes when the executions were read.
        if end.write_all(&nanos.to_ne_bytes()).is_ok() {
            let _ = end.read_exact(&mut byte);
        }
    }
    // SAFETY: this is a system call.
    unsafe { libc::_exit(0) }
}

/// Returns the nanoseconds of the first round. Later ones find the buffers full, which costs less.
/// Other programs use the CPU meanwhile, so its CPU time counts.
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

/// Lets the child continue. Returns the cost of a read there, if each read hit a breakpoint.
fn count(pid: u32, mut gate: UnixStream) -> Result<Option<u64>> {
    let sampling = Plan {
        pids: &[pid],
        cgroup: None,
        follows: false,
        period: 1_000_000,
        addresses: &[],
    };
    // If sampling is denied as well, omitting --exact would not help.
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
    if has_ended || events.executions() < ROUNDS * READS {
        return Ok(None);
    }
    Ok(Some(u64::from_ne_bytes(nanos)))
}

//! Files of /proc.

use std::path::Path;
use std::time::Duration;
use std::{fs, io, process};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::{Error, Result};

/// Reads a file of /proc/PID. Names of programs and files need not be UTF-8.
pub(crate) fn text(pid: u32, file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}"))?).into_owned())
}

/// # Errors
/// If /proc has the processes of another PID namespace. There other processes have the numbers that
/// perf_event_open(2) and fork(2) use here.
pub(crate) fn check_namespace() -> Result<()> {
    match fs::read_link("/proc/self") {
        Ok(own) if own != Path::new(&process::id().to_string()) => {
            Err("/proc is that of another PID namespace: run vdso-who by `unshare --mount-proc` as root"
                .into())
        }
        _ => Ok(()),
    }
}

/// Returns the value of a line of /proc/PID/status.
pub(crate) fn status(pid: u32, name: &str) -> Option<String> {
    let status = text(pid, "status").ok()?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Returns those of these signals that this process ignores.
pub(crate) fn ignored(signals: [Signal; 2]) -> Vec<Signal> {
    let mask = status(process::id(), "SigIgn").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    let is_ignored = |signal: &Signal| mask.unwrap_or(0) >> (*signal as i32 - 1) & 1 == 1;
    signals.into_iter().filter(is_ignored).collect()
}

pub(crate) fn name(pid: u32) -> String {
    text(pid, "comm").unwrap_or_default().trim_end().to_owned()
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    Ok(names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Returns a thread that still has the process's memory. After the main thread has ended, its
/// auxiliary vector is empty or, with a newer kernel, an error.
pub(crate) fn living_thread(pid: u32) -> io::Result<u32> {
    let vector = |thread: u32| fs::read(format!("/proc/{thread}/auxv"));
    match vector(pid) {
        Ok(vector) if !vector.is_empty() => return Ok(pid),
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
        _ => {}
    }
    let mut threads = threads(pid)?.into_iter();
    let living = threads.find(|thread| vector(*thread).is_ok_and(|vector| !vector.is_empty()));
    living.ok_or(Errno::ESRCH.into())
}

/// Explains why a process cannot be read.
pub(crate) fn explain(pid: u32, error: &io::Error) -> Error {
    let text = match error.raw_os_error() {
        Some(libc::ENOENT) if fs::metadata("/proc/self").is_err() => format!(
            "process {pid}: there is no /proc of this PID namespace: run vdso-who by `unshare --mount-proc` as root"
        ),
        Some(libc::ENOENT | libc::ESRCH) => no_process(pid),
        Some(libc::EACCES | libc::EPERM) => format!(
            "process {pid}: its memory may not be read: run as root with CAP_SYS_PTRACE (`docker run --cap-add \
             SYS_PTRACE`, or on the host)"
        ),
        _ => format!("process {pid}: {error}"),
    };
    text.into()
}

pub(crate) fn no_process(pid: u32) -> String {
    format!(
        "process {pid}: there is no such process, it ended, it is a kernel thread, or /proc hides it (hidepid)"
    )
}

/// Returns the CPU time of a process, `with_children` that it waited for. The time of children, and
/// the time `in_user_space`, have a precision of 20 ms.
pub(crate) fn cpu_time(pid: u32, with_children: bool, in_user_space: bool) -> Option<Duration> {
    let clock = || {
        clock_getcpuclockid(Pid::from_raw(pid as i32))
            .and_then(ClockId::now)
            .ok()
    };
    if !with_children && !in_user_space {
        return clock().map(Duration::from);
    }
    let stat = text(pid, "stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    // utime, stime, cutime and cstime are the fields 14 to 17; the state is field 3.
    let field = |index: usize| {
        fields
            .split_whitespace()
            .nth(index - 3)?
            .parse::<u64>()
            .ok()
    };
    let own = if in_user_space {
        of_ticks(field(14)?)
    } else {
        clock()?.into()
    };
    let system = if in_user_space { 0 } else { field(17)? };
    let children = if with_children {
        of_ticks(field(16)? + system)
    } else {
        Duration::ZERO
    };
    Some(own + children)
}

/// Returns a process and its descendants.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let with_parent = |pid: u32| Some((pid, status(pid, "PPid")?.parse::<u32>().ok()?));
    descendants(pid, processes.filter_map(with_parent).collect())
}

/// Returns a process and its descendants, given each process's parent. These were not read at one
/// moment, so a number that was used again can be its own ancestor.
fn descendants(pid: u32, mut parents: Vec<(u32, u32)>) -> Vec<u32> {
    let (mut family, mut next) = (vec![pid], 0);
    while let Some(parent) = family.get(next).copied() {
        let (children, others): (Vec<_>, _) =
            parents.into_iter().partition(|(_, of)| *of == parent);
        family.extend(children.into_iter().map(|(child, _)| child));
        (parents, next) = (others, next + 1);
    }
    family
}

/// Returns the CPU time of all processes.
pub(crate) fn cpu_time_of_host() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let times = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .map(|field| field.parse().unwrap_or(0));
    let times: Vec<u64> = times.take(7).collect();
    // user, nice, system, idle, iowait, irq, softirq.
    Some(of_ticks(
        [0, 1, 2, 5, 6]
            .iter()
            .filter_map(|index| times.get(*index))
            .sum(),
    ))
}

/// Ticks of `USER_HZ`, which is 100 on each architecture of this program.
fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(10 * ticks)
}

#[cfg(test)]
mod tests {
    /// Lists a process whose number was used again by one of its own children.
    #[test]
    fn the_descendants_end_also_if_a_process_is_its_own_ancestor() {
        let parents = [(1, 0), (2, 1), (5, 2), (3, 5), (2, 5), (9, 1)];
        assert_eq!(super::descendants(2, parents.into()), [2, 5, 3, 2]);
    }
}

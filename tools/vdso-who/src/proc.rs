//! Files of /proc.

use std::path::Path;
use std::time::Duration;
use std::{fs, io, process};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::error::{Error, Result};

/// Reads a file of /proc/PID. Replaces bytes that are not UTF-8, because the names of programs and
/// files need not be UTF-8.
pub(crate) fn text(pid: u32, file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}"))?).into_owned())
}

/// Returns the target of a symbolic link. The target is empty if the link cannot be read.
pub(crate) fn link(path: &str) -> String {
    match fs::read_link(path) {
        Ok(target) => target.to_string_lossy().into_owned(),
        Err(_) => String::new(),
    }
}

/// Checks that /proc shows the processes of this program's PID namespace.
///
/// # Errors
/// If /proc shows the processes of another PID namespace. In such a /proc, an id that
/// perf_event_open(2) or fork(2) uses in this program stands for a different process.
pub(crate) fn check_namespace() -> Result<()> {
    let Ok(own) = fs::read_link("/proc/self") else {
        return Ok(());
    };
    if own == Path::new(&process::id().to_string()) {
        return Ok(());
    }
    Err(
        "/proc belongs to another PID namespace: run vdso-who with `unshare --mount-proc` as root"
            .into(),
    )
}

/// Returns the value of a field of /proc/PID/status.
pub(crate) fn status(pid: u32, name: &str) -> Option<String> {
    let status = text(pid, "status").ok()?;
    for line in status.lines() {
        if let Some((key, value)) = line.split_once(':') {
            if key == name {
                return Some(value.trim().to_owned());
            }
        }
    }
    None
}

/// Returns the signals from this list that this process ignores.
pub(crate) fn ignored(signals: &[Signal]) -> Vec<Signal> {
    let digits = status(process::id(), "SigIgn").unwrap_or_default();
    let mask = u64::from_str_radix(&digits, 16).unwrap_or(0);
    let mut ignored = signals.to_vec();
    ignored.retain(|signal| mask >> (*signal as i32 - 1) & 1 == 1);
    ignored
}

pub(crate) fn name(pid: u32) -> String {
    text(pid, "comm").unwrap_or_default().trim_end().to_owned()
}

/// Returns the name of a thread, if it still runs.
pub(crate) fn thread_name(pid: u32, thread: u32) -> Option<String> {
    let name = text(pid, &format!("task/{thread}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Returns the entries of a directory of /proc whose names are numbers.
fn numbers(directory: &str) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if let Ok(number) = name.to_string_lossy().parse() {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// Returns a thread that still has the process's memory.
///
/// A main thread that has ended keeps its id, but it has no memory any more. Its auxiliary vector
/// in /proc shows that. If root reads it, the vector is empty or, with a newer kernel, the read
/// fails with ESRCH. If another user reads it, the read fails with EACCES, because the files of a
/// thread without memory belong to root.
pub(crate) fn living_thread(pid: u32) -> io::Result<u32> {
    if has_memory(pid)? {
        return Ok(pid);
    }
    for thread in threads(pid)? {
        if has_memory(thread)? {
            return Ok(thread);
        }
    }
    Err(Errno::ESRCH.into())
}

/// Returns whether a thread exists and has memory that this user may read.
///
/// # Errors
/// If the process belongs to another user, or if no more files can be opened.
fn has_memory(thread: u32) -> io::Result<bool> {
    match fs::read(format!("/proc/{thread}/auxv")) {
        Ok(vector) => Ok(!vector.is_empty()),
        // The thread can have ended after the directory of threads was read.
        Err(error) if means_that_it_ended(&error) => Ok(false),
        Err(_) if has_ended(thread) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether a thread has ended: it is a zombie that its parent has not waited for yet (`Z`),
/// or it is being removed (`X`). The state is in /proc/PID/stat, which every user can read. That
/// file begins with the id, the name in parentheses, and the state.
fn has_ended(thread: u32) -> bool {
    let stat = text(thread, "stat").unwrap_or_default();
    // The process chooses its name, which can itself contain `) `.
    match stat.rsplit_once(") ") {
        Some((_, fields)) => fields.starts_with(['Z', 'X']),
        None => false,
    }
}

/// Returns whether an error of a file of /proc/PID means that the process or the thread does not
/// exist any more.
pub(crate) fn means_that_it_ended(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

/// Explains why a process cannot be read.
pub(crate) fn explain(pid: u32, error: &io::Error) -> Error {
    let text = match error.raw_os_error() {
        Some(libc::ENOENT) if fs::metadata("/proc/self").is_err() => format!(
            "cannot read process {pid}: there is no /proc of this PID namespace. Run vdso-who with `unshare \
             --mount-proc` as root"
        ),
        Some(libc::ENOENT | libc::ESRCH) => no_process(pid),
        Some(libc::EACCES | libc::EPERM) => format!(
            "cannot read the memory of process {pid}, which belongs to {}: run as root with CAP_SYS_PTRACE (`docker \
             run --cap-add SYS_PTRACE`, or on the host)",
            owner(pid)
        ),
        _ => format!("cannot read process {pid}: {error}"),
    };
    text.into()
}

/// Returns the name of the user who owns a process, or the user id.
pub(crate) fn owner(pid: u32) -> String {
    let users = status(pid, "Uid").unwrap_or_default();
    // The fields are the real user id, the effective one, and two others.
    let Some(user) = users.split_whitespace().nth(1) else {
        return "another user".into();
    };
    let names = fs::read_to_string("/etc/passwd").unwrap_or_default();
    for line in names.lines() {
        let mut fields = line.split(':');
        let name = fields.next().unwrap_or_default();
        if fields.nth(1) == Some(user) {
            return name.to_owned();
        }
    }
    format!("user {user}")
}

pub(crate) fn no_process(pid: u32) -> String {
    format!(
        "cannot read process {pid}: there is no such process, it is a kernel thread, or /proc hides it (hidepid): check \
         the id with `ps -p {pid}` as root"
    )
}

/// Returns the CPU time of a process. With `with_children`, the time of the children that it has
/// waited for is included. With `in_user_space`, the time in the kernel is left out. With either of
/// the two, the result is precise only to 20 ms.
pub(crate) fn cpu_time(pid: u32, with_children: bool, in_user_space: bool) -> Option<Duration> {
    if !with_children && !in_user_space {
        return own_cpu_time(pid);
    }
    let stat = text(pid, "stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    // utime, stime, cutime and cstime are fields 14 to 17. The list begins with field 3, the state.
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let mut time = if in_user_space {
        of_ticks(field(14)?)
    } else {
        own_cpu_time(pid)?
    };
    if with_children {
        time += of_ticks(field(16)?);
    }
    if with_children && !in_user_space {
        time += of_ticks(field(17)?);
    }
    Some(time)
}

fn own_cpu_time(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid as i32)).ok()?;
    Some(ClockId::now(clock).ok()?.into())
}

/// Returns how long a process has existed.
pub(crate) fn age(pid: u32) -> Option<Duration> {
    let stat = text(pid, "stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    // starttime is field 22. The list begins with field 3, the state.
    let ticks = fields.split_whitespace().nth(22 - 3)?;
    let now: Duration = ClockId::CLOCK_BOOTTIME.now().ok()?.into();
    Some(now.saturating_sub(of_ticks(ticks.parse().ok()?)))
}

/// Returns a process and its descendants.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for process in numbers("/proc").unwrap_or_default() {
        let parent = status(process, "PPid").unwrap_or_default();
        if let Ok(parent) = parent.parse() {
            parents.push((process, parent));
        }
    }
    descendants(pid, parents)
}

/// Returns a process and its descendants, given each process's parent. The parents were not all
/// read at the same moment, so a process whose id was reused meanwhile can be its own ancestor.
fn descendants(pid: u32, mut parents: Vec<(u32, u32)>) -> Vec<u32> {
    let mut family = vec![pid];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        parents.retain(|(child, of)| {
            let is_child = *of == parent;
            if is_child {
                family.push(*child);
            }
            !is_child
        });
        next += 1;
    }
    family
}

/// Returns the boot parameter that switches the vDSO off, if the kernel was booted with one.
pub(crate) fn vdso_parameter() -> Option<&'static str> {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let mut words = line.split_whitespace();
    words.find_map(|word| match word {
        "vdso=0" => Some("vdso=0"),
        "vdso32=0" => Some("vdso32=0"),
        _ => None,
    })
}

/// Returns the CPU time of all processes.
pub(crate) fn cpu_time_of_host() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let mut fields = stat.lines().next()?.split_whitespace();
    fields.next()?;
    let mut field = || -> Option<u64> { fields.next()?.parse().ok() };
    let user = field()?;
    let nice = field()?;
    let system = field()?;
    let _idle = field()?;
    let _iowait = field()?;
    let irq = field().unwrap_or(0);
    let softirq = field().unwrap_or(0);
    Some(of_ticks(user + nice + system + irq + softirq))
}

/// Converts ticks of `USER_HZ`, which is 100 on each architecture that this program supports.
fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(10 * ticks)
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::{Uid, setuid};

    use crate::common::{child, has_proc};

    /// Lists a process whose id was reused by one of its own descendants.
    #[test]
    fn the_descendants_end_also_if_a_process_is_its_own_ancestor() {
        let parents = [(1, 0), (2, 1), (5, 2), (3, 5), (2, 5), (9, 1)];
        assert_eq!(super::descendants(2, parents.into()), [2, 5, 3, 2]);
    }

    /// Looks for a thread as if it had ended after its directory was listed. No thread has this id.
    #[test]
    fn a_thread_that_is_gone_has_no_memory() {
        if has_proc() {
            assert!(!super::has_memory((1 << 22) + 1).unwrap());
        }
    }

    /// As a user who is not root, looks at a zombie, whose files in /proc belong to root.
    #[test]
    fn a_zombie_has_ended_and_is_not_denied() {
        if !has_proc() {
            return;
        }
        child::forked(|| {
            if Uid::effective().is_root() {
                setuid(Uid::from_raw(65534)).unwrap();
            }
            let zombie = child::fork(|| true);
            let is_over = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            waitid(Id::Pid(zombie), is_over).unwrap();
            let error = super::living_thread(zombie.as_raw() as u32).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
        });
    }
}

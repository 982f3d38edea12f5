//! Files of /proc.

use std::fs;
use std::io;

use vdso_doctor::ProcessError;

/// A file of /proc/PID. Names of programs and files need not be UTF-8.
pub(crate) fn text(pid: u32, file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}"))?).into_owned())
}

/// The value of a line of /proc/PID/status.
pub(crate) fn status(pid: u32, name: &str) -> Option<String> {
    let status = text(pid, "status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// The threads of a process, sorted.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let names = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut threads: Vec<_> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    Ok(threads)
}

/// A thread of a process that has its memory. A main thread that ended has none.
pub(crate) fn living_thread(pid: u32) -> Result<u32, ProcessError> {
    // A main thread that ended has an empty vector or, with a newer kernel, an error.
    let lives = |thread: &u32| fs::read(format!("/proc/{thread}/auxv")).is_ok_and(|auxv| !auxv.is_empty());
    if fs::read(format!("/proc/{pid}/auxv"))
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    {
        return Err(ProcessError::Denied);
    }
    threads(pid)?.into_iter().find(lives).ok_or(ProcessError::Ended)
}

//! The service, the container or the pod of a process, from its cgroup.

use std::cmp::Reverse;
use std::io;

use crate::proc;

/// Returns the unit of a running process, if it is in one.
///
/// # Errors
/// If the process has ended, or if its cgroup cannot be read.
pub(crate) fn of(pid: u32) -> io::Result<Option<String>> {
    let cgroups = proc::text(pid, "cgroup")?;
    Ok(named(&cgroups))
}

/// Returns the unit that the content of /proc/PID/cgroup names. Its lines are `0::PATH` or
/// `N:NAME:PATH`.
fn named(cgroups: &str) -> Option<String> {
    let mut paths = Vec::new();
    for line in cgroups.lines() {
        paths.extend(line.splitn(3, ':').nth(2));
    }
    // With cgroup v1, each controller can have a path of its own, and not every path names a unit.
    // The longest path is tried first, because it is the most specific one.
    paths.sort_by_key(|path| Reverse(path.len()));
    paths.into_iter().find_map(named_by)
}

/// Returns the unit that the path of a cgroup names.
fn named_by(path: &str) -> Option<String> {
    let mut parts: Vec<_> = path.split('/').collect();
    parts.retain(|part| !part.is_empty() && *part != "..");
    let container = parts.iter().rev().find_map(|part| container(part));
    let pod = parts.iter().rev().find_map(|part| pod(part));
    match (pod, container) {
        (Some(pod), Some((_, id))) => Some(format!("pod {pod}, container {id}")),
        (Some(pod), None) => Some(format!("pod {pod}")),
        (None, Some((runtime, id))) => Some(format!("{runtime} {id}")),
        (None, None) => service(&parts),
    }
}

/// Returns the innermost service or scope of a path. For a user's unit, adds the user's service
/// manager, because the system or another user can have a unit with the same name.
fn service(parts: &[&str]) -> Option<String> {
    let is_unit = |part: &str| matches!(part.rsplit_once('.'), Some((_, "service" | "scope")));
    let unit = parts.iter().rev().find(|part| is_unit(part))?;
    match parts.iter().find(|part| part.starts_with("user@")) {
        Some(manager) if manager != unit => Some(format!("{unit} of {manager}")),
        _ => Some((*unit).to_owned()),
    }
}

/// Returns the runtime and the id of a container, if this part of a path names a container:
///
/// - `docker-ID.scope`: `docker`, and the id, shortened.
/// - `ID`: the word `container`, because the part does not name the runtime, and the id, shortened.
/// - `lxc.payload.NAME`: `lxc`, and the whole name.
fn container(part: &str) -> Option<(&str, &str)> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(("lxc", name));
    }
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (runtime, id) = name.rsplit_once('-').unwrap_or(("container", name));
    let is_number = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number {
        Some((runtime, &id[..12]))
    } else {
        None
    }
}

/// Returns the id of a pod, if this part of a path names one: `podID`, or
/// `kubepods-CLASS-podID.slice`, in which each `-` of the id is replaced with `_`.
fn pod(part: &str) -> Option<String> {
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let id = match name.rsplit_once("-pod") {
        Some((_, id)) => id,
        None => name.strip_prefix("pod")?,
    };
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-' || byte == b'_';
    if id.len() < 32 || !id.bytes().all(is_digit) {
        return None;
    }
    Some(id.replace('_', "-"))
}

#[cfg(test)]
#[path = "../tests/unit/unit.rs"]
mod tests;

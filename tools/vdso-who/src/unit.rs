//! The service, the container or the pod of a process, as its cgroup says.

use crate::proc;

/// Returns the unit of a process that runs, if it is in one.
pub(crate) fn of(pid: u32) -> Option<String> {
    named(&proc::text(pid, "cgroup").ok()?)
}

/// Returns the unit that a file `/proc/PID/cgroup` names. Lines are `0::PATH` or `N:NAME:PATH`.
fn named(cgroups: &str) -> Option<String> {
    let paths = cgroups
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2));
    // With cgroups of version 1 the controllers may have other paths: the longest says most.
    let path = paths.max_by_key(|path| path.len())?;
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "..")
        .collect();
    let container = parts.iter().rev().find_map(|part| container(part));
    let pod = parts.iter().rev().find_map(|part| pod(part));
    let is_unit = |part: &&&str| matches!(part.rsplit_once('.'), Some((_, "service" | "scope")));
    // A user's units can have the names of the system's, or of another user's.
    let manager = || parts.iter().find(|part| part.starts_with("user@"));
    let unit = || {
        let unit = parts.iter().rev().find(is_unit)?;
        let manager = manager().filter(|manager| *manager != unit);
        Some(manager.map_or_else(
            || (*unit).to_owned(),
            |manager| format!("{unit} of {manager}"),
        ))
    };
    match (pod, container) {
        (Some(pod), Some((_, id))) => Some(format!("pod {pod}, container {id}")),
        (Some(pod), None) => Some(format!("pod {pod}")),
        (None, Some((runtime, id))) => Some(format!("{runtime} {id}")),
        (None, None) => unit(),
    }
}

/// Returns the runtime and the short number of a container: `docker-NUMBER.scope`, or `NUMBER` in
/// the folder of its runtime.
fn container(part: &str) -> Option<(&str, &str)> {
    if let Some(name) = part.strip_prefix("lxc.payload.") {
        return Some(("lxc", name));
    }
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (runtime, id) = name.rsplit_once('-').unwrap_or(("container", name));
    let is_number = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| (runtime, &id[..12]))
}

/// Returns the number of a pod: `podNUMBER`, or `kubepods-CLASS-podNUMBER.slice`, where each `-` is
/// `_`.
fn pod(part: &str) -> Option<String> {
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let id = name
        .rsplit_once("-pod")
        .map_or_else(|| name.strip_prefix("pod"), |(_, id)| Some(id))?;
    let is_number = id.len() >= 32
        && id
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || b"-_".contains(&byte));
    is_number.then(|| id.replace('_', "-"))
}

#[cfg(test)]
#[path = "../tests/unit/unit.rs"]
mod tests;

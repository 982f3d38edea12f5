//! The reasons why events cannot be opened.

use std::process::id;
use std::{fs, io};

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::geteuid;

use super::Plan;
use crate::error::Error;
use crate::proc;

/// Explains why the events of a plan were not opened, and what to do.
pub(crate) fn explain(error: &io::Error, plan: &Plan<'_>) -> Error {
    let Some(number) = error.raw_os_error() else {
        return error.to_string().into();
    };
    let is_filtered = proc::status(id(), "Seccomp").as_deref() == Some("2");
    let text = match number {
        libc::EPERM | libc::EACCES | libc::ENOSYS if is_filtered => denied_by_filter(),
        libc::EPERM | libc::EACCES => denied(plan),
        libc::ESRCH if !plan.pids.is_empty() => proc::no_process(plan.pids[0]),
        libc::ENOSPC if plan.is_exact() => {
            "all breakpoints of the CPU are in use: end the debugger that uses them, or omit --exact".into()
        }
        // `inherit_thread` is new in Linux 5.13. Sampling works without it, but a breakpoint in a
        // child could end the child (see `Arguments::follows`).
        libc::EINVAL if plan.is_exact() => {
            "--exact needs Linux 5.13 or later, because an older kernel would also set the breakpoints in the command's \
             children: omit --exact".into()
        }
        libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT if plan.is_exact() => {
            "this machine has no breakpoints that can count reads: omit --exact".into()
        }
        // `Measurement::open` has checked that the directory is of cgroup v2.
        libc::ENOENT | libc::EBADF if plan.cgroup.is_some() => {
            "perf_event_open(2) cannot watch this cgroup, because the controller perf_event is in a hierarchy of cgroup \
             v1: use --pid with the main process of the service".into()
        }
        libc::ENOSYS | libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT => {
            "this kernel has no perf_event_open(2), as in gVisor and similar sandboxes: run vdso-who outside of the sandbox".into()
        }
        libc::EMFILE | libc::ENFILE => limited(),
        _ => format!("perf_event_open(2) failed: {error}"),
    };
    text.into()
}

/// Explains why the kernel did not map the buffer of an event, if the reason is its limit on the
/// buffers of each user.
pub(super) fn explain_buffer(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    io::Error::other(
        "the buffers of this user's profilers fill kernel.perf_event_mlock_kb: end the other profilers, or run \
         vdso-who as root",
    )
}

/// Returns the error for having reached the limit on open files.
pub(crate) fn limited() -> String {
    let mut limit = String::new();
    if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
        limit = format!(", which is {soft},");
    }
    let mut advice = "raise the hard limit (`ulimit -Hn`, limits.conf(5))".to_owned();
    // Root already has only one event for each CPU.
    if !geteuid().is_root() {
        advice = format!(
            "run vdso-who as root or with CAP_PERFMON, so that it needs one file for each CPU, not one for each thread, or \
             {advice}"
        );
    }
    format!("the limit on open files{limit} is too low: {advice}")
}

/// Returns the value of kernel.perf_event_paranoid, if it can be read.
fn paranoid() -> Option<i32> {
    let value = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    value.trim().parse().ok()
}

fn is_paranoid() -> String {
    match paranoid() {
        Some(value) => format!("kernel.perf_event_paranoid is {value}"),
        None => "kernel.perf_event_paranoid cannot be read".into(),
    }
}

/// Returns the error for a denied perf_event_open(2). Its advice contains only changes that have
/// not been made on this machine yet.
fn denied(plan: &Plan<'_>) -> String {
    let mut advice = String::from("run vdso-who as root or with CAP_PERFMON and CAP_SYS_PTRACE");
    let value = paranoid().unwrap_or(4);
    if geteuid().is_root() {
        // Root of a container or of a user namespace has only the capabilities that it was given,
        // and cannot change the settings of the host.
        advice = "this container or user namespace lacks CAP_PERFMON: run vdso-who on the host, or with `docker run \
                  --pid=host --cap-add PERFMON --cap-add SYS_PTRACE`"
            .into();
    } else {
        if value > 2 {
            advice += ", or run `sudo sysctl kernel.perf_event_paranoid=2` for your own processes";
        }
        if value > 0 && plan.pids.is_empty() {
            advice += ", or run `sudo sysctl kernel.perf_event_paranoid=0` for --all";
        }
    }
    match plan.pids.first() {
        Some(pid) if value <= 2 => format!(
            "perf_event_open(2) is denied for process {pid}, which belongs to {}: {advice}",
            proc::owner(*pid)
        ),
        _ => format!("perf_event_open(2) is denied ({}): {advice}", is_paranoid()),
    }
}

fn denied_by_filter() -> String {
    format!(
        "perf_event_open(2) is denied, by a seccomp filter or because {}: run vdso-who outside of the container, or with \
         `docker run --cap-add PERFMON`. If the filter still denies the call, add `--security-opt \
         seccomp=unconfined`. That removes the whole filter, so do it for the measurement only",
        is_paranoid()
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const HOST: Plan<'_> = Plan {
        pids: &[],
        cgroup: None,
        follows: false,
        period: 1,
        addresses: &[],
    };

    /// Explains errors of perf_event_open(2) that this kernel need not return itself.
    #[test]
    fn an_error_is_explained_by_what_was_asked_for() {
        let here = File::open(".").unwrap();
        let exact = Plan {
            addresses: &[1],
            ..HOST
        };
        let of_cgroup = Plan {
            cgroup: Some(&here),
            ..HOST
        };
        for (number, plan, expected) in [
            (libc::EINVAL, &exact, "--exact needs Linux 5.13 or later"),
            (libc::EINVAL, &HOST, "perf_event_open(2) failed: "),
            (libc::ENOENT, &exact, "this machine has no breakpoints"),
            (libc::ENOENT, &of_cgroup, "a hierarchy of cgroup v1"),
            (libc::EBADF, &of_cgroup, "a hierarchy of cgroup v1"),
            (libc::ENOENT, &HOST, "this kernel has no perf_event_open(2)"),
            (libc::ENODEV, &of_cgroup, "no perf_event_open(2)"),
        ] {
            let error = explain(&io::Error::from_raw_os_error(number), plan).to_string();
            assert!(error.contains(expected), "{number}: {error}");
        }
    }

    /// Root is denied perf_event_open(2) only if it lacks the capability, so the advice to become
    /// root would not help.
    #[test]
    fn root_without_the_capability_is_not_told_to_become_root() {
        let error = denied(&HOST);
        let is_root = geteuid().is_root();
        assert_eq!(error.contains("lacks CAP_PERFMON"), is_root, "{error}");
        assert_eq!(error.contains("as root"), !is_root, "{error}");
    }
}

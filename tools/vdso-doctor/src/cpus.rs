//! The CPUs on which a thread may run.

#![allow(
    unsafe_code,
    reason = "sched_getaffinity(2) and sched_setaffinity(2) are called here"
)]

use std::ffi::c_ulong;

use nix::unistd::Pid;

/// A set of CPUs, in the kernel's format. The kernel rejects a set with room for fewer CPUs than
/// the machine can have. libc's `cpu_set_t` has room for 1024, so this set is larger: no kernel is
/// built for more than 8192.
type CpuSet = [c_ulong; CPUS / BITS];
const CPUS: usize = 8192;
const BITS: usize = c_ulong::BITS as usize;

/// Returns the CPUs on which the calling thread may run, or an empty list if the kernel does not
/// return them.
pub(crate) fn allowed() -> Vec<usize> {
    let mut set: CpuSet = [0; CPUS / BITS];
    // SAFETY: the kernel writes at most the bytes of the set.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) };
    if got != 0 {
        return Vec::new();
    }
    let is_set = |cpu: &usize| set[cpu / BITS] >> (cpu % BITS) & 1 == 1;
    (0..CPUS).filter(is_set).collect()
}

/// Restricts a thread to these CPUs. Returns whether the kernel allowed it.
pub(crate) fn restrict(thread: Pid, cpus: &[usize]) -> bool {
    let mut set: CpuSet = [0; CPUS / BITS];
    for cpu in cpus {
        set[cpu / BITS] |= 1 << (cpu % BITS);
    }
    // SAFETY: the kernel reads the bytes of the set.
    let got =
        unsafe { libc::sched_setaffinity(thread.as_raw(), size_of_val(&set), set.as_ptr().cast()) };
    got == 0
}

/// Formats CPUs as taskset(1) reads them: `0-2,5`.
pub(crate) fn list(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let mut words = Vec::new();
    for (first, last) in ranges {
        words.push(if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        });
    }
    words.join(",")
}

#[test]
fn a_list_of_cpus_is_one_that_taskset_reads() {
    for (cpus, expected) in [
        (&[][..], ""),
        (&[3], "3"),
        (&[0, 1, 2, 5], "0-2,5"),
        (&[0, 2, 3], "0,2-3"),
    ] {
        assert_eq!(list(cpus), expected);
    }
}

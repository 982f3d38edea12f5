//! The kernel's half of a call chain: which system call a thread is in.
//!
//! /proc/kallsyms contains the addresses of the kernel's functions. The names of the functions that
//! implement system calls differ by architecture and version. On x86-64, clock_gettime(2) is
//! `sys_clock_gettime` before Linux 4.17, and `__x64_sys_clock_gettime` since then. For i386
//! programs, gettimeofday(2) is `__ia32_compat_sys_gettimeofday`. For arm programs,
//! clock_gettime(2) is `__arm64_sys_clock_gettime32`. If the reader of the file has no privileges,
//! each address in it is 0.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

/// The activity of a thread in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A system call that reads a clock.
    Clock(Function),
    /// Another system call.
    Other,
    /// No system call: a page fault or an interrupt.
    Exception,
}

/// The system calls that read a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// clock_gettime or clock_getres, whose first argument is the clock's id.
    WithId,
    Gettimeofday,
    Time,
}

/// Prefixes of the names of the functions that implement system calls.
const PREFIXES: [&str; 13] = [
    "__x64_sys_",
    "__x64_compat_sys_",
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__arm64_sys_",
    "__arm64_compat_sys_",
    "__se_sys_",
    "__se_compat_sys_",
    "__do_sys_",
    "__do_compat_sys_",
    "compat_sys_",
    "SyS_",
    "sys_",
];

/// Prefixes of the names of the kernel's entry functions for exceptions and interrupts, and of the
/// function in which a new thread begins (`ret_from_fork`). A thread in one of these functions did
/// not enter the kernel through a system call.
const EXCEPTIONS: [&str; 8] = [
    "asm_exc_",
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_spurious_",
    "ret_from_fork",
    "el0_da",
    "el0_ia",
    "el0_interrupt",
];

type Functions = Vec<(Range<u64>, Call)>;

/// The functions of the kernel that identify the system call if they are in a call chain.
#[derive(Default)]
pub(super) struct KernelCalls {
    /// Sorted by address. Read when a sample first needs it.
    functions: OnceCell<Functions>,
}

impl KernelCalls {
    /// Reads the functions from the content of a file like /proc/kallsyms.
    #[cfg(test)]
    pub(super) fn of(file: &str) -> Self {
        Self {
            functions: functions(file.as_bytes()).into(),
        }
    }

    /// Returns what a thread is doing, given the kernel's half of its call chain. Returns `None` if
    /// that is not known: at the entry to the kernel, at the exit from it, or if /proc/kallsyms
    /// shows no addresses.
    pub(super) fn call(&self, chain: &[u64]) -> Option<Call> {
        if chain.is_empty() {
            return None;
        }
        call_in(self.functions.get_or_init(kallsyms), chain)
    }
}

fn kallsyms() -> Functions {
    match File::open("/proc/kallsyms") {
        Ok(file) => functions(BufReader::new(file)),
        Err(_) => Vec::new(),
    }
}

fn call_in(functions: &[(Range<u64>, Call)], chain: &[u64]) -> Option<Call> {
    let mut found = None;
    for address in chain {
        let next = functions.partition_point(|(range, _)| range.start <= *address);
        let Some((range, call)) = functions[..next].last() else {
            continue;
        };
        if range.contains(address) {
            // If an interrupt came during a system call, the chain contains functions of both. The
            // system call takes precedence.
            if *call != Call::Exception {
                return Some(*call);
            }
            found = Some(*call);
        }
    }
    found
}

/// Reads lines `ADDRESS TYPE NAME [MODULE]`. A function ends where the next one begins.
fn functions(file: impl BufRead) -> Functions {
    let mut functions = Vec::new();
    let mut last: Option<(u64, Call)> = None;
    for line in file.lines().map_while(Result::ok) {
        let Some((address, name)) = function(&line) else {
            continue;
        };
        if let Some((start, call)) = last {
            if address > start {
                functions.push((start..address, call));
                last = None;
            }
        }
        if let Some(call) = call_of(name) {
            last = Some((address, call));
        }
    }
    functions.sort_by_key(|(range, _)| range.start);
    functions
}

fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    if address == 0 || !is_code {
        return None;
    }
    Some((address, words.next()?))
}

/// Returns what a thread is doing if the kernel's function of this name is in its call chain.
/// Returns `None` if nothing follows from the name.
fn call_of(name: &str) -> Option<Call> {
    for prefix in PREFIXES {
        if let Some(call) = name.strip_prefix(prefix) {
            return Some(system_call(call));
        }
    }
    let is_exception = EXCEPTIONS.iter().any(|start| name.starts_with(start));
    if is_exception {
        return Some(Call::Exception);
    }
    None
}

/// Returns the call for the kernel's name of a system call.
fn system_call(name: &str) -> Call {
    match name {
        "clock_gettime"
        | "clock_gettime32"
        | "clock_getres"
        | "clock_getres32"
        | "clock_getres_time32" => Call::Clock(Function::WithId),
        "gettimeofday" => Call::Clock(Function::Gettimeofday),
        "time" | "time32" => Call::Clock(Function::Time),
        _ => Call::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines from the /proc/kallsyms of three kernels: Linux 6.1 on x86-64, Linux 4.14, and Linux
    /// 6.12 on arm64.
    const KALLSYMS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000080 T entry_SYSCALL_64
ffffffff81000c60 T asm_exc_page_fault
ffffffff81000c90 T asm_int80_emulation
ffffffff81377f20 T __pfx___x64_sys_times
ffffffff81377f30 T __x64_sys_times
ffffffff81418ef0 T __x64_sys_time
ffffffff81418f30 T __pfx___ia32_sys_time
ffffffff81418f40 T __ia32_compat_sys_gettimeofday
ffffffff81418f90 T SyS_clock_gettime
ffffffff81418f90 T sys_clock_gettime
ffffffff81419000 t __arm64_sys_clock_getres
ffffffff81419010 d clock_data
ffffffff81419020 t posix_get_monotonic_timespec
ffffffffc0000000 t a_driver [driver]
";

    const GETTIME: Option<Call> = Some(Call::Clock(Function::WithId));
    const GETTIMEOFDAY: Option<Call> = Some(Call::Clock(Function::Gettimeofday));
    const TIME: Option<Call> = Some(Call::Clock(Function::Time));

    #[test]
    fn the_kernels_functions_tell_which_call_reads_a_clock() {
        let functions = functions(KALLSYMS.as_bytes());
        for (chain, expected) in [
            (&[][..], None),
            (&[0xffff_ffff_8100_0081], None),
            (&[0xffff_ffff_8141_9021, 0xffff_ffff_8141_8f91], GETTIME),
            (&[0xffff_ffff_8141_9021], None),
            (&[0xffff_ffff_8141_8eff], TIME),
            (&[0xffff_ffff_8141_8f40], GETTIMEOFDAY),
            (&[0xffff_ffff_8141_901f], GETTIME),
            (&[0xffff_ffff_8137_7f30], Some(Call::Other)),
            (&[0xffff_ffff_8100_0c61], Some(Call::Exception)),
            (&[0xffff_ffff_8100_0c61, 0xffff_ffff_8141_8ef0], TIME),
            (&[0xffff_ffff_c000_0001], None),
        ] {
            assert_eq!(call_in(&functions, chain), expected, "{chain:x?}");
        }
    }

    /// Replaces each address with 0, which is what a reader without privileges sees.
    #[test]
    fn hidden_addresses_tell_nothing() {
        let hidden: Vec<_> = KALLSYMS
            .lines()
            .map(|line| format!("{:016x}{}\n", 0, &line[16..]))
            .collect();
        let functions = functions(hidden.concat().as_bytes());
        assert_eq!(call_in(&functions, &[0xffff_ffff_8141_8eff]), None);
    }
}

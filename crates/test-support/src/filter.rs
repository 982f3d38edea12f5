//! Seccomp filters (Documentation/userspace-api/seccomp_filter.rst).

use std::ffi::c_int;
use std::io;
use std::mem::offset_of;

use nix::sys::prctl::set_no_new_privs;
use vdso_time::arch::{Abi, NATIVE};

use crate::not_run_here;

/// What the filter does: a `SECCOMP_RET_*` of include/uapi/linux/seccomp.h.
pub type Action = u32;
pub const ALLOW: Action = libc::SECCOMP_RET_ALLOW;
pub const TRAP: Action = libc::SECCOMP_RET_TRAP;
pub const KILL_THREAD: Action = 0;
pub const KILL_PROCESS: Action = 0x8000_0000;

/// Answers a system call with an error.
pub const fn error(number: c_int) -> Action {
    libc::SECCOMP_RET_ERRNO | number as u32
}

/// The calls of one architecture with an action for each; the first one counts.
pub struct Rules {
    /// `AUDIT_ARCH_*` of include/uapi/linux/audit.h.
    pub arch: u32,
    pub calls: Vec<(u32, Action)>,
    pub others: Action,
}

/// A filter of these architectures, and what it does at the calls of any other.
pub fn program(rules: &[Rules], foreign: Action) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let only = |k: u32, jf: u8| libc::sock_filter { jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ, k) };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let answer = |action: Action| statement(libc::BPF_RET, action);

    let mut program = vec![load(offset_of!(libc::seccomp_data, arch))];
    for Rules { arch, calls, others } in rules {
        let mut section = vec![load(offset_of!(libc::seccomp_data, nr))];
        section.extend(calls.iter().flat_map(|(call, action)| [only(*call, 1), answer(*action)]));
        section.push(answer(*others));
        program.push(only(*arch, section.len() as u8));
        program.extend(section);
    }
    program.push(answer(foreign));
    program
}

/// Puts this thread under a filter, for good. It does not allocate.
pub fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set_no_new_privs()?;
    // SAFETY: the kernel reads the program, which lives until the call is done.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does `action` at these calls of this thread, and at every call of another architecture.
pub fn restrict(calls: &[u32], action: Action) -> io::Result<()> {
    const LITTLE_ENDIAN: u32 = if cfg!(target_endian = "little") { 0x4000_0000 } else { 0 };
    const BITS_64: u32 = 0x8000_0000;
    let abi = NATIVE.ok_or(io::ErrorKind::Unsupported)?;
    let arch = u32::from(abi.machine) | LITTLE_ENDIAN | if abi.class == 2 { BITS_64 } else { 0 };
    let calls = calls.iter().map(|call| (*call, action)).collect();
    install(&mut program(&[Rules { arch, calls, others: ALLOW }], action))
}

/// Makes the kernel answer these calls of this thread with an error; says so if it cannot.
pub fn deny(calls: &[u32], number: c_int) -> bool {
    let denied = restrict(calls, error(number));
    denied.map_err(|error| not_run_here("seccomp", format!("seccomp: {error}"))).is_ok()
}

/// Every system call, old and new, that can answer one of the functions.
pub fn clock_calls(abi: &Abi) -> Vec<u32> {
    let calls = abi.functions().into_iter().flat_map(|(_, function)| function.syscalls_in_order(false));
    calls.map(|call| call.number).collect()
}

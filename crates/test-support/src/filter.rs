//! A seccomp filter (Documentation/userspace-api/seccomp_filter.rst) that denies system calls.

#![allow(unsafe_code, reason = "libc is called here")]

use std::ffi::c_int;
use std::io;
use std::mem::offset_of;

use vdso_time::arch::Abi;

/// Every system call, old and new, that can answer one of the functions.
pub fn clock_calls(abi: &Abi) -> Vec<u32> {
    let calls = abi.functions().into_iter().flat_map(|(_, function)| function.syscalls_in_order(false));
    calls.map(|call| call.number).collect()
}

/// A filter that answers these system calls with an error, and so every call of another architecture, whose numbers
/// mean something else.
pub fn denying(abi: &Abi, calls: &[u32], error: c_int) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let unless = |k: u32, jt: u8| libc::sock_filter { jt, ..statement(libc::BPF_JMP | libc::BPF_JEQ, k) };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let answer = statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | error as u32);

    let mut filter = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        unless(audit_arch(abi), 1),
        answer,
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for &call in calls {
        filter.extend([libc::sock_filter { jf: 1, ..unless(call, 0) }, answer]);
    }
    filter.push(statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW));
    filter
}

/// Puts this thread behind a filter, for good. It does not allocate.
pub fn install(filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: it takes numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel reads the program, which lives until the call is done.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `AUDIT_ARCH_*` of include/uapi/linux/audit.h, of a little-endian architecture.
fn audit_arch(abi: &Abi) -> u32 {
    const LE: u32 = 0x4000_0000;
    const BITS_64: u32 = 0x8000_0000;
    u32::from(abi.machine) | LE | if abi.class == 2 { BITS_64 } else { 0 }
}

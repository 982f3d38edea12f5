//! Seccomp filters (Documentation/userspace-api/seccomp_filter.rst).

use std::ffi::c_int;
use std::io;
use std::mem::offset_of;

use nix::sys::prctl::set_no_new_privs;
use vdso_time::__private::{Abi, NATIVE};

use crate::{child, not_run_here};

/// The action of the filter: a `SECCOMP_RET_*` of include/uapi/linux/seccomp.h.
pub type Action = u32;
pub const ALLOW: Action = libc::SECCOMP_RET_ALLOW;
pub const TRAP: Action = libc::SECCOMP_RET_TRAP;
pub const KILL_PROCESS: Action = 0x8000_0000;

/// Answers a system call with an error.
pub const fn error(number: c_int) -> Action {
    libc::SECCOMP_RET_ERRNO | number as u32
}

/// Returns a filter that does the first action listed for a system call, or else `others`. At calls
/// of another architecture (`AUDIT_ARCH_*` of include/uapi/linux/audit.h) it does `foreign`.
pub fn program(calls: &[(u32, Action)], others: Action, foreign: Action) -> Vec<libc::sock_filter> {
    const LITTLE_ENDIAN: u32 = if cfg!(target_endian = "little") {
        0x4000_0000
    } else {
        0
    };
    const BITS_64: u32 = 0x8000_0000;
    let arch = match NATIVE {
        Some(abi) if abi.class == 2 => u32::from(abi.machine) | LITTLE_ENDIAN | BITS_64,
        Some(abi) => u32::from(abi.machine) | LITTLE_ENDIAN,
        None => LITTLE_ENDIAN,
    };
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let unless = |k: u32| libc::sock_filter {
        jt: 1,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ, k)
    };
    let only = |k: u32| libc::sock_filter {
        jf: 1,
        ..statement(libc::BPF_JMP | libc::BPF_JEQ, k)
    };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let answer = |action: Action| statement(libc::BPF_RET, action);

    let mut program = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        unless(arch),
        answer(foreign),
        load(offset_of!(libc::seccomp_data, nr)),
    ];
    for (call, action) in calls {
        program.push(only(*call));
        program.push(answer(*action));
    }
    program.push(answer(others));
    program
}

/// Puts this thread under a filter, for good. It does not allocate.
pub fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    set_no_new_privs()?;
    // SAFETY: the kernel reads the program, which lives until the call is done.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Does `action` at these calls of this thread, and at every call of another architecture.
pub fn restrict(calls: &[u32], action: Action) -> io::Result<()> {
    if NATIVE.is_none() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let calls: Vec<_> = calls.iter().map(|call| (*call, action)).collect();
    install(&mut program(&calls, ALLOW, action))
}

/// Returns whether a child could install a filter, or records the test as not run.
pub fn works() -> bool {
    let works = child::end_of(|| restrict(&[], ALLOW).is_ok()) == child::SUCCESS;
    if !works {
        not_run_here("there is no seccomp");
    }
    works
}

/// Makes the kernel answer these calls of this thread with an error, or records the test as not
/// run.
pub fn deny(calls: &[u32], number: c_int) -> bool {
    let denied = restrict(calls, error(number));
    if let Err(error) = &denied {
        not_run_here(format!("seccomp: {error}"));
    }
    denied.is_ok()
}

/// Returns every system call, old and new, that can answer one of the functions.
pub fn clock_calls(abi: &Abi) -> Vec<u32> {
    let mut numbers = Vec::new();
    for (_, function) in abi.functions() {
        for call in function.syscalls {
            numbers.push(call.number);
        }
    }
    numbers
}

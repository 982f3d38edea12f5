//! The CPUs that this thread may run on.

#![allow(unsafe_code, reason = "libc is called here")]

use std::io;
use std::mem;

/// The set of them, restored when this is dropped.
pub struct Cpus {
    allowed: libc::cpu_set_t,
}

impl Cpus {
    /// Asks the kernel which they are.
    pub fn allowed() -> io::Result<Self> {
        // SAFETY: a set of CPUs is bits, and may be all zero.
        let mut allowed: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes at most this many bytes there; 0 is this thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) };
        if result == 0 { Ok(Self { allowed }) } else { Err(io::Error::last_os_error()) }
    }

    /// Their numbers.
    pub fn numbers(&self) -> Vec<usize> {
        let is_allowed = |cpu: &usize| {
            // SAFETY: the number lies in the set.
            unsafe { libc::CPU_ISSET(*cpu, &self.allowed) }
        };
        (0..8 * size_of_val(&self.allowed)).filter(is_allowed).collect()
    }

    /// Moves this thread to one of them, and keeps it there.
    pub fn pin(&self, cpu: usize) -> io::Result<()> {
        let mut one = self.allowed;
        // SAFETY: the set is bits.
        unsafe { libc::CPU_ZERO(&mut one) };
        // SAFETY: the number lies in the set.
        unsafe { libc::CPU_SET(cpu, &mut one) };
        run_on(&one)
    }

    /// Lets this thread run on all of them again.
    pub fn release(&self) {
        // It was allowed before. If it no longer is, another has been at work, and its word stands.
        let _ = run_on(&self.allowed);
    }
}

impl Drop for Cpus {
    fn drop(&mut self) {
        self.release();
    }
}

fn run_on(cpus: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the kernel reads the set; 0 is this thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(cpus), &raw const *cpus) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

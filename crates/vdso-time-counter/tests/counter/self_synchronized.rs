//! Tests that an ordered read reads `CNTVCTSS_EL0` if the kernel reports `FEAT_ECV` and the clock
//! has looked for it, and otherwise `CNTVCT_EL0` after `isb`.
//!
//! A process that is denied the counter gets SIGSEGV at the instruction that reads it.

#![allow(
    unsafe_code,
    reason = "prctl(2) is called, and the instruction of a signal is read"
)]

use std::ffi::{c_int, c_void};

use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::{child, not_run_here, oracle, signals};
use vdso_time_counter::{CounterMonotonic, Ticks};

use crate::is_used;

const AT_HWCAP2: libc::c_ulong = 26;
const HWCAP2_ECV: usize = 1 << 19;

const SELF_SYNCHRONIZED: i32 = 11;
const AFTER_ISB: i32 = 12;

/// Ends the process with a status that tells which instruction was denied.
extern "C" fn on_denied(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler the state of the thread.
    let at = unsafe { &*context.cast::<libc::ucontext_t>() }
        .uc_mcontext
        .pc as usize;
    // SAFETY: the thread has executed this instruction and the one before it.
    let words = unsafe { std::ptr::with_exposed_provenance::<[u32; 2]>(at - 4).read() };
    child::leave(match words {
        // mrs from the counter into any register
        [_, read] if read & !31 == 0xd53b_e0c0 => SELF_SYNCHRONIZED,
        [0xd503_3fdf, read] if read & !31 == 0xd53b_e040 => AFTER_ISB,
        _ => 13,
    })
}

/// Denies this process the counter, so that a read of it calls `on_denied`. Returns whether the
/// kernel supports that.
fn deny_counter() -> bool {
    signals::handle(Signal::SIGSEGV, SaFlags::empty(), on_denied);
    // SAFETY: the two numbers are `PR_SET_TSC` and `PR_TSC_SIGSEGV`.
    unsafe { libc::prctl(26, 2) == 0 }
}

#[test]
fn an_ordered_read_is_self_synchronized_where_the_cpu_has_that() {
    if child::end_of(deny_counter) != child::SUCCESS {
        return not_run_here("PR_SET_TSC needs Linux 6.12");
    }
    if child::end_of(is_used) != child::SUCCESS {
        return;
    }
    let has_ecv = oracle::auxval(AT_HWCAP2) & HWCAP2_ECV != 0;
    let detected = if has_ecv {
        SELF_SYNCHRONIZED
    } else {
        AFTER_ISB
    };
    let unknown = child::end_of(|| deny_counter() && Ticks::read_ordered().as_raw() > 0);
    assert_eq!(
        unknown,
        child::End::Status(AFTER_ISB),
        "before the first read of the clock"
    );
    let reads: [fn() -> u64; 2] = [
        || Ticks::read_ordered().as_raw(),
        || CounterMonotonic::now().as_nanos() as u64,
    ];
    for read in reads {
        let end = child::end_of(|| is_used() && deny_counter() && read() > 0);
        assert_eq!(end, child::End::Status(detected), "{has_ecv}");
    }
    if !has_ecv {
        not_run_here("the CPU has no FEAT_ECV, so that read was not tested");
    }
}

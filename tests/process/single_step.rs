//! The promise: a first call may be interrupted anywhere by a signal whose handler reads every
//! clock, and the process may be forked anywhere in it. After `warm_up()` there is no first call.
//!
//! The CPU's trap flag sends a signal after each instruction of each function's first call. Its
//! handler forks there: one copy goes on, one reads every clock before, and one calls `warm_up()`
//! and enters a sandbox. `cargo test --release --test process single_step -- --nocapture` prints
//! how many instructions were tried.

#![allow(unsafe_code, reason = "a signal handler reads and writes registers")]

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
#[test]
fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
    test_support::not_run_here("only x86_64's instructions are executed one by one");
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod native {
    use std::arch::asm;
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use libc::{
        REG_EFL, REG_R8, REG_R10, REG_R11, REG_RAX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI,
    };
    use test_support::functions::{Compared, Function, Reading, wrong};
    use test_support::nix::sys::prctl::set_pdeathsig;
    use test_support::nix::sys::signal::{SaFlags, Signal};
    use test_support::nix::unistd::{ForkResult, fork};
    use test_support::{FUNCTIONS, PATHS, child, cpus, filter, not_run_here, oracle, signals};
    use vdso_time::{ClockId, routes};

    use crate::missed_the_vdso;

    /// A debug build executes thirty times as many instructions.
    const ONLY: Option<&str> = if cfg!(debug_assertions) {
        Some("clock_gettime")
    } else {
        None
    };
    const NTH: usize = if cfg!(debug_assertions) { 97 } else { 1 };

    const TRAP_FLAG: i64 = 0x100;
    const SYSCALL: [u8; 2] = [0x0f, 0x05];

    /// The work of a copy before it goes on.
    const COPIES: [(&str, fn()); 3] = [
        ("fork", || ()),
        ("signal", read_in_handler),
        ("warm_up", enter_sandbox),
    ];

    static INSTRUCTIONS: AtomicUsize = AtomicUsize::new(0);
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    /// In the vDSO the test forks once at each instruction, not at each execution. A read starts
    /// again if the kernel wrote to its page, and while forks delay the process the kernel writes
    /// every time, so the read would never end.
    static TRIED_IN_VDSO: [AtomicBool; 0x4000] = [const { AtomicBool::new(false) }; 0x4000];
    static IS_COPY: AtomicBool = AtomicBool::new(false);
    static IS_WRONG_IN_HANDLER: AtomicBool = AtomicBool::new(false);

    fn read_in_handler() {
        IS_WRONG_IN_HANDLER.store(wrong(&PATHS[0]).is_some(), Ordering::Relaxed);
    }

    /// Enters a sandbox that kills for a probe of the vDSO: after `warm_up()` there is none.
    fn enter_sandbox() {
        vdso_time::warm_up();
        let filter = filter::restrict(&[libc::SYS_rt_sigprocmask as u32], filter::KILL_PROCESS);
        let is_right = filter.is_err() || wrong(&PATHS[0]).is_none();
        child::leave(if is_right { 0 } else { 15 });
    }

    /// Copies this process at an instruction. Returns whether this is a copy, which goes on.
    fn copy(at: usize) -> bool {
        let number = INSTRUCTIONS.fetch_add(1, Ordering::Relaxed);
        let is_next = match TRIED_IN_VDSO.get(at.wrapping_sub(oracle::sysinfo_ehdr())) {
            Some(is_tried) => !is_tried.swap(true, Ordering::Relaxed),
            None => number % NTH == 0,
        };
        if !is_next {
            return false;
        }
        TRIED.fetch_add(1, Ordering::Relaxed);
        for (name, work) in COPIES {
            // SAFETY: the interrupted code is the crate's, so libc has no lock.
            match unsafe { fork() }.unwrap() {
                ForkResult::Parent { child } => {
                    assert_eq!(
                        child::wait(child, child::LIMIT / 2),
                        child::SUCCESS,
                        "{name} at {at:#x}"
                    );
                }
                ForkResult::Child => {
                    // One that waits for itself ends with the test.
                    let _ = set_pdeathsig(Signal::SIGKILL);
                    IS_COPY.store(true, Ordering::Relaxed);
                    work();
                    return true;
                }
            }
        }
        false
    }

    extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel gives a handler with SA_SIGINFO the context, and it alone uses it.
        let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
        let registers = &mut context.uc_mcontext.gregs;
        let errno = oracle::errno();
        // SAFETY: it is this thread's own.
        let interrupted_errno = unsafe { errno.read() };
        loop {
            let at = registers[REG_RIP as usize] as usize;
            if at == finish as *const () as usize || child::or_leave(|| copy(at)) {
                registers[REG_EFL as usize] &= !TRAP_FLAG;
                break;
            }
            // SAFETY: the CPU is about to execute the code there.
            if unsafe { *(at as *const [u8; 2]) } != SYSCALL {
                break;
            }
            // The next trap would come one instruction late, so the handler makes the call.
            let number = registers[REG_RAX as usize];
            let arguments = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8];
            let [first, second, third, fourth, fifth] =
                arguments.map(|register| registers[register as usize]);
            // SAFETY: it is the call that the interrupted code makes.
            let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth) };
            let result = if result == -1 {
                // SAFETY: it is this thread's own.
                let number = unsafe { errno.read() };
                -i64::from(number)
            } else {
                result
            };
            let next = at as i64 + SYSCALL.len() as i64;
            registers[REG_R11 as usize] = registers[REG_EFL as usize];
            for (register, value) in [(REG_RAX, result), (REG_RCX, next), (REG_RIP, next)] {
                registers[register as usize] = value;
            }
        }
        // SAFETY: it is this thread's own.
        unsafe { errno.write(interrupted_errno) };
    }

    /// Begins the steps, after the kernel's first answer.
    fn begin() {
        // SAFETY: the flag has a handler, and the stack is as it was.
        unsafe { asm!("pushfq", "or qword ptr [rsp], {}", "popfq", const TRAP_FLAG) };
    }

    /// Ends the steps, before the kernel's second answer.
    #[inline(never)]
    extern "C" fn finish(compared: &Compared<Reading>) {
        let status = match compared {
            Err(_) | Ok(false) => 11, // the first call's answer is wrong
            _ if IS_WRONG_IN_HANDLER.load(Ordering::Relaxed) => 12,
            _ if missed_the_vdso(&routes()) => 13,
            _ if wrong(&PATHS[0]).is_some() => 14, // a later answer is wrong
            _ => 0,
        };
        if status != 0 || IS_COPY.load(Ordering::Relaxed) {
            child::leave(status);
        }
    }

    fn walk(function: &Function) {
        signals::handle(Signal::SIGTRAP, SaFlags::empty(), on_trap);
        // The kernel's two answers must be of one CPU.
        let here = oracle::getcpu().map_or(0, |(cpu, _)| cpu as usize);
        cpus::pin(here);
        finish(&function.compare_once(&PATHS[0], ClockId::MONOTONIC, begin));
        let instructions = INSTRUCTIONS.load(Ordering::Relaxed);
        let tried = TRIED.load(Ordering::Relaxed);
        if instructions == 0 {
            return not_run_here("the trap flag sends no signal");
        }
        println!(
            "{:14} {instructions} instructions, {tried} tried",
            function.name
        );
        let least = if oracle::sysinfo_ehdr() == 0 {
            100
        } else {
            1000
        };
        assert!(
            instructions > least,
            "{}: this is not a first call",
            function.name
        );
    }

    #[test]
    fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
        for function in &FUNCTIONS {
            if ONLY.is_none() || ONLY == Some(function.name) {
                child::forked(|| walk(function));
            }
        }
    }
}

//! The promise: a first call may be interrupted anywhere by a signal whose handler reads every
//! clock, and the process may be forked anywhere in it. After `warm_up()` there is no first call.
//!
//! Each function's first call is executed one instruction at a time. At each, copies of the process
//! go on: one gets a signal, one calls `warm_up()` and enters a sandbox, one is as a fork there
//! would be.
//! `cargo test --release --test process single_step -- --nocapture` prints how many.

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
#[test]
fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
    test_support::not_run_here("ptrace", "only x86_64's instructions are executed one by one");
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod native {
    use std::collections::HashSet;
    use std::ffi::{c_int, c_void};
    use std::io;
    use std::mem;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use test_support::functions::{Compared, Function, Reading, wrong};
    use test_support::nix::sys::resource::{Resource, setrlimit};
    use test_support::nix::sys::signal::{SaFlags, Signal};
    use test_support::tracee::Tracee;
    use test_support::{Cpus, FUNCTIONS, PATHS, child, filter, has_proc, not_run_here, oracle, signals};
    use vdso_time::{ClockId, routes};

    use crate::missed_the_vdso;

    /// A debug build executes thirty times as many instructions.
    const ONLY: Option<&str> = if cfg!(debug_assertions) { Some("clock_gettime") } else { None };
    const NTH: usize = if cfg!(debug_assertions) { 97 } else { 1 };

    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static WRONG_IN_HANDLER: AtomicUsize = AtomicUsize::new(0);
    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        WRONG_IN_HANDLER.fetch_add(wrong(&PATHS[0]).is_some().into(), Ordering::Relaxed);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the process has called `warm_up()`, no read probes the vDSO, or the sandbox kills.
    extern "C" fn enter_sandbox(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        vdso_time::warm_up();
        let filter = filter::restrict(&[libc::SYS_rt_sigprocmask as u32], filter::KILL_PROCESS);
        child::leave(if filter.is_err() || wrong(&PATHS[0]).is_none() { 0 } else { 15 });
    }

    /// The steps begin here: after the kernel's first answer.
    #[inline(never)]
    fn begin() {
        BEGUN.store(1, Ordering::Relaxed);
    }

    /// The steps end here: after the kernel's second answer.
    #[inline(never)]
    extern "C" fn finish(compared: &Compared<Reading>) -> ! {
        let is_quiet = WRONG_IN_HANDLER.load(Ordering::Relaxed) == 0 && HANDLED.load(Ordering::Relaxed) <= 1;
        child::leave(match (compared, is_quiet) {
            (Err(_) | Ok(false), _) => 11, // the first call's answer is wrong
            (_, false) => 12,              // an answer in the handler is wrong
            _ if missed_the_vdso(&routes()) => 13,
            _ if wrong(&PATHS[0]).is_some() => 14, // a later answer is wrong
            _ => 0,
        })
    }

    fn first_call(function: &Function) {
        signals::handle(Signal::SIGUSR1, SaFlags::empty(), on_signal);
        signals::handle(Signal::SIGUSR2, SaFlags::empty(), enter_sandbox);
        // The kernel's two answers must be of one CPU.
        let here = oracle::getcpu().map_or(0, |(cpu, _)| cpu as usize);
        mem::forget(Cpus::allowed().inspect(|cpus| _ = cpus.pin(here)));
        // A process that waits for itself is ended. The copies are made at its cost.
        let _ = setrlimit(Resource::RLIMIT_CPU, 100, 100);
        finish(&function.compare_once(&PATHS[0], ClockId::MONOTONIC, begin));
    }

    /// Copies the process at each instruction. In the vDSO each is tried once, however often it is
    /// executed: a read is repeated if the kernel wrote to its page meanwhile, and the kernel does
    /// so more often than copies are made.
    fn walk(function: &Function) -> io::Result<(usize, usize)> {
        let tracee = Tracee::fork(|| first_call(function))?;
        let mut at = tracee.step()?;
        while at != begin as *const () as usize {
            at = tracee.step()?;
        }
        let (mut instructions, mut tried) = (0, 0);
        let mut tried_in_vdso = HashSet::new();
        while at != finish as *const () as usize {
            let in_vdso = tracee.vdso.contains(&at);
            if in_vdso && tried_in_vdso.insert(at) || !in_vdso && instructions % NTH == 0 {
                tried += 1;
                let copies =
                    [(None, "fork"), (Some(Signal::SIGUSR1), "signal"), (Some(Signal::SIGUSR2), "warm_up")];
                for (signal, name) in copies {
                    let end = child::wait(tracee.copy(signal)?, child::LIMIT);
                    assert_eq!(end, child::WELL, "{}: {name} at {at:#x}", function.name);
                }
            }
            instructions += 1;
            at = tracee.step()?;
        }
        assert_eq!(tracee.finish()?, child::WELL);
        Ok((instructions, tried))
    }

    #[test]
    fn a_first_call_may_be_interrupted_and_forked_at_every_instruction() {
        if !has_proc() {
            return;
        }
        // A switch to the tracer and back, at each instruction, is quicker on one CPU.
        let cpus = Cpus::allowed();
        if let Some(cpus) = &cpus {
            cpus.pin(cpus.numbers()[0]);
        }
        for function in FUNCTIONS.iter().filter(|function| ONLY.is_none_or(|only| only == function.name)) {
            match walk(function) {
                Ok((instructions, tried)) => {
                    println!("{:14} {instructions} instructions, {tried} tried", function.name);
                    let least = if oracle::sysinfo_ehdr() == 0 { 100 } else { 1000 };
                    assert!(instructions > least, "{}: that is no first call", function.name);
                }
                Err(error) if error.kind() == io::ErrorKind::Other => panic!("{}: {error}", function.name),
                Err(error) => return not_run_here("ptrace", format!("ptrace: {error}")),
            }
        }
    }
}

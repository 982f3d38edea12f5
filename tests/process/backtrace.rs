//! The promise: a signal handler can unwind the stack from the instruction that enters the kernel.
//!
//! Sampling profilers and crash handlers unwind, and the kernel delivers most signals there.

#[cfg(not(target_env = "gnu"))]
#[test]
fn a_handler_unwinds_through_a_system_call() {
    test_support::not_run("this C library has no backtrace(3)");
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a signal handler unwinds the stack")]
mod native {
    use std::ffi::{c_int, c_void};
    use std::ptr;
    use std::slice;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use test_support::nix::sys::pthread::{pthread_kill, pthread_self};
    use test_support::nix::sys::signal::{SaFlags, Signal};
    use test_support::nix::unistd::{alarm, getppid};
    use test_support::{FUNCTIONS, PATHS, Path, child, not_run_here, signals};
    use vdso_time::ClockId;

    use crate::without_vdso;

    /// Signals that interrupt the loop over one function.
    const SIGNALS: usize = 200;
    /// At least so many of them must interrupt a loop of system calls where it enters the kernel.
    const ENOUGH: usize = 20;
    /// Seconds after which SIGALRM ends the child.
    const LIMIT: u32 = 110;

    /// Whether the unwind tables of libraries and of the vDSO are right at every instruction.
    ///
    /// On arm they are right in the body of a function only. On i386 those of glibc's memcpy and of
    /// LLVM after a call that pops its arguments are wrong, and the vDSO's clock functions have
    /// none.
    const EXACT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

    /// The last bytes of the instruction that enters the kernel.
    const ENTRIES: &[&[u8]] = &[
        #[cfg(target_arch = "x86_64")]
        &[0x0f, 0x05], // syscall
        #[cfg(target_arch = "x86")]
        &[0xcd, 0x80], // int 0x80; Linux returns from `sysenter` after one, too
        #[cfg(target_arch = "aarch64")]
        &[0x01, 0x00, 0x00, 0xd4], // svc 0
        #[cfg(target_arch = "arm")]
        &[0x00, 0x00, 0x00, 0xef], // svc 0
        #[cfg(target_arch = "arm")]
        &[0x00, 0xdf], // svc 0 in Thumb mode
    ];

    // The linker makes these of the section's name.
    unsafe extern "C" {
        #[link_name = "__start_vdso_time_loop"]
        static LOOP_START: u8;
        #[link_name = "__stop_vdso_time_loop"]
        static LOOP_END: u8;
    }

    /// Whether the loop is running, and so must be in a backtrace.
    static IS_RUNNING: AtomicBool = AtomicBool::new(false);

    /// Reads while `wanted`. Its section of its own makes its addresses known.
    #[inline(never)]
    #[unsafe(link_section = "vdso_time_loop")]
    fn read_in_a_loop(read: &dyn Fn() -> bool, wanted: &AtomicBool) {
        IS_RUNNING.store(true, Ordering::SeqCst);
        while wanted.load(Ordering::Relaxed) {
            assert!(read());
        }
        IS_RUNNING.store(false, Ordering::SeqCst);
    }

    /// Backtraces, and those that have the loop in them: from where the kernel was entered, and
    /// from anywhere else.
    static ENTERED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    static ELSEWHERE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

    /// How often the handler ran, in one loop.
    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn on_sample(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the context is the kernel's.
        let pc = unsafe { signals::program_counter(context) };
        // SAFETY: code was executed there, and no function begins where a mapping does.
        let before = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(pc - 4), 4) };
        let entered = ENTRIES.iter().any(|entry| before.ends_with(entry));
        HANDLED.fetch_add(1, Ordering::Relaxed);
        if !IS_RUNNING.load(Ordering::SeqCst) || !(entered || EXACT) {
            return;
        }
        let mut frames = [ptr::null_mut(); 64];
        // SAFETY: the array has room for so many addresses.
        let found = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
        let code = (&raw const LOOP_START).addr()..(&raw const LOOP_END).addr();
        let is_complete = frames[..found as usize].iter().any(|frame| code.contains(&frame.addr()));
        let [made, complete] = if entered { &ENTERED } else { &ELSEWHERE };
        made.fetch_add(1, Ordering::Relaxed);
        complete.fetch_add(is_complete.into(), Ordering::Relaxed);
    }

    fn start() {
        alarm::set(LIMIT);
        signals::handle(Signal::SIGPROF, SaFlags::SA_RESTART, on_sample);
        // The first call loads and allocates what the later ones use, which a handler must not do.
        let mut frame = ptr::null_mut();
        // SAFETY: there is room for one address.
        assert_eq!(unsafe { libc::backtrace(&raw mut frame, 1) }, 1);
    }

    /// Interrupts a loop over `read`, and fails unless every backtrace from the kernel's entry has
    /// the loop in it. If `read` is a system call, there must be some.
    fn check(what: &str, is_call: bool, read: &dyn Fn() -> bool) {
        let wanted = AtomicBool::new(true);
        HANDLED.store(0, Ordering::Relaxed);
        let reader = pthread_self();
        thread::scope(|scope| {
            scope.spawn(|| {
                for sent in 0..SIGNALS {
                    pthread_kill(reader, Signal::SIGPROF).unwrap();
                    while HANDLED.load(Ordering::Relaxed) <= sent {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
                wanted.store(false, Ordering::Relaxed);
            });
            read_in_a_loop(read, &wanted);
        });
        let take =
            |counts: &[AtomicUsize; 2]| counts.each_ref().map(|count| count.swap(0, Ordering::Relaxed));
        let ([entered, complete], others) = (take(&ENTERED), take(&ELSEWHERE));
        println!("{what}: of {entered} backtraces from the kernel's entry {complete} are complete");
        println!("{what}: of {} others {} are complete", others[0], others[1]);
        assert_eq!(complete, entered, "{what}");
        assert!(!is_call || entered >= ENOUGH, "{what}: {entered}");
    }

    fn check_path(state: &str, path: &Path) {
        for function in &FUNCTIONS {
            let read = || (function.read)(path, ClockId::MONOTONIC).is_ok();
            check(&format!("{state}, {} {}", path.name, function.name), path.name == "kernel", &read);
        }
    }

    /// A handler that crashes ends the child.
    #[test]
    fn a_handler_unwinds_through_a_system_call() {
        let of_libc = child::end_of(|| {
            start();
            check("libc", true, &|| getppid().as_raw() >= 0);
            true
        });
        if of_libc != child::WELL {
            let why = format!("libc's own system calls cannot be unwound: {of_libc:?}");
            return not_run_here("backtrace", why);
        }
        child::forked(|| {
            start();
            let _ = vdso_time::routes(); // on i386 it finds the vDSO's entry
            let paths = if EXACT { &PATHS[..] } else { &PATHS[1..] };
            for path in paths {
                check_path("with the vDSO", path);
            }
        });
        child::forked(|| {
            start();
            without_vdso();
            for path in &PATHS {
                check_path("without one", path);
            }
        });
    }
}

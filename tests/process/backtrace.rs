//! The promise: a signal handler can unwind the stack from the instruction that enters the kernel.
//! Sampling profilers and crash handlers unwind, and the kernel delivers most signals there.

#[cfg(target_env = "gnu")]
use test_support::program_counter;
#[cfg(target_env = "gnu")]
#[cfg(not(target_env = "gnu"))]
#[test]
fn a_handler_unwinds_through_a_system_call() {
    println!("not run here: this C library has no backtrace(3)");
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code, reason = "a signal handler unwinds the stack")]
mod native {
    use std::ffi::{c_int, c_void};
    use std::mem;
    use std::ptr;
    use std::slice;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use vdso_time::ClockId;

    use super::program_counter::program_counter;
    use test_support::{PATHS, Path, child, not_run_here};

    /// Signals that interrupt the loop over one function.
    const SIGNALS: usize = 200;
    /// At least so many of them must interrupt a loop of system calls where it enters the kernel.
    const ENOUGH: usize = 20;
    /// Seconds after which SIGALRM ends the child.
    const LIMIT: u32 = 240;

    /// Whether the unwind tables of libraries and of the vDSO are right at every instruction. On
    /// arm they are right in the body of a function only. On i386 those of glibc's memcpy are
    /// wrong, so are LLVM's after a call that pops its arguments, and the vDSO's clock functions
    /// have none.
    const EXACT: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

    /// The last bytes of the instruction that enters the kernel.
    const ENTRIES: &[&[u8]] = &[
        #[cfg(target_arch = "x86_64")]
        &[0x0f, 0x05], // syscall
        #[cfg(target_arch = "x86")]
        &[0xcd, 0x80], // int 0x80; Linux returns from `sysenter` behind one, too
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

    /// Whether the loop is running, and so is to be found in a backtrace.
    static IS_RUNNING: AtomicBool = AtomicBool::new(false);

    /// Reads until nobody wants it any more. It has a section of its own, so that its addresses are
    /// known.
    #[inline(never)]
    #[unsafe(link_section = "vdso_time_loop")]
    fn read_in_a_loop(read: &dyn Fn() -> bool, wanted: &AtomicBool) {
        IS_RUNNING.store(true, Ordering::SeqCst);
        while wanted.load(Ordering::Relaxed) {
            assert!(read());
        }
        IS_RUNNING.store(false, Ordering::SeqCst);
    }

    /// Backtraces, and those that have the loop in them.
    #[derive(Debug)]
    struct Count {
        made: AtomicUsize,
        complete: AtomicUsize,
    }

    impl Count {
        const fn new() -> Self {
            Self { made: AtomicUsize::new(0), complete: AtomicUsize::new(0) }
        }

        fn add(&self, is_complete: bool) {
            self.made.fetch_add(1, Ordering::Relaxed);
            self.complete.fetch_add(is_complete.into(), Ordering::Relaxed);
        }

        fn take(&self) -> (usize, usize) {
            (self.made.swap(0, Ordering::Relaxed), self.complete.swap(0, Ordering::Relaxed))
        }
    }

    /// From where the kernel was entered, and from anywhere else.
    static ENTERED: Count = Count::new();
    static ELSEWHERE: Count = Count::new();

    /// How often the handler ran, in one loop.
    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn on_sample(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it interrupted.
        let pc = program_counter(unsafe { &*context.cast() });
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
        let count = if entered { &ENTERED } else { &ELSEWHERE };
        count.add(is_complete);
    }

    fn handle_samples() {
        // SAFETY: all zero is an action with no flags and an empty mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_sample as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler has the signature that SA_SIGINFO wants.
        assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) }, 0);
        // The first call loads and allocates what the later ones use, which a handler must not do.
        let mut frame = ptr::null_mut();
        // SAFETY: there is room for one address.
        assert_eq!(unsafe { libc::backtrace(&raw mut frame, 1) }, 1);
    }

    /// Interrupts a loop over `read`.
    fn sample(read: &dyn Fn() -> bool) {
        let wanted = AtomicBool::new(true);
        HANDLED.store(0, Ordering::Relaxed);
        // SAFETY: pthread_self(3) takes nothing.
        let reader = unsafe { libc::pthread_self() };
        thread::scope(|scope| {
            scope.spawn(|| {
                for sent in 0..SIGNALS {
                    // SAFETY: the thread is the one that waits for the end of this one.
                    assert_eq!(unsafe { libc::pthread_kill(reader, libc::SIGPROF) }, 0);
                    while HANDLED.load(Ordering::Relaxed) <= sent {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
                wanted.store(false, Ordering::Relaxed);
            });
            read_in_a_loop(read, &wanted);
        });
    }

    /// Interrupts a loop over `read`, and fails unless every backtrace from the kernel's entry has
    /// the loop in it. If `read` is a system call, there must be some.
    fn check(what: &str, is_call: bool, read: &dyn Fn() -> bool) {
        sample(read);
        let ((entered, complete), others) = (ENTERED.take(), ELSEWHERE.take());
        println!(
            "{what}: {complete} of {entered} backtraces from the kernel's entry are complete, {} of \
             {} others",
            others.1, others.0,
        );
        assert_eq!(complete, entered, "{what}");
        assert!(!is_call || entered >= ENOUGH, "{what}: {entered}");
    }

    /// The same for each function of a path.
    fn check_path(state: &str, path: &Path) {
        let clock = ClockId::MONOTONIC;
        let functions: [(&str, &dyn Fn() -> bool); 5] = [
            ("time", &|| (path.time)().is_ok()),
            ("gettimeofday", &|| (path.gettimeofday)().is_ok()),
            ("clock_gettime", &|| (path.clock_gettime)(clock).is_ok()),
            ("clock_getres", &|| (path.clock_getres)(clock).is_ok()),
            ("getcpu", &|| (path.getcpu)().is_ok()),
        ];
        for (function, read) in functions {
            check(&format!("{state}, {} {function}", path.name), path.name == "kernel", read);
        }
    }

    fn start() {
        // SAFETY: it takes a number.
        unsafe { libc::alarm(LIMIT) };
        handle_samples();
    }

    /// A handler that crashes ends the child.
    #[test]
    fn a_handler_unwinds_through_a_system_call() {
        let unwinds_through_libc = child::end_of(|| {
            start();
            // SAFETY: getppid(2) always succeeds.
            check("libc", true, &|| unsafe { libc::syscall(libc::SYS_getppid) } >= 0);
        });
        if unwinds_through_libc != 0 {
            let why = format!("libc's own system calls cannot be unwound: {unwinds_through_libc:#x}");
            return not_run_here("backtrace", why);
        }
        child::forked(|| {
            start();
            let _ = vdso_time::routes(); // on i386 it finds the vDSO's entry
            for path in if EXACT { &PATHS[..] } else { &PATHS[1..] } {
                check_path("with the vDSO", path);
            }
        });
        child::forked(|| {
            start();
            // SAFETY: null is always allowed.
            unsafe { vdso_time::init(ptr::null()) };
            for path in &PATHS {
                check_path("without one", path);
            }
        });
    }
}

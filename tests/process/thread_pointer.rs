//! The promise: a call needs nothing of the C library's thread, so it works in a thread with a
//! thread pointer of its own, as coroutines and language runtimes have.

#![allow(unsafe_code, reason = "the thread pointer is changed")]

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
#[test]
fn a_later_call_works_with_another_thread_pointer() {
    test_support::not_run("only the thread pointer of x86_64 is changed");
}

#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod own {
    use std::arch::asm;
    use std::hint::black_box;

    use test_support::{Pages, child};
    use vdso_time::ClockId;

    const ARCH_SET_FS: usize = 0x1002;

    /// Makes the system call alone: a function of libc reads the thread pointer.
    fn set_thread_pointer(address: usize) {
        // SAFETY: it changes fs, which the caller restores before it uses libc or std.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") libc::SYS_arch_prctl => _,
                in("rdi") ARCH_SET_FS, in("rsi") address,
                lateout("rcx") _, lateout("r11") _,
            );
        }
    }

    fn thread_pointer() -> usize {
        let pointer;
        // SAFETY: the ABI has the pointer's own value at its address.
        unsafe { asm!("mov {}, fs:0", out(reg) pointer) };
        pointer
    }

    #[test]
    fn a_later_call_works_with_another_thread_pointer() {
        child::forked(|| {
            vdso_time::warm_up();
            let unreadable = Pages::new(1).addr();
            let own = thread_pointer();
            set_thread_pointer(unreadable);
            let read = black_box([
                vdso_time::getcpu().is_ok(),
                vdso_time::clock_gettime(ClockId::MONOTONIC).is_ok(),
                vdso_time::clock_getres(ClockId::MONOTONIC).is_ok(),
                vdso_time::gettimeofday().is_ok(),
                vdso_time::time() > 0,
                vdso_time::syscall::getcpu().is_ok(),
            ]);
            set_thread_pointer(own);
            assert_eq!(read, [true; 6]);
        });
    }
}

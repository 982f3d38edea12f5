//! A child behind the filter of an Android release: what it does, and which system call ends it.

use std::env::consts::ARCH;
use std::ffi::{c_int, c_long, c_void};
use std::mem::{self, offset_of};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicIsize, Ordering};

use super::lists;
use test_support::{child, filter, oracle, register, vector};

/// The filter of libc/seccomp/seccomp_policy.cpp, without its binary search. It allows the calls on
/// the list of an architecture, except one. It traps all others, and those of other architectures.
fn filter_of(release: u32, except: Option<u32>) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let only = |k: u32, jf: u8| libc::sock_filter { jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ, k) };
    let load = |offset: usize| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32);
    let allow = statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW);
    let trap = statement(libc::BPF_RET, libc::SECCOMP_RET_TRAP);

    let mut program = vec![load(offset_of!(libc::seccomp_data, arch))];
    for arch in lists::family(ARCH) {
        let mut section = vec![load(offset_of!(libc::seccomp_data, nr))];
        let calls = lists::allowed(arch.name, release).into_iter().filter(|call| Some(*call) != except);
        section.extend(calls.flat_map(|call| [only(call, 1), allow]));
        section.push(trap);
        program.push(only(arch.audit, section.len() as u8));
        program.extend(section);
    }
    program.push(trap);
    program
}

/// Whether the process has the vDSO that its kernel gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Vdso {
    Kept,
    /// The auxiliary vector does not name it any more.
    Removed,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// It did its work, and the answer was good.
    Well,
    /// The answer was not good.
    Wrong,
    /// The filter caught this system call.
    Trapped(u32),
    /// This signal killed it.
    Killed(i32),
    /// It did not do its work: what is missing, and why.
    NotTried(&'static str, &'static str),
}

// What a child tells, if not the number of a system call.
const WELL: i32 = -1;
const WRONG: i32 = -2;
const NO_VECTOR: i32 = -3;
const NO_FILTER: i32 = -4;

thread_local! {
    /// What the children of this thread tell: a number in memory of both.
    static TOLD: &'static AtomicI32 = shared();
}

fn shared() -> &'static AtomicI32 {
    let (size, access) = (size_of::<AtomicI32>(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses a place where nothing is.
    let page = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the page is there for good, aligned, and zero is a number.
    unsafe { &*page.cast() }
}

fn tell(what: i32) {
    TOLD.with(|told| told.store(what, Ordering::Relaxed));
}

/// What SIGSYS does to the process.
#[derive(Clone, Copy)]
pub(crate) enum Sigsys {
    /// It kills, as in an app.
    Kills,
    /// A handler tells which system call it was.
    Tells,
    /// The same, but clock_gettime(2) is trapped too, and the handler answers these seconds.
    Answers(i32),
}

/// Does `work` in a child behind the filter of a release. `work` says whether the answer was good.
/// It must not allocate: the filter has only the calls of the table.
pub(crate) fn end(release: u32, vdso: Vdso, sigsys: Sigsys, work: impl FnOnce() -> bool) -> End {
    tell(0);
    let answered = matches!(sigsys, Sigsys::Answers(_)).then_some(libc::SYS_clock_gettime as u32);
    let mut program = filter_of(release, answered);
    let status = child::end_of(|| {
        if matches!(vdso, Vdso::Removed)
            && oracle::sysinfo_ehdr() != 0
            && vector::say(None, cfg!(feature = "libc")).is_err()
        {
            return tell(NO_VECTOR);
        }
        match sigsys {
            Sigsys::Kills => {}
            Sigsys::Tells => handle_sigsys(on_sigsys),
            Sigsys::Answers(seconds) => {
                ANSWER.store(seconds as isize, Ordering::Relaxed);
                handle_sigsys(on_sigsys_or_answer);
            }
        }
        if filter::install(&mut program).is_err() {
            return tell(NO_FILTER);
        }
        tell(if work() { WELL } else { WRONG });
    });
    if libc::WIFSIGNALED(status) {
        return End::Killed(libc::WTERMSIG(status));
    }
    match TOLD.with(|told| told.load(Ordering::Relaxed)) {
        WELL => End::Well,
        WRONG => End::Wrong,
        NO_VECTOR => End::NotTried("auxv", "the auxiliary vector cannot be changed"),
        NO_FILTER => End::NotTried("seccomp", "a filter cannot be installed"),
        number => End::Trapped(number.unsigned_abs()),
    }
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

fn handle_sigsys(handler: Handler) {
    // SAFETY: all zero is an action with no flags and an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature that SA_SIGINFO needs.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) }, 0);
}

/// The head of the kernel's `siginfo_t` of SIGSYS (include/uapi/asm-generic/siginfo.h).
#[repr(C)]
struct Siginfo {
    numbers: [c_int; 3],
    address: *mut c_void,
    syscall: c_int,
}

/// The number of the system call that was caught.
///
/// # Safety
/// `info` must be what the kernel gave a handler of SIGSYS with SA_SIGINFO.
unsafe fn caught(info: *mut libc::siginfo_t) -> i32 {
    // SAFETY: the caller's duty.
    unsafe { (*info.cast::<Siginfo>()).syscall }
}

extern "C" fn on_sigsys(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: `info` is the kernel's.
    tell(unsafe { caught(info) });
    // SAFETY: _exit(2) takes any status.
    unsafe { libc::_exit(0) };
}

/// The seconds that clock_gettime(2) answers.
static ANSWER: AtomicIsize = AtomicIsize::new(0);

extern "C" fn on_sigsys_or_answer(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is the kernel's.
    if c_long::from(unsafe { caught(info) }) != libc::SYS_clock_gettime {
        return on_sigsys(signal, info, context);
    }
    // SAFETY: the context is the kernel's.
    let place = unsafe { register::second_argument(context) };
    let time = [ANSWER.load(Ordering::Relaxed), 0];
    // SAFETY: the caller of clock_gettime(2) has a place for two `long` there.
    unsafe { ptr::with_exposed_provenance_mut::<[isize; 2]>(place).write(time) };
    // SAFETY: the context is the kernel's.
    unsafe { register::answer(context, 0) };
}

//! A child under the filter of an Android release: what it does, and which system call ends it.

use std::env::consts::ARCH;
use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicIsize, Ordering};

use test_support::filter::{self, ALLOW, Rules, TRAP};
use test_support::nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use test_support::nix::sys::signal::{SaFlags, Signal};
use test_support::signals::{self, Register};
use test_support::{child, oracle, vector};

use super::lists;

/// The filter of libc/seccomp/seccomp_policy.cpp, without its binary search. It allows the calls on
/// the list of an architecture, except one. It traps all others, and those of other architectures.
fn filter_of(release: u32, except: Option<u32>) -> Vec<libc::sock_filter> {
    let rules = lists::family(ARCH).iter().map(|arch| {
        let calls = lists::allowed(arch.name, release).into_iter().filter(|call| Some(*call) != except);
        Rules { arch: arch.audit, calls: calls.collect(), listed: ALLOW, others: TRAP }
    });
    filter::program(&rules.collect::<Vec<_>>(), TRAP)
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
    Killed(Signal),
    /// It did not do its work: what is missing, and why.
    NotTried(&'static str, &'static str),
}

// What a child reports if not the number of a system call.
const WELL: i32 = -1;
const WRONG: i32 = -2;
const NO_VECTOR: i32 = -3;
const NO_FILTER: i32 = -4;

thread_local! {
    /// What the children of this thread report: a number in memory of both.
    static REPORT: &'static AtomicI32 = shared();
}

fn shared() -> &'static AtomicI32 {
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: the kernel chooses a place where nothing is.
    let page = unsafe { mmap_anonymous(None, 4.try_into().unwrap(), access, MapFlags::MAP_SHARED) };
    // SAFETY: the page stays mapped, is aligned, and zero is a number.
    unsafe { page.expect("mmap").cast().as_ref() }
}

fn report(what: i32) {
    REPORT.with(|report| report.store(what, Ordering::Relaxed));
}

/// What SIGSYS does to the process.
#[derive(Clone, Copy)]
pub(crate) enum Sigsys {
    /// It kills, as in an app.
    Kills,
    /// A handler reports which system call it was.
    Reports,
    /// The same, but clock_gettime(2) is trapped too, and the handler answers these seconds.
    Answers(i32),
}

/// Does `work` in a child under the filter of a release. `work` says whether the answer was good.
/// It must not allocate: the filter has only the calls of the table.
pub(crate) fn end(release: u32, vdso: Vdso, sigsys: Sigsys, work: impl FnOnce() -> bool) -> End {
    report(0);
    let answered = matches!(sigsys, Sigsys::Answers(_)).then_some(libc::SYS_clock_gettime as u32);
    let mut program = filter_of(release, answered);
    let end = child::end_of(|| {
        let is_removed = matches!(vdso, Vdso::Removed) && oracle::sysinfo_ehdr() != 0;
        if is_removed && vector::change(None, cfg!(feature = "libc")).is_err() {
            report(NO_VECTOR);
            return false;
        }
        match sigsys {
            Sigsys::Kills => {}
            Sigsys::Reports => signals::handle(Signal::SIGSYS, SaFlags::empty(), on_sigsys),
            Sigsys::Answers(seconds) => {
                ANSWER.store(seconds as isize, Ordering::Relaxed);
                signals::handle(Signal::SIGSYS, SaFlags::empty(), on_sigsys_or_answer);
            }
        }
        if filter::install(&mut program).is_err() {
            report(NO_FILTER);
            return false;
        }
        report(if work() { WELL } else { WRONG });
        true
    });
    if let child::End::Signal(signal) = end {
        return End::Killed(signal);
    }
    match REPORT.with(|report| report.load(Ordering::Relaxed)) {
        WELL => End::Well,
        WRONG => End::Wrong,
        NO_VECTOR => End::NotTried("auxv", "the auxiliary vector cannot be changed"),
        NO_FILTER => End::NotTried("seccomp", "a filter cannot be installed"),
        number => End::Trapped(number.unsigned_abs()),
    }
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
    // SAFETY: the kernel wrote such a `siginfo_t` there, as the caller says.
    unsafe { (*info.cast::<Siginfo>()).syscall }
}

extern "C" fn on_sigsys(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: `info` is the kernel's.
    report(unsafe { caught(info) });
    child::leave(0);
}

/// The seconds that clock_gettime(2) answers.
static ANSWER: AtomicIsize = AtomicIsize::new(0);

extern "C" fn on_sigsys_or_answer(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is the kernel's.
    if c_long::from(unsafe { caught(info) }) != libc::SYS_clock_gettime {
        return on_sigsys(signal, info, context);
    }
    // SAFETY: the context is the kernel's.
    let place = *unsafe { signals::register(context, Register::SecondArgument) } as usize;
    let time = [ANSWER.load(Ordering::Relaxed), 0];
    // SAFETY: the caller of clock_gettime(2) has a place for two `long` there.
    unsafe { ptr::with_exposed_provenance_mut::<[isize; 2]>(place).write(time) };
    // SAFETY: the context is the kernel's.
    unsafe { signals::answer(context, 0) };
}

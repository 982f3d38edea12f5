//! The kernel, always: typed system calls with the signatures of the vDSO path.
//!
//! A function may have several system calls (see [`Function`]); they are tried in order. One that the kernel
//! does not have is not tried again, one that a sandbox denies is: sandboxes are per thread.

#![allow(unsafe_code, reason = "one block for each system call")]

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::arch::native::{self, ABI};
use crate::arch::{Function, Shape, Syscall};
use crate::error::Errno;
use crate::types::{ClockId, Cpu, Timespec, Timespec32, Timeval, Timeval32};

/// The seconds since the Epoch, from the kernel: `CLOCK_REALTIME_COARSE`'s, or time(2)'s where that is 64 bits.
///
/// # Errors
/// The first error other than `ENOSYS`, if every system call that can tell the seconds is denied;
/// `EOVERFLOW` after January 2038 where only 32-bit ones are to be had.
///
/// ```
/// assert!(vdso_time::syscall::time()? > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn time() -> Result<i64, Errno> {
    Ok(TIME.read(ClockId::REALTIME_COARSE)?.tv_sec)
}

/// The time since the Epoch, to the microsecond, from the kernel.
///
/// # Errors
/// As those of [`time`].
///
/// ```
/// assert!(vdso_time::syscall::gettimeofday()?.tv_sec > 1_700_000_000);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn gettimeofday() -> Result<Timeval, Errno> {
    GETTIMEOFDAY.read(ClockId::REALTIME).map(Timeval::from)
}

/// The time of a clock, from the kernel.
///
/// # Errors
/// `EINVAL`: the kernel has no such clock. Otherwise as those of [`time`]; a clock's driver may have its own.
///
/// ```
/// use vdso_time::{ClockId, syscall};
///
/// let before = syscall::clock_gettime(ClockId::MONOTONIC)?;
/// let after = vdso_time::clock_gettime(ClockId::MONOTONIC)?;
/// assert!(before <= after);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn clock_gettime(clock: ClockId) -> Result<Timespec, Errno> {
    CLOCK_GETTIME.read(clock)
}

/// The resolution of a clock, from the kernel.
///
/// # Errors
/// As those of [`clock_gettime`].
///
/// ```
/// use vdso_time::{ClockId, syscall};
///
/// println!("one tick is {} ns", syscall::clock_getres(ClockId::REALTIME_COARSE)?.tv_nsec);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn clock_getres(clock: ClockId) -> Result<Timespec, Errno> {
    CLOCK_GETRES.read(clock)
}

/// The CPU and the NUMA node that the thread runs on, from the kernel.
///
/// # Errors
/// Whatever a sandbox answers.
///
/// ```
/// println!("{:?}", vdso_time::syscall::getcpu()?);
/// # Ok::<(), vdso_time::Errno>(())
/// ```
pub fn getcpu() -> Result<Cpu, Errno> {
    let (mut cpu, mut node) = (0, 0);
    let args = [(&raw mut cpu).expose_provenance(), (&raw mut node).expose_provenance(), 0, 0, 0];
    let number = ABI.getcpu.syscalls.first().map_or(u32::MAX, |call| call.number);
    // SAFETY: getcpu writes two `u32`, which `cpu` and `node` are.
    check(unsafe { native::syscall(number, args) })?;
    Ok(Cpu { cpu, node })
}

static TIME: Chain = Chain::new(&ABI.time);
static GETTIMEOFDAY: Chain = Chain::new(&ABI.gettimeofday);
static CLOCK_GETTIME: Chain = Chain::new(&ABI.clock_gettime);
static CLOCK_GETRES: Chain = Chain::new(&ABI.clock_getres);

/// The system calls of a function, and which of them to begin with.
struct Chain {
    function: &'static Function,
    /// The kernel has none of those before this one. A sandbox that answers `ENOSYS` to one thread makes the others
    /// begin here too: what follows is as good until its seconds are not, and then [`Chain::again`] asks.
    first: AtomicUsize,
}

impl Chain {
    const fn new(function: &'static Function) -> Self {
        Self { function, first: AtomicUsize::new(0) }
    }

    /// Asks each system call until one answers, or the kernel says that there is no such clock.
    fn read(&self, clock: ClockId) -> Result<Timespec, Errno> {
        let mut refusal = Errno::ENOSYS;
        let first = self.first.load(Ordering::Relaxed);
        for (index, call) in self.function.syscalls.iter().enumerate().skip(first) {
            match read(call, clock) {
                Ok(time) if call.shape.is_time32() && time.tv_sec < 0 => return self.again(clock),
                Ok(time) => return Ok(time),
                Err(Errno::EINVAL) => return Err(Errno::EINVAL),
                Err(Errno::ENOSYS) => self.missing(index),
                Err(error) if refusal == Errno::ENOSYS => refusal = error,
                Err(_) => {}
            }
        }
        Err(refusal)
    }

    /// Remembers that the kernel has not this system call, unless it is the last.
    fn missing(&self, index: usize) {
        if index + 1 < self.function.syscalls.len() && self.first.load(Ordering::Relaxed) == index {
            self.first.store(index + 1, Ordering::Relaxed);
        }
    }

    /// Asks the 64-bit system calls again, after a 32-bit one answered with negative seconds: it is past January
    /// 2038, and who said that the others were missing, or denied them, may have been a sandbox of another thread.
    #[cold]
    fn again(&self, clock: ClockId) -> Result<Timespec, Errno> {
        let calls = self.function.syscalls.iter().filter(|call| !call.shape.is_time32());
        calls.flat_map(|call| read(call, clock)).next().ok_or(Errno::EOVERFLOW)
    }
}

/// The number of the system call that a function begins with now.
pub(crate) fn number(function: &'static Function) -> u32 {
    let chains = [&TIME, &GETTIMEOFDAY, &CLOCK_GETTIME, &CLOCK_GETRES];
    let chain = chains.into_iter().find(|chain| core::ptr::eq(chain.function, function));
    let first = chain.map_or(0, |chain| chain.first.load(Ordering::Relaxed));
    function.syscalls.get(first).map_or(u32::MAX, |call| call.number)
}

/// Makes one system call, whatever its shape.
fn read(call: &Syscall, clock: ClockId) -> Result<Timespec, Errno> {
    let number = call.number;
    match call.shape {
        Shape::Timespec64 => {
            // SAFETY: the shape says that the call takes a clock and writes this structure.
            unsafe { fill(number, Some(clock)) }
        }
        Shape::Timespec32 if const { ABI.calls(Shape::Timespec32) } => {
            // SAFETY: the same.
            unsafe { fill::<Timespec32>(number, Some(clock)) }.map(Timespec::from)
        }
        Shape::Timeval64 if const { ABI.calls(Shape::Timeval64) } => {
            // SAFETY: the shape says that the call writes this structure, and a time zone to a second place, if any.
            unsafe { fill::<Timeval>(number, None) }.map(Timespec::from)
        }
        Shape::Timeval32 if const { ABI.calls(Shape::Timeval32) } => {
            // SAFETY: the same.
            unsafe { fill::<Timeval32>(number, None) }.map(Timespec::from)
        }
        Shape::Time64 | Shape::Time32 if const { ABI.calls(Shape::Time64) || ABI.calls(Shape::Time32) } => {
            // SAFETY: the shape says that the call writes to its first place, if any; there is none.
            let seconds = check(unsafe { native::syscall(number, [0; 5]) })? as isize;
            Ok(Timespec { tv_sec: seconds as i64, tv_nsec: 0 })
        }
        _ => Err(Errno::ENOSYS),
    }
}

/// Makes a system call that writes a `T`, at its second argument if the first is a clock.
///
/// # Safety
/// The call of this number must write no more than that.
unsafe fn fill<T: Default>(number: u32, clock: Option<ClockId>) -> Result<T, Errno> {
    let mut value = T::default();
    let place = (&raw mut value).expose_provenance();
    let args = match clock {
        Some(clock) => [clock.as_raw() as usize, place, 0, 0, 0],
        None => [place, 0, 0, 0, 0],
    };
    // SAFETY: the caller vouches that `place` is all that is written to.
    check(unsafe { native::syscall(number, args) })?;
    Ok(value)
}

/// A result in `-4095..=-1` is an error.
fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}

/// Whether the page of this address can be read. `rt_sigprocmask` with a `how` that there is not copies the set in,
/// so it knows, and then does nothing: `EFAULT` is a no, and any other error says that a sandbox denied the question.
pub(crate) fn probe(address: usize) -> Result<(), Errno> {
    const NO_SUCH_HOW: usize = !0;
    const SIGSET_SIZE: usize = 8;
    let args = [NO_SUCH_HOW, address, 0, SIGSET_SIZE, 0];
    // SAFETY: with this `how` the call fails, whatever the set, and changes nothing.
    match check(unsafe { native::syscall(ABI.discovery.rt_sigprocmask, args) }) {
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The auxiliary vector's value, by libc; 0 if it has none. `errno` stays what it was.
#[cfg(any(feature = "libc", vdso_time_absent))]
pub(crate) fn getauxval(tag: usize) -> usize {
    if cfg!(miri) {
        return 0; // Miri has no auxiliary vector
    }
    let errno = crate::arch::errno::get();
    // SAFETY: getauxval(3) takes any number.
    let value = unsafe { libc::getauxval(tag as libc::c_ulong) };
    crate::arch::errno::set(errno);
    value as usize
}

/// The auxiliary vector, by the kernel's leave, from nothing but the kernel.
#[cfg(not(any(feature = "libc", vdso_time_absent)))]
pub(crate) mod auxv {
    use super::{ABI, Errno, check, native};

    /// Copies the auxiliary vector (since Linux 6.4); returns the part of `words` that was filled.
    pub(crate) fn get(words: &mut [usize]) -> Result<&[usize], Errno> {
        const PR_GET_AUXV: usize = 0x4155_5856;
        let args = [PR_GET_AUXV, words.as_mut_ptr().expose_provenance(), size_of_val(words), 0, 0];
        // SAFETY: the kernel writes at most this many bytes to `words`.
        let size = check(unsafe { native::syscall(ABI.discovery.prctl, args) })?;
        Ok(words.get(..size / size_of::<usize>()).unwrap_or(words))
    }

    /// Opens /proc/self/auxv.
    pub(crate) fn open() -> Result<usize, Errno> {
        const AT_FDCWD: usize = -100_isize as usize;
        const O_CLOEXEC: usize = 0o2_000_000;
        let args = [AT_FDCWD, c"/proc/self/auxv".as_ptr().expose_provenance(), O_CLOEXEC, 0, 0];
        // SAFETY: the path is a C string; the file is opened for reading.
        check(unsafe { native::syscall(ABI.discovery.openat, args) })
    }

    /// Reads on; returns the part of `words` that was filled.
    pub(crate) fn read(file: usize, words: &mut [usize]) -> Result<&[usize], Errno> {
        let args = [file, words.as_mut_ptr().expose_provenance(), size_of_val(words), 0, 0];
        // SAFETY: the kernel writes at most this many bytes to `words`.
        let size = check(unsafe { native::syscall(ABI.discovery.read, args) })?;
        Ok(words.get(..size / size_of::<usize>()).unwrap_or(words))
    }

    /// Closes the file that [`open`] opened.
    pub(crate) fn close(file: usize) {
        // SAFETY: the file is the caller's, who is done with it.
        let _ = check(unsafe { native::syscall(ABI.discovery.close, [file, 0, 0, 0, 0]) });
    }
}

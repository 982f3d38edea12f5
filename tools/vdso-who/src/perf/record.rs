//! The records of events.

use std::collections::HashSet;
use std::time::SystemTime;

use perf_event::data::{self, Record, SampleRegsAbi};

use crate::mapping::{FileId, Mapping};

/// `PERF_RECORD_MISC_COMM_EXEC`.
const EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_CPUMODE_MASK` and `PERF_RECORD_MISC_KERNEL`.
const MODE: u16 = 7;
const KERNEL: u16 = 1;
/// `PERF_CONTEXT_MAX`: the entries of a call chain that are at least this large are marks, not
/// addresses. One of them is `PERF_CONTEXT_KERNEL`, after which the kernel's addresses follow.
const MARKS: u64 = (-4095_i64) as u64;
const KERNEL_MARK: u64 = (-128_i64) as u64;

/// A record.
pub(crate) enum Event {
    Sample(Box<Sample>),
    /// A process mapped code.
    Mapped(u32, Mapping),
    /// A process was forked. The second id is the parent's.
    Forked(u32, u32),
    /// A process ended.
    Ended(u32),
    /// A thread that is not the main thread of its process has a new name.
    ThreadNamed(u32, u32, String),
    /// A process has a new name. The flag tells whether the process got the name by executing a
    /// program.
    Named(u32, String, bool),
    /// This many records were lost.
    Lost(u64),
}

/// The process id in the records of a process that has no id here, because it is neither in this
/// program's PID namespace nor in a namespace below it.
pub(crate) const OTHER_NAMESPACE: u32 = 0;

/// The process id in the samples of a process that has ended, but whose last thread still runs in
/// the kernel.
pub(crate) const ENDED: u32 = u32::MAX;

/// A sample of a thread.
pub(crate) struct Sample {
    pub(crate) pid: u32,
    pub(crate) thread: u32,
    pub(crate) in_kernel: bool,
    pub(crate) is_64_bit: bool,
    pub(crate) registers: Registers,
    /// On aarch64, the register of the system call's number, if the thread is in the kernel.
    pub(crate) number: Option<u64>,
    /// The register of the first argument, on `x86_64` in 64-bit programs. In a system call, and at
    /// the first instruction of a function, it still contains the argument.
    pub(crate) first_argument: Option<u64>,
    /// A copy of the user stack, from the stack pointer on.
    pub(crate) stack: Vec<u8>,
    /// The return addresses that the kernel found by following frame pointers. Go calls the vDSO on
    /// another stack, so the copy of the stack does not contain Go's callers, and the unwinder
    /// takes them from this field.
    pub(crate) callchain: Vec<u64>,
    /// The program counter and the return addresses in the kernel, if the thread is in the kernel
    /// and this program has the privileges to see them.
    pub(crate) kernel_chain: Vec<u64>,
}

impl Sample {
    /// Returns whether the thread belongs to the kernel and so has no user registers.
    pub(crate) fn is_of_kernel_thread(&self) -> bool {
        self.registers.pc == 0
    }
}

/// The registers of the thread in user space. A kernel thread has none, so its program counter is 0
/// here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// 0 on x86.
    pub(crate) lr: u64,
}

/// Returns the time of a record, and what it reports. Returns `None` for a sample of a process in
/// `unwatched_pids`.
pub(super) fn event(
    record: &perf_event::Record<'_>,
    unwatched_pids: &HashSet<u32>,
) -> Option<(u64, Event)> {
    let misc = record.misc();
    let event = match record.parse_record().ok()? {
        Record::Sample(sample) => {
            if unwatched_pids.contains(&sample.pid()?) {
                return None;
            }
            let time = sample.time()?;
            return Some((time, Event::Sample(taken(&sample, misc)?)));
        }
        Record::Mmap2(map) => Event::Mapped(map.pid, mapping(&map)?),
        Record::Fork(fork) if fork.pid != fork.ppid => Event::Forked(fork.pid, fork.ppid),
        Record::Exit(exit) if exit.pid == exit.tid => Event::Ended(exit.pid),
        Record::Comm(comm) if comm.pid == comm.tid || misc & EXEC != 0 => {
            let name = String::from_utf8_lossy(&comm.comm).into();
            Event::Named(comm.pid, name, misc & EXEC != 0)
        }
        Record::Comm(comm) => {
            let name = String::from_utf8_lossy(&comm.comm).into();
            Event::ThreadNamed(comm.pid, comm.tid, name)
        }
        Record::Lost(lost) => Event::Lost(lost.lost),
        _ => return None,
    };
    // Records other than samples end with `struct sample_id`, whose last field is the time.
    let bytes = record.to_contiguous();
    let time = bytes.last_chunk()?;
    Some((u64::from_ne_bytes(*time), event))
}

fn mapping(map: &data::Mmap2<'_>) -> Option<Mapping> {
    Some(Mapping {
        range: map.addr..map.addr.checked_add(map.len)?,
        offset: map.pgoff,
        path: String::from_utf8_lossy(&map.filename).into(),
        file: FileId {
            device: (map.maj()?, map.min()?),
            inode: map.ino()?,
        },
        seen: SystemTime::now(),
    })
}

fn taken(sample: &data::Sample<'_>, misc: u16) -> Option<Box<Sample>> {
    let mut values: &[u64] = &[];
    let mut is_64_bit = true;
    if let Some(user) = sample.regs_user() {
        values = &user.regs;
        is_64_bit = user.abi == SampleRegsAbi::ABI_64;
    }
    let register = |index: usize| values.get(index).copied().unwrap_or(0);
    let in_kernel = misc & MODE == KERNEL;
    let mut number = None;
    let mut first_argument = None;
    let registers = if cfg!(target_arch = "aarch64") {
        if in_kernel {
            number = Some(register(usize::from(is_64_bit)));
        }
        Registers {
            fp: register(2),
            lr: register(3),
            sp: register(4),
            pc: register(5),
        }
    } else {
        if is_64_bit {
            first_argument = Some(register(0));
        }
        Registers {
            fp: register(1),
            sp: register(2),
            pc: register(3),
            lr: 0,
        }
    };
    let (kernel_chain, callchain) = halves(sample.callchain().unwrap_or_default());
    Some(Box::new(Sample {
        pid: sample.pid()?,
        thread: sample.tid()?,
        in_kernel,
        is_64_bit,
        registers,
        number,
        first_argument,
        stack: sample.stack_user().unwrap_or_default().to_vec(),
        callchain,
        kernel_chain,
    }))
}

/// Returns the kernel's half of a call chain, and the return addresses of the program.
fn halves(chain: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let mut kernel = Vec::new();
    let mut user = Vec::new();
    let mut is_kernels = false;
    for address in chain {
        if *address >= MARKS {
            is_kernels = *address == KERNEL_MARK;
        } else if is_kernels {
            kernel.push(*address);
        } else {
            user.push(*address);
        }
    }
    if !user.is_empty() {
        // The first address is the program counter.
        user.remove(0);
    }
    (kernel, user)
}

//! Events of perf_event_open(2), and their records.
//!
//! Where the caller may watch every process there is one event for each CPU, which also sees
//! threads that live for less than a period. Elsewhere there is one for each thread and CPU,
//! because the kernel maps no buffer of an event that new threads inherit on all CPUs.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use perf_event::data::Record;
use perf_event::events::{Breakpoint, Software};
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use crate::proc;
use crate::stack::{FileId, Mapping};

/// Bytes of the user stack in a record: of a sample, and of a breakpoint.
const STACK: [u32; 2] = [8192, 2048];
/// Bytes of all buffers, and the most and the fewest of one.
const BUFFERS: usize = 64 << 20;
const BUFFER: [usize; 2] = [16 << 20, 1 << 20];
/// Bytes of a buffer without CAP_IPC_LOCK: `kernel.perf_event_mlock_kb` allows the first.
const SMALL: [usize; 2] = [512 << 10, 64 << 10];
/// Registers of `enum perf_event_x86_regs` and `enum perf_event_arm_regs`.
const REGISTERS: &[u32] = if cfg!(target_arch = "aarch64") { &[7, 8, 29, 30, 31, 32] } else { &[6, 7, 8] };
/// `PERF_RECORD_MISC_COMM_EXEC`.
const EXEC: u16 = 1 << 13;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;
/// `PERF_CONTEXT_MAX`: larger entries of a call chain are marks.
const MARKS: u64 = (-4095_i64) as u64;

/// What is watched.
pub(crate) enum Scope {
    Process(u32),
    Cgroup(File),
    Host,
}

/// A record.
pub(crate) enum Event {
    Sample(Box<Taken>),
    /// A process mapped code.
    Mapped(u32, Mapping),
    Forked {
        pid: u32,
        parent: u32,
    },
    /// A process has a new name, because it executed a program or chose one.
    Named {
        pid: u32,
        name: String,
        executed: bool,
    },
    Lost(u64),
}

/// A sample of a thread.
pub(crate) struct Taken {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) in_kernel: bool,
    pub(crate) is_64_bit: bool,
    pub(crate) registers: Registers,
    /// The number of the system call on aarch64, if the thread is in one.
    pub(crate) number: Option<u64>,
    /// A copy of the user stack, from the stack pointer on.
    pub(crate) stack: Vec<u8>,
    /// Return addresses by the kernel, which follows frame pointers. Go calls the vDSO on another
    /// stack, so the copy ends before Go's callers.
    pub(crate) callchain: Vec<u64>,
}

/// The user's registers. A kernel thread has none, and a program counter of 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// 0 on x86.
    pub(crate) lr: u64,
}

#[derive(Default)]
pub(crate) struct Events {
    /// One for each CPU. Their events also report mappings and names.
    rings: Vec<Sampler>,
    /// Those of other threads, which write to the same rings.
    others: Vec<Counter>,
    breakpoints: Vec<Counter>,
    /// Whether samples are taken in the kernel, too.
    pub(crate) sees_kernel: bool,
    /// Whether there is one event for each CPU.
    pub(crate) sees_every_thread: bool,
}

impl Events {
    /// Opens events that make a sample after each `period` nanoseconds of CPU time. `follows` is
    /// for the processes that a process starts.
    pub(crate) fn sample(scope: &Scope, period: u64, follows: bool) -> io::Result<Self> {
        set_limits();
        let opened = Self::of_cpus(scope, period);
        match *scope {
            Scope::Process(pid) if is_denied(&opened) => {
                let mut options = Threads { sees_kernel: true, follows, period, addresses: &[] };
                let opened = Self::of_threads(pid, &options);
                options.sees_kernel = false;
                if is_denied(&opened) { Self::of_threads(pid, &options) } else { opened }
            }
            _ => opened,
        }
    }

    /// Opens events that make a record when the process executes one of these addresses. They are
    /// disabled.
    pub(crate) fn count(pid: u32, addresses: &[u64]) -> io::Result<Self> {
        set_limits();
        Self::of_threads(pid, &Threads { sees_kernel: false, follows: false, period: 0, addresses })
    }

    fn of_cpus(scope: &Scope, period: u64) -> io::Result<Self> {
        let mut events = Self { sees_kernel: true, sees_every_thread: true, ..Self::default() };
        let cpus = online_cpus()?;
        for cpu in &cpus {
            let mut builder = builder(Software::CPU_CLOCK, *cpu, true, STACK[0]);
            match scope {
                Scope::Cgroup(folder) => builder.observe_cgroup(folder),
                _ => builder.any_pid(),
            };
            // An idle CPU is no process's time.
            describe(builder.sample_period(period).exclude_idle(true));
            events.rings.push(mapped(&mut builder, cpus.len())?);
        }
        Ok(events)
    }

    fn of_threads(pid: u32, options: &Threads<'_>) -> io::Result<Self> {
        let mut events = Self { sees_kernel: options.sees_kernel, ..Self::default() };
        let cpus = online_cpus()?;
        // A thread that is made meanwhile by one that has events inherits them. A second
        // list would count it twice.
        for tid in proc::threads(pid).map_err(|_| Errno::ESRCH)? {
            for (at, cpu) in cpus.iter().enumerate() {
                match events.open_one(tid as i32, *cpu, (at, cpus.len()), options) {
                    // This thread ended. It may be the main thread.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    opened => opened?,
                }
            }
        }
        if events.rings.is_empty() { Err(Errno::ESRCH.into()) } else { Ok(events) }
    }

    fn open_one(
        &mut self,
        tid: i32,
        cpu: usize,
        (at, cpus): (usize, usize),
        options: &Threads<'_>,
    ) -> io::Result<()> {
        let inherited = |builder: &mut Builder<'_>| {
            builder.observe_pid(tid).inherit(true).inherit_thread(!options.follows);
        };
        let is_sampled = options.addresses.is_empty();
        let kind = if is_sampled { Software::CPU_CLOCK } else { Software::DUMMY };
        let mut builder = builder(kind, cpu, options.sees_kernel, STACK[usize::from(!is_sampled)]);
        inherited(&mut builder);
        describe(builder.sample_period(options.period));
        if self.rings.len() <= at {
            self.rings.push(mapped(&mut builder, cpus)?);
        } else {
            let counter = build(&mut builder)?;
            self.send_to_ring(&counter, at)?;
            self.others.push(counter);
        }
        for address in options.addresses {
            let mut builder = self::builder(Breakpoint::execute(*address), cpu, false, STACK[1]);
            inherited(builder.sample_period(1));
            let counter = builder.build()?;
            self.send_to_ring(&counter, at)?;
            self.breakpoints.push(counter);
        }
        Ok(())
    }

    #[allow(unsafe_code, reason = "perf-event2 has no call of this ioctl")]
    fn send_to_ring(&self, counter: &Counter, at: usize) -> io::Result<()> {
        /// `_IO('$', 5)`.
        const SET_OUTPUT: libc::Ioctl = 0x2405;
        // SAFETY: this ioctl takes a number, and both descriptors are open.
        let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, self.rings[at].as_raw_fd()) };
        Errno::result(result).map(drop).map_err(io::Error::from)
    }

    pub(crate) fn enable_breakpoints(&mut self) {
        // A thread that ended cannot be enabled.
        self.breakpoints.iter_mut().for_each(|counter| drop(counter.enable()));
    }

    pub(crate) fn disable_breakpoints(&mut self) {
        self.breakpoints.iter_mut().for_each(|counter| drop(counter.disable()));
    }

    /// The executions of the breakpoints.
    pub(crate) fn executions(&mut self) -> u64 {
        self.breakpoints.iter_mut().filter_map(|counter| counter.read().ok()).sum()
    }

    /// Takes the new records out of the buffers, ordered by time in nanoseconds. With `only`, the
    /// samples of other processes are left out.
    pub(crate) fn drain(&mut self, only: Option<u32>) -> Vec<(u64, Event)> {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            // A process may write records faster than this loop reads them.
            for _ in 0..100_000 {
                let Some(record) = ring.next_record() else { break };
                found.extend(event(&record, only));
            }
        }
        found.sort_by_key(|(time, _)| *time);
        found
    }
}

/// Events of the threads of a process.
struct Threads<'a> {
    sees_kernel: bool,
    follows: bool,
    /// Of samples.
    period: u64,
    /// Of breakpoints.
    addresses: &'a [u64],
}

fn builder<'a, E: perf_event::events::Event>(
    event: E,
    cpu: usize,
    sees_kernel: bool,
    stack: u32,
) -> Builder<'a> {
    let mut builder = Builder::new(event);
    let mask = REGISTERS.iter().fold(0, |mask, register| mask | 1 << register);
    builder.one_cpu(cpu).exclude_kernel(!sees_kernel).exclude_callchain_kernel(true);
    builder.sample_id_all(true).sample_regs_user(mask).sample_stack_user(stack);
    let content = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
    builder.sample(content | SampleFlag::REGS_USER | SampleFlag::STACK_USER);
    builder
}

/// Lets an event report mappings, names and processes.
fn describe(builder: &mut Builder<'_>) {
    builder.enabled(true).mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
}

fn build(builder: &mut Builder<'_>) -> io::Result<Counter> {
    match builder.build() {
        // Linux before 5.13 has no `inherit_thread`. The events then follow new processes, too.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => builder.inherit_thread(false).build(),
        built => built,
    }
}

/// The event with the largest buffer that the kernel allows.
fn mapped(builder: &mut Builder<'_>, cpus: usize) -> io::Result<Sampler> {
    let size = (BUFFERS / cpus).clamp(BUFFER[1], BUFFER[0]);
    let mut result = build(builder)?.sampled(size);
    for size in SMALL {
        if result.is_err() {
            result = build(builder)?.sampled(size);
        }
    }
    result
}

fn is_denied<T>(result: &io::Result<T>) -> bool {
    let error = result.as_ref().err().and_then(io::Error::raw_os_error);
    [Some(libc::EACCES), Some(libc::EPERM)].contains(&error)
}

fn event(record: &perf_event::Record<'_>, only: Option<u32>) -> Option<(u64, Event)> {
    let (misc, bytes) = (record.misc(), record.to_contiguous());
    // A sample begins with the address and the process.
    let sampled = bytes.get(8..12).map(|pid| u32::from_ne_bytes(pid.try_into().unwrap_or_default()));
    if record.ty() == SAMPLE && only.is_some_and(|only| sampled != Some(only)) {
        return None;
    }
    // Other records than samples end with `struct sample_id`, whose last field is the time.
    let end = bytes.last_chunk().map_or(0, |time| u64::from_ne_bytes(*time));
    match record.parse_record().ok()? {
        Record::Sample(sample) => Some((sample.time()?, Event::Sample(Box::new(taken(&sample, misc)?)))),
        Record::Mmap2(map) => {
            let range = map.addr..map.addr.checked_add(map.len)?;
            let path: Rc<str> = String::from_utf8_lossy(&map.filename).into();
            let file = FileId { device: (map.maj()?, map.min()?), inode: map.ino()? };
            Some((end, Event::Mapped(map.pid, Mapping { range, offset: map.pgoff, path, file })))
        }
        Record::Fork(fork) if fork.pid != fork.ppid => {
            Some((end, Event::Forked { pid: fork.pid, parent: fork.ppid }))
        }
        Record::Comm(comm) if comm.pid == comm.tid || misc & EXEC != 0 => {
            let name = String::from_utf8_lossy(&comm.comm).into_owned();
            Some((end, Event::Named { pid: comm.pid, name, executed: misc & EXEC != 0 }))
        }
        Record::Lost(lost) => Some((end, Event::Lost(lost.lost))),
        _ => None,
    }
}

fn taken(sample: &perf_event::data::Sample<'_>, misc: u16) -> Option<Taken> {
    let user = sample.regs_user();
    let is_64_bit = user.is_none_or(|user| user.abi == perf_event::data::SampleRegsAbi::ABI_64);
    let register = |index: usize| user.and_then(|user| user.regs.get(index).copied()).unwrap_or(0);
    let in_kernel = misc & 7 == 1;
    let (registers, number) = if cfg!(target_arch = "aarch64") {
        let number = register(usize::from(is_64_bit));
        let [fp, lr, sp, pc] = [2, 3, 4, 5].map(register);
        (Registers { pc, sp, fp, lr }, in_kernel.then_some(number))
    } else {
        let [fp, sp, pc] = [0, 1, 2].map(register);
        (Registers { pc, sp, fp, lr: 0 }, None)
    };
    // The first address is the program counter.
    let callchain = sample.callchain().unwrap_or_default();
    let callchain = callchain.iter().copied().filter(|address| *address < MARKS);
    Some(Taken {
        pid: sample.pid()?,
        tid: sample.tid()?,
        in_kernel,
        is_64_bit,
        registers,
        number,
        stack: sample.stack_user().unwrap_or_default().to_vec(),
        callchain: callchain.skip(1).collect(),
    })
}

/// Four times the limit of `stack`, for what that does not count.
const MOST_MEMORY: u64 = 8 << 30;

/// Limits the memory, and raises the limit of open files: each event is one.
fn set_limits() {
    if let Ok((memory, most)) = getrlimit(Resource::RLIMIT_AS) {
        let _ = setrlimit(Resource::RLIMIT_AS, memory.min(MOST_MEMORY), most);
    }
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// The CPUs of a list as `0-3,8`.
fn online_cpus() -> io::Result<Vec<usize>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let named = |error| io::Error::other(format!("cannot read {ONLINE}: {error}: mount /sys"));
    let ranges = fs::read_to_string(ONLINE).map_err(named)?;
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    Ok(ranges.trim().split(',').filter_map(range).flatten().collect())
}

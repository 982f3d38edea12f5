//! Events of perf_event_open(2), and their records.
//!
//! The kernel maps no buffer of an event that new threads inherit on all CPUs. So there is one
//! event for each thread and CPU, and one buffer for each CPU.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use perf_event::data::Record;
use perf_event::events::{Breakpoint, Software};
use perf_event::{Builder, Counter, SampleFlag, Sampler};

/// Bytes of the user stack in a record.
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
/// `PERF_CONTEXT_MAX`: larger entries of a call chain are marks.
const MARKS: u64 = (-4095_i64) as u64;

/// What makes a record.
pub(crate) enum Trigger<'a> {
    /// Every so many nanoseconds of a thread's CPU time.
    Time(u64),
    /// The execution of an instruction at one of these addresses.
    Execution(&'a [u64]),
}

/// A record.
pub(crate) enum Event {
    Sample(Box<Taken>),
    /// The process mapped code.
    Mapped,
    /// This process executed a program.
    Executed(u32),
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

/// The user's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// 0 on x86.
    pub(crate) lr: u64,
}

#[derive(Default)]
pub(crate) struct Events {
    /// One for each CPU; its event also says what is mapped and executed.
    rings: Vec<Sampler>,
    /// The same of the other threads.
    leaders: Vec<Counter>,
    breakpoints: Vec<Counter>,
    /// Whether samples are taken in the kernel, too.
    pub(crate) sees_kernel: bool,
}

impl Events {
    /// Opens the events of a process. Breakpoints are disabled.
    pub(crate) fn open(pid: u32, trigger: &Trigger<'_>) -> io::Result<Self> {
        set_limits();
        match Self::open_at(pid, trigger, true) {
            Err(error) if [Some(libc::EACCES), Some(libc::EPERM)].contains(&error.raw_os_error()) => {
                Self::open_at(pid, trigger, false)
            }
            opened => opened,
        }
    }

    fn open_at(pid: u32, trigger: &Trigger<'_>, sees_kernel: bool) -> io::Result<Self> {
        let mut events = Self { sees_kernel, ..Self::default() };
        let cpus = online_cpus()?;
        // A thread that is made meanwhile by one that has events inherits them. A second
        // list would count it twice.
        for tid in threads(pid)? {
            for (at, cpu) in cpus.iter().enumerate() {
                let opened = events.open_one(tid, (*cpu, at, cpus.len()), trigger);
                match opened {
                    // This thread ended. It may be the main thread.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    opened => opened?,
                }
            }
        }
        if events.rings.is_empty() { Err(Errno::ESRCH.into()) } else { Ok(events) }
    }

    /// `cpu` is the CPU, its index, and how many there are.
    fn open_one(&mut self, tid: i32, cpu: (usize, usize, usize), trigger: &Trigger<'_>) -> io::Result<()> {
        let (cpu, at, cpus) = cpu;
        let mut leader = match *trigger {
            Trigger::Time(period) => {
                let mut builder = self.builder(Software::CPU_CLOCK, tid, cpu, STACK[0]);
                builder.sample_period(period);
                builder
            }
            Trigger::Execution(_) => self.builder(Software::DUMMY, tid, cpu, STACK[1]),
        };
        leader.enabled(true).mmap(true).comm(true).comm_exec(true);
        if self.rings.len() <= at {
            self.rings.push(mapped(&mut leader, cpus)?);
        } else {
            let leader = build(&mut leader)?;
            self.send_to_ring(&leader, at)?;
            self.leaders.push(leader);
        }
        let Trigger::Execution(addresses) = trigger else { return Ok(()) };
        for address in *addresses {
            let mut builder = self.builder(Breakpoint::execute(*address), tid, cpu, STACK[1]);
            let counter = build(builder.sample_period(1))?;
            self.send_to_ring(&counter, at)?;
            self.breakpoints.push(counter);
        }
        Ok(())
    }

    fn builder<E: perf_event::events::Event>(
        &self,
        event: E,
        tid: i32,
        cpu: usize,
        stack: u32,
    ) -> Builder<'_> {
        let mut builder = Builder::new(event);
        let mask = REGISTERS.iter().fold(0, |mask, register| mask | 1 << register);
        builder
            .observe_pid(tid)
            .one_cpu(cpu)
            .inherit(true)
            .inherit_thread(true)
            .exclude_kernel(!self.sees_kernel);
        builder.sample_id_all(true).exclude_callchain_kernel(true);
        builder.sample_regs_user(mask).sample_stack_user(stack);
        let content = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
        builder.sample(content | SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder
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

    /// The executions of the breakpoints, and the CPU time of the threads while they were enabled.
    pub(crate) fn counts(&mut self, addresses: usize) -> (u64, Duration) {
        let data = self.breakpoints.iter_mut().filter_map(|counter| counter.read_full().ok());
        let add = |(count, time), data: perf_event::CounterData| {
            (count + data.count(), time + data.time_running().unwrap_or_default())
        };
        let (count, time) = data.fold((0, Duration::ZERO), add);
        (count, time / addresses.max(1) as u32)
    }

    /// Takes the new records out of the buffers, ordered by time in nanoseconds.
    pub(crate) fn drain(&mut self) -> Vec<(u64, Event)> {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            // A process may write records faster than this loop reads them.
            for _ in 0..100_000 {
                let Some(record) = ring.next_record() else { break };
                found.extend(event(&record));
            }
        }
        found.sort_by_key(|(time, _)| *time);
        found
    }
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

fn event(record: &perf_event::Record<'_>) -> Option<(u64, Event)> {
    let (misc, bytes) = (record.misc(), record.to_contiguous());
    // Other records than samples end with `struct sample_id`, whose last field is the time.
    let end = bytes.last_chunk().map_or(0, |time| u64::from_ne_bytes(*time));
    match record.parse_record().ok()? {
        Record::Sample(sample) => {
            let user = sample.regs_user()?;
            let is_64_bit = user.abi == perf_event::data::SampleRegsAbi::ABI_64;
            let register = |index: usize| user.regs.get(index).copied().unwrap_or(0);
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
            let callchain = sample.callchain()?.iter().copied().filter(|address| *address < MARKS);
            let taken = Taken {
                pid: sample.pid()?,
                tid: sample.tid()?,
                in_kernel,
                is_64_bit,
                registers,
                number,
                stack: sample.stack_user()?.to_vec(),
                callchain: callchain.skip(1).collect(),
            };
            Some((sample.time()?, Event::Sample(Box::new(taken))))
        }
        Record::Mmap(_) => Some((end, Event::Mapped)),
        Record::Comm(comm) if misc & EXEC != 0 => Some((end, Event::Executed(comm.pid))),
        Record::Lost(lost) => Some((end, Event::Lost(lost.lost))),
        _ => None,
    }
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

fn threads(pid: u32) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| Errno::ESRCH)?.flatten();
    let mut threads: Vec<i32> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    Ok(threads)
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

//! Events of perf_event_open(2), and their records.
//!
//! Where the caller may watch every process there is one event for each CPU, which also sees
//! threads that live for less than a period. Elsewhere there is one for each thread and CPU,
//! because the kernel maps no buffer of an event that new threads inherit on all CPUs.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::process::id;

use nix::errno::Errno;
use perf_event::data::Record;
use perf_event::events::{self, Breakpoint, Software};
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use crate::mapping::{FileId, Mapping};
use crate::{Error, proc};

/// Bytes of the user stack in a record: of a sample, and of a breakpoint.
const STACK: [u32; 2] = [8192, 2048];
/// Bytes of all buffers, and of the buffers that `kernel.perf_event_mlock_kb` allows without
/// CAP_IPC_LOCK.
const BUFFERS: usize = 64 << 20;
const SMALL: [usize; 2] = [512 << 10, 64 << 10];
/// Registers of `enum perf_event_x86_regs` and `enum perf_event_arm_regs`.
const REGISTERS: &[u32] = if cfg!(target_arch = "aarch64") {
    &[7, 8, 29, 30, 31, 32]
} else {
    &[6, 7, 8]
};
/// `PERF_RECORD_MISC_COMM_EXEC`.
const EXEC: u16 = 1 << 13;
/// `PERF_CONTEXT_MAX`: larger entries of a call chain are marks.
const MARKS: u64 = (-4095_i64) as u64;

/// A record.
pub(crate) enum Event {
    Sample(Box<Taken>),
    /// A process mapped code.
    Mapped(u32, Mapping),
    /// A process, and its parent.
    Forked(u32, u32),
    /// A process has a new name, and whether because it executed a program.
    Named(u32, String, bool),
    Lost(u64),
}

/// A sample of a thread.
pub(crate) struct Taken {
    pub(crate) pid: u32,
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
    /// Events of other threads and breakpoints, which write to the same rings.
    others: Vec<Counter>,
    /// Whether there is one event for each CPU, which also makes samples in the kernel.
    pub(crate) sees_all: bool,
}

/// Which events are opened.
pub(crate) struct Plan<'a> {
    /// The processes, unless it is a cgroup or the host. Of the first one the events must open.
    pub(crate) pids: &'a [u32],
    pub(crate) cgroup: Option<&'a File>,
    /// Whether also for the processes that it starts.
    pub(crate) follows: bool,
    /// Nanoseconds of CPU time between two samples.
    pub(crate) period: u64,
    /// Makes a record when one of these is executed, instead of samples.
    pub(crate) addresses: &'a [u64],
}

impl Plan<'_> {
    fn is_exact(&self) -> bool {
        !self.addresses.is_empty()
    }
}

impl Events {
    /// Opens the events that see most of what the kernel allows.
    pub(crate) fn open(plan: &Plan<'_>) -> io::Result<Self> {
        // A breakpoint is a process's own.
        if !plan.is_exact() {
            let opened = Self {
                sees_all: true,
                ..Self::default()
            }
            .opened(plan);
            let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            if plan.pids.is_empty() || !opened.as_ref().is_err_and(is_denied) {
                return opened;
            }
        }
        Self::default().opened(plan)
    }

    fn opened(mut self, plan: &Plan<'_>) -> io::Result<Self> {
        let cpus = online_cpus()?;
        // Counted reads come faster than samples.
        let most = if plan.is_exact() { 16 << 20 } else { 8 << 20 };
        let size = (BUFFERS / cpus.len().max(1)).clamp(1 << 20, most);
        // A thread that is made meanwhile by one that has events inherits them. A second
        // list would count it twice.
        let mut threads = Vec::new();
        for pid in plan.pids.iter().filter(|_| !self.sees_all) {
            threads.extend(
                proc::threads(*pid)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|thread| (*pid, thread)),
            );
        }
        if self.sees_all || plan.pids.is_empty() {
            threads.push((0, 0));
        }
        for (pid, thread) in threads {
            for (at, cpu) in cpus.iter().enumerate() {
                match self.open_one(plan, thread as i32, *cpu, at, size) {
                    // This thread ended. It may be the main thread.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // A child may have other rights.
                    Err(_) if plan.pids.iter().skip(1).any(|child| *child == pid) => {}
                    opened => opened?,
                }
            }
        }
        if self.rings.is_empty() {
            Err(Errno::ESRCH.into())
        } else {
            Ok(self)
        }
    }

    fn open_one(
        &mut self,
        plan: &Plan<'_>,
        tid: i32,
        cpu: usize,
        at: usize,
        size: usize,
    ) -> io::Result<()> {
        let kind = if plan.is_exact() {
            Software::DUMMY
        } else {
            Software::CPU_CLOCK
        };
        let mut builder = self.builder(plan, kind, tid, cpu);
        // The event also reports mappings, names and processes. Idle time is excluded, because no
        // process spends it.
        builder
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true);
        builder.sample_period(plan.period).exclude_idle(true);
        if self.rings.len() <= at {
            self.rings.push(mapped(&mut builder, size)?);
        } else {
            self.send_to_ring(build(&mut builder)?, at)?;
        }
        for address in plan.addresses {
            let mut builder = self.builder(plan, Breakpoint::execute(*address), tid, cpu);
            self.send_to_ring(builder.sample_period(1).build()?, at)?;
        }
        Ok(())
    }

    fn builder<'a>(
        &self,
        plan: &Plan<'a>,
        event: impl events::Event,
        tid: i32,
        cpu: usize,
    ) -> Builder<'a> {
        let mut builder = Builder::new(event);
        match plan.cgroup {
            Some(folder) => builder.observe_cgroup(folder),
            None if self.sees_all => builder.any_pid(),
            None => builder
                .observe_pid(tid)
                .inherit(true)
                .inherit_thread(!plan.follows),
        };
        let mask = REGISTERS
            .iter()
            .fold(0, |mask, register| mask | 1 << register);
        builder
            .enabled(true)
            .one_cpu(cpu)
            .exclude_kernel(!self.sees_all)
            .exclude_callchain_kernel(true);
        builder
            .sample_id_all(true)
            .sample_regs_user(mask)
            .sample_stack_user(STACK[usize::from(plan.is_exact())]);
        let content = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
        builder.sample(content | SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder
    }

    #[allow(unsafe_code, reason = "perf-event2 has no call of this ioctl")]
    fn send_to_ring(&mut self, counter: Counter, at: usize) -> io::Result<()> {
        /// `_IO('$', 5)`.
        const SET_OUTPUT: libc::Ioctl = 0x2405;
        // SAFETY: this ioctl takes a number, and both descriptors are open.
        let result =
            unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, self.rings[at].as_raw_fd()) };
        self.others.push(counter);
        Ok(Errno::result(result).map(drop)?)
    }

    /// Returns the executions of the breakpoints.
    pub(crate) fn executions(&mut self) -> u64 {
        self.others
            .iter_mut()
            .filter_map(|counter| counter.read().ok())
            .sum()
    }

    /// Takes the new records out of the buffers, ordered by time. The samples of `others` are
    /// left out.
    pub(crate) fn drain(&mut self, others: &HashSet<u32>) -> impl Iterator<Item = Event> + use<> {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            // A process may write records faster than this loop reads them.
            for _ in 0..100_000 {
                let Some(record) = ring.next_record() else {
                    break;
                };
                found.extend(event(&record, others));
            }
        }
        found.sort_by_key(|(time, _)| *time);
        found.into_iter().map(|(_, event)| event)
    }
}

fn build(builder: &mut Builder<'_>) -> io::Result<Counter> {
    match builder.build() {
        // Linux before 5.13 has no `inherit_thread`. The events then follow new processes, too.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            builder.inherit_thread(false).build()
        }
        built => built,
    }
}

/// Maps the largest buffer that the kernel allows for an event.
fn mapped(builder: &mut Builder<'_>, largest: usize) -> io::Result<Sampler> {
    let mut sampled = |size| build(builder)?.sampled(size);
    sampled(largest)
        .or_else(|_| sampled(SMALL[0]))
        .or_else(|_| sampled(SMALL[1]))
}

fn event(record: &perf_event::Record<'_>, others: &HashSet<u32>) -> Option<(u64, Event)> {
    let misc = record.misc();
    // Other records than samples end with `struct sample_id`, whose last field is the time.
    let end = record
        .to_contiguous()
        .last_chunk()
        .map_or(0, |time| u64::from_ne_bytes(*time));
    let event = match record.parse_record().ok()? {
        Record::Sample(sample) if sample.pid().is_some_and(|pid| others.contains(&pid)) => {
            return None;
        }
        Record::Sample(sample) => {
            return Some((sample.time()?, Event::Sample(taken(&sample, misc)?)));
        }
        Record::Mmap2(map) => {
            let range = map.addr..map.addr.checked_add(map.len)?;
            let path = String::from_utf8_lossy(&map.filename).into();
            let file = FileId {
                device: (map.maj()?, map.min()?),
                inode: map.ino()?,
            };
            Event::Mapped(
                map.pid,
                Mapping {
                    range,
                    offset: map.pgoff,
                    path,
                    file,
                },
            )
        }
        Record::Fork(fork) if fork.pid != fork.ppid => Event::Forked(fork.pid, fork.ppid),
        Record::Comm(comm) if comm.pid == comm.tid || misc & EXEC != 0 => Event::Named(
            comm.pid,
            String::from_utf8_lossy(&comm.comm).into(),
            misc & EXEC != 0,
        ),
        Record::Lost(lost) => Event::Lost(lost.lost),
        _ => return None,
    };
    Some((end, event))
}

fn taken(sample: &perf_event::data::Sample<'_>, misc: u16) -> Option<Box<Taken>> {
    let user = sample.regs_user();
    let is_64_bit = user.is_none_or(|user| user.abi == perf_event::data::SampleRegsAbi::ABI_64);
    let register = |index: usize| {
        user.and_then(|user| user.regs.get(index).copied())
            .unwrap_or(0)
    };
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
    Some(Box::new(Taken {
        pid: sample.pid()?,
        in_kernel,
        is_64_bit,
        registers,
        number,
        stack: sample.stack_user().unwrap_or_default().to_vec(),
        callchain: callchain.skip(1).collect(),
    }))
}

/// Parses a list of CPUs as `0-3,8`.
fn online_cpus() -> io::Result<Vec<usize>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let named = |error| io::Error::other(format!("cannot read {ONLINE}: {error}: mount /sys"));
    let ranges = fs::read_to_string(ONLINE).map_err(named)?;
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    Ok(ranges
        .trim()
        .split(',')
        .filter_map(range)
        .flatten()
        .collect())
}

/// Says why the events of a plan were not opened, and what to do.
pub(crate) fn explain(error: &io::Error, plan: &Plan<'_>) -> Error {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let paranoid = format!("kernel.perf_event_paranoid is {}", paranoid.trim());
    let is_filtered = proc::status(id(), "Seccomp").as_deref() == Some("2");
    let text = match (error.raw_os_error(), plan.pids.first()) {
        (Some(libc::EPERM | libc::EACCES | libc::ENOSYS), _) if is_filtered => format!(
            "perf_event_open(2) is denied, by a seccomp filter or because {paranoid}: run it outside of the \
             container, or with `docker run --cap-add PERFMON`. If the filter still denies the call, add \
             `--security-opt seccomp=unconfined`. That removes the whole filter, so do it for the measurement only"
        ),
        (Some(libc::EPERM | libc::EACCES), _) => format!(
            "perf_event_open(2) is denied ({paranoid}): run it as root or with CAP_PERFMON and CAP_SYS_PTRACE, or \
             run `sudo sysctl kernel.perf_event_paranoid=2` for your own processes, or 0 for --all"
        ),
        (Some(libc::ESRCH), Some(pid)) => proc::no_process(*pid),
        (Some(libc::ENOSPC), _) if plan.is_exact() => {
            "all breakpoints of the CPU are in use: end the debugger, or omit --exact".into()
        }
        (Some(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT), _) if plan.is_exact() => {
            "this machine has no breakpoints that count: omit --exact".into()
        }
        (Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ENODEV | libc::ENOENT), _) => {
            "this kernel has no perf_event_open(2), as in gVisor and similar sandboxes: run vdso-who outside".into()
        }
        (Some(libc::EMFILE | libc::ENFILE), _) => {
            "there are too many threads and CPUs for the limit of open files: run it as root or with CAP_PERFMON, \
             which need one file for each CPU, or let root raise the hard limit (limits.conf(5))"
                .into()
        }
        (Some(_), _) => format!("perf_event_open(2) failed: {error}"),
        (None, _) => error.to_string(),
    };
    text.into()
}

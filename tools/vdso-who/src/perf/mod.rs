//! Events of perf_event_open(2), and their records.
//!
//! If this user may watch every process, there is one event for each CPU. Such an event also sees
//! threads that live for less than a sampling period. Otherwise there is one event for each
//! combination of a thread and a CPU. One event for each thread, on all CPUs, would be enough. But
//! new threads inherit the events, and the kernel does not map the buffer of an inherited event
//! that is not bound to one CPU.

mod record;
mod refusal;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use perf_event::events::{self, Breakpoint, Software};
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use crate::proc;
pub(crate) use record::{ENDED, Event, OTHER_NAMESPACE, Registers, Sample};
use refusal::explain_buffer;
pub(crate) use refusal::{explain, limited};

/// How many bytes of the user stack are copied into the record of a sample, and into the record of
/// a breakpoint.
const STACK: u32 = 8192;
const STACK_OF_BREAKPOINT: u32 = 2048;
/// The size of all buffers together in bytes, and the smaller sizes of one buffer that are tried if
/// `kernel.perf_event_mlock_kb` does not allow more without CAP_IPC_LOCK.
const BUFFERS: usize = 64 << 20;
const SMALL: [usize; 2] = [512 << 10, 64 << 10];
/// The registers in a sample, as `enum perf_event_x86_regs` and `enum perf_event_arm_regs` number
/// them.
const REGISTERS: &[u32] = if cfg!(target_arch = "aarch64") {
    &[7, 8, 29, 30, 31, 32]
} else {
    &[5, 6, 7, 8]
};

/// The event of a CPU, and the buffer of its records. The event takes samples, unless there are
/// breakpoints, and also reports mappings and names.
struct Ring {
    cpu: usize,
    sampler: Sampler,
    /// The size of the buffer in bytes, or more.
    size: usize,
    /// The moment before the event was opened.
    opening: Instant,
    /// For how long the event had been enabled at the last check.
    enabled: Option<Duration>,
}

/// Open events, and the buffers of their records.
#[derive(Default)]
pub(crate) struct Events {
    /// One for each CPU.
    rings: Vec<Ring>,
    /// The events of further threads, and the breakpoints. All of these write to the buffers of
    /// `rings`.
    unmapped: Vec<Counter>,
    /// Whether there is one event for each CPU, which also takes samples in the kernel.
    pub(crate) system_wide: bool,
}

/// The events that are to be opened.
pub(crate) struct Plan<'a> {
    /// The processes to watch. Empty for a cgroup or the host. It is an error if access to the
    /// first process is denied, but not if access to another one is.
    pub(crate) pids: &'a [u32],
    pub(crate) cgroup: Option<&'a File>,
    /// Whether the processes that the watched processes start are watched as well.
    pub(crate) follows: bool,
    /// Nanoseconds of CPU time between two samples.
    pub(crate) period: u64,
    /// If not empty, the kernel writes a record each time one of these addresses is executed, and
    /// takes no samples.
    pub(crate) addresses: &'a [u64],
}

impl Plan<'_> {
    fn is_exact(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Returns the size of a CPU's buffer in bytes. Counted reads may have larger buffers, because
    /// they come faster than samples.
    fn buffer_size(&self, cpus: usize) -> usize {
        let most = if self.is_exact() { 16 << 20 } else { 8 << 20 };
        let size = (BUFFERS / cpus.max(1)).clamp(1 << 20, most);
        // perf-event2 rounds a size up to a power of two, so that all buffers together would take
        // more than `BUFFERS`.
        1 << size.ilog2()
    }

    /// Returns the threads that need events of their own, each with its process. /proc is read only
    /// once, before the first event is opened. A thread that starts later can have inherited the
    /// events of the thread that started it. If a second look gave it events of its own, it would
    /// be counted twice.
    fn threads(&self) -> Vec<(u32, u32)> {
        let mut threads = Vec::new();
        for pid in self.pids {
            for thread in proc::threads(*pid).unwrap_or_default() {
                threads.push((*pid, thread));
            }
        }
        threads
    }
}

/// The thread and the CPU on which an event counts.
struct Place {
    thread: i32,
    cpu: usize,
    /// The size of a new buffer in bytes.
    size: usize,
}

impl Events {
    /// Opens the events: one for each CPU if the kernel allows that, otherwise one for each thread
    /// and CPU.
    pub(crate) fn open(plan: &Plan<'_>) -> io::Result<Self> {
        // A breakpoint is at an address of one process. So events for all processes are tried only
        // if there are no breakpoints.
        if !plan.is_exact() {
            let opened = Self::open_all(plan, true);
            let is_denied = match &opened {
                Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
                Ok(_) => false,
            };
            if plan.pids.is_empty() || !is_denied {
                return opened;
            }
        }
        Self::open_all(plan, false)
    }

    fn open_all(plan: &Plan<'_>, system_wide: bool) -> io::Result<Self> {
        let mut opened = Self {
            system_wide,
            ..Self::default()
        };
        let cpus = online_cpus()?;
        let size = plan.buffer_size(cpus.len());
        let threads = if system_wide || plan.pids.is_empty() {
            vec![(0, 0)]
        } else {
            plan.threads()
        };
        let mut failed = Errno::ESRCH.into();
        for (pid, thread) in threads {
            let is_child = plan.pids.iter().skip(1).any(|child| *child == pid);
            for cpu in &cpus {
                let place = Place {
                    thread: thread as i32,
                    cpu: *cpu,
                    size,
                };
                let Err(error) = opened.open_one(plan, &place) else {
                    continue;
                };
                match error.raw_os_error() {
                    // The thread has ended (a main thread can end before the others), or the CPU
                    // went offline.
                    Some(libc::ESRCH | libc::ENODEV) => failed = error,
                    // A child may run as another user.
                    Some(libc::EPERM | libc::EACCES) if is_child => {}
                    _ => return Err(error),
                }
            }
        }
        if opened.rings.is_empty() {
            return Err(failed);
        }
        Ok(opened)
    }

    /// Opens events on CPUs that came online since the last check, or that went offline and came
    /// back. Returns for how long these CPUs may have run without an event.
    ///
    /// When a CPU goes offline, the kernel ends its events and does not report that. A suspend
    /// takes all CPUs but the first one offline. An event that has ended can be recognised, because
    /// the time for which it has been enabled no longer grows.
    pub(crate) fn follow_cpus(&mut self, plan: &Plan<'_>, last_check: Instant) -> Duration {
        let mut unwatched = Duration::ZERO;
        if !self.system_wide {
            return unwatched;
        }
        let Ok(cpus) = online_cpus() else {
            return unwatched;
        };
        // The event of a CPU that is offline has ended.
        self.rings.retain(|ring| cpus.contains(&ring.cpu));
        let mut ended = Vec::new();
        // An event of a cgroup is enabled only while the cgroup runs, so it may be alive even if
        // its enabled time has not grown.
        if plan.cgroup.is_none() {
            for mut ring in mem::take(&mut self.rings) {
                if ring.is_alive() {
                    self.rings.push(ring);
                } else {
                    ended.push(ring);
                }
            }
        }
        for cpu in &cpus {
            if self.rings.iter().any(|ring| ring.cpu == *cpu) {
                continue;
            }
            // Only a CPU that had no event at the last check is not in `ended`.
            let since = match ended.iter().find(|ring| ring.cpu == *cpu) {
                Some(ring) => ring.opening + ring.enabled.unwrap_or_default(),
                None => last_check,
            };
            unwatched += since.elapsed();
            let place = Place {
                thread: 0,
                cpu: *cpu,
                size: plan.buffer_size(cpus.len()),
            };
            // The CPU may be offline again.
            let _ = self.open_one(plan, &place);
        }
        unwatched
    }

    fn open_one(&mut self, plan: &Plan<'_>, place: &Place) -> io::Result<()> {
        let kind = if plan.is_exact() {
            Software::DUMMY
        } else {
            Software::CPU_CLOCK
        };
        let mut builder = self.builder(plan, kind, place);
        // The event also reports mappings, names and processes.
        builder.mmap(true).mmap2(true);
        builder.comm(true).comm_exec(true).task(true);
        // The idle time of a CPU belongs to no process.
        builder.sample_period(plan.period).exclude_idle(true);
        if self.rings.iter().any(|ring| ring.cpu == place.cpu) {
            self.send_to_ring(build(&mut builder)?, place.cpu)?;
        } else {
            let opening = Instant::now();
            self.rings.push(Ring {
                cpu: place.cpu,
                sampler: mapped(&mut builder, place.size)?,
                size: place.size,
                opening,
                enabled: None,
            });
        }
        for address in plan.addresses {
            let mut builder = self.builder(plan, Breakpoint::execute(*address), place);
            let counter = builder.sample_period(1).build()?;
            self.send_to_ring(counter, place.cpu)?;
        }
        Ok(())
    }

    fn builder<'a>(
        &self,
        plan: &Plan<'a>,
        event: impl events::Event,
        place: &Place,
    ) -> Builder<'a> {
        let mut builder = Builder::new(event);
        if let Some(cgroup) = plan.cgroup {
            builder.observe_cgroup(cgroup);
        } else if self.system_wide {
            builder.any_pid();
        } else {
            builder.observe_pid(place.thread);
            builder.inherit(true).inherit_thread(!plan.follows);
        }
        builder.enabled(true).one_cpu(place.cpu);
        builder.exclude_kernel(!self.system_wide);
        builder.exclude_callchain_kernel(!self.system_wide);
        let stack = if plan.is_exact() {
            STACK_OF_BREAKPOINT
        } else {
            STACK
        };
        let mut mask = 0;
        for register in REGISTERS {
            mask |= 1 << register;
        }
        builder.sample_id_all(true);
        builder.sample_regs_user(mask).sample_stack_user(stack);
        let content = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
        builder.sample(content | SampleFlag::REGS_USER | SampleFlag::STACK_USER);
        builder
    }

    #[allow(unsafe_code, reason = "perf-event2 has no call of this ioctl")]
    fn send_to_ring(&mut self, counter: Counter, cpu: usize) -> io::Result<()> {
        /// `_IO('$', 5)`.
        const SET_OUTPUT: libc::Ioctl = 0x2405;
        let Some(ring) = self.rings.iter().find(|ring| ring.cpu == cpu) else {
            return Ok(());
        };
        let ring = ring.sampler.as_raw_fd();
        // SAFETY: this ioctl takes a number, and both descriptors are open.
        let result = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring) };
        self.unmapped.push(counter);
        Errno::result(result)?;
        Ok(())
    }

    /// Returns how often the breakpoints were hit.
    pub(crate) fn executions(&mut self) -> u64 {
        let mut executions = 0;
        for counter in &mut self.unmapped {
            executions += counter.read().unwrap_or(0);
        }
        executions
    }

    /// Takes the new records out of the buffers, ordered by time. Leaves out the samples of the
    /// processes in `unwatched_pids`.
    pub(crate) fn drain(
        &mut self,
        unwatched_pids: &HashSet<u32>,
    ) -> impl Iterator<Item = Event> + use<> {
        let mut found = Vec::new();
        for ring in &mut self.rings {
            // What the buffer holds now is taken. More records may come as fast as they are taken,
            // and without this limit they would use up the memory.
            let mut taken = 0;
            while taken < ring.size {
                let Some(record) = ring.sampler.next_record() else {
                    break;
                };
                taken += record.len();
                found.extend(record::event(&record, unwatched_pids));
            }
        }
        found.sort_by_key(|(time, _)| *time);
        found.into_iter().map(|(_, event)| event)
    }
}

impl Ring {
    /// Returns whether the event has been enabled for longer than at the last check.
    fn is_alive(&mut self) -> bool {
        let enabled = match self.sampler.read_full() {
            Ok(data) => data.time_enabled(),
            Err(_) => None,
        };
        let is_alive = self.enabled.is_none() || enabled > self.enabled;
        self.enabled = enabled;
        is_alive
    }
}

fn build(builder: &mut Builder<'_>) -> io::Result<Counter> {
    match builder.build() {
        // Linux before 5.13 rejects `inherit_thread`, so the event is opened without it. The event
        // then follows new processes as well, not only new threads.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            builder.inherit_thread(false).build()
        }
        built => built,
    }
}

/// Opens an event with the largest buffer that the kernel allows. An error of the mapping is
/// explained here, because the number of an error does not tell whether perf_event_open(2) or
/// mmap(2) has failed.
fn mapped(builder: &mut Builder<'_>, largest: usize) -> io::Result<Sampler> {
    let mut result = build(builder)?.sampled(largest);
    for size in SMALL {
        if result.is_ok() {
            break;
        }
        result = build(builder)?.sampled(size);
    }
    result.map_err(explain_buffer)
}

/// Returns the CPUs that are online.
pub(crate) fn online_cpus() -> io::Result<Vec<usize>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let named = |error| io::Error::other(format!("cannot read {ONLINE}: {error}: mount /sys"));
    let ranges = fs::read_to_string(ONLINE).map_err(named)?;
    Ok(parsed_cpus(ranges.trim()))
}

/// Parses a list of CPUs such as `0-3,8`.
fn parsed_cpus(ranges: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.parse::<usize>();
        let last = last.parse::<usize>();
        if let (Ok(first), Ok(last)) = (first, last) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;
    use std::{process, thread};

    use nix::sys::resource::{Resource, setrlimit};
    use nix::unistd::{Gid, Uid, setgid, setuid};

    use crate::common::{child, not_run_here};
    use crate::error::is_limit;

    use super::*;
    use crate::known::ONE;

    /// Uses CPU time until this process gets a sample, for at most 10 s. Returns whether it got
    /// one.
    fn has_samples(events: &mut Events) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            for number in 0..10_000_000 {
                black_box(number);
            }
            let mut samples = events.drain(&HashSet::new());
            if samples.any(|event| matches!(event, Event::Sample(_))) {
                return true;
            }
        }
        false
    }

    #[test]
    fn the_buffers_of_up_to_64_cpus_together_have_at_most_64_mib() {
        let plan = Plan {
            pids: &[],
            cgroup: None,
            follows: false,
            period: 1_000_000,
            addresses: &[],
        };
        for (cpus, expected) in [(1, 8), (2, 8), (8, 8), (9, 4), (64, 1), (65, 1), (1000, 1)] {
            // The size is rounded up to a power of two when the buffer is mapped.
            let size = plan.buffer_size(cpus).next_power_of_two();
            assert_eq!(size >> 20, expected, "{cpus}");
        }
    }

    /// Opens events as a user who may lock no memory, until the kernel maps no further buffer.
    #[test]
    fn an_error_names_the_limit_on_the_buffers() {
        child::forked(|| {
            let nobody = 65_534;
            let is_limited = setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).is_ok()
                && setgid(Gid::from_raw(nobody)).is_ok()
                && setuid(Uid::from_raw(nobody)).is_ok();
            if !is_limited {
                return not_run_here("the test is not run as root");
            }
            let pids = [process::id()];
            let plan = Plan {
                pids: &pids,
                cgroup: None,
                follows: false,
                period: 1_000_000,
                addresses: &[],
            };
            let mut opened = Vec::new();
            for _ in 0..50 {
                match Events::open(&plan) {
                    Ok(events) => opened.push(events),
                    Err(error) if opened.is_empty() || is_limit(&error) => {
                        return not_run_here(error);
                    }
                    Err(error) => {
                        let text = explain(&error, &plan).to_string();
                        assert!(text.contains("kernel.perf_event_mlock_kb"), "{text}");
                        return;
                    }
                }
            }
            not_run_here("the kernel maps any number of buffers");
        });
    }

    /// Stops the events, as the kernel does when a CPU goes offline.
    #[test]
    fn a_cpu_that_comes_back_gets_an_event() {
        let _one = ONE.lock();
        let plan = Plan {
            pids: &[],
            cgroup: None,
            follows: false,
            period: 1_000_000,
            addresses: &[],
        };
        let mut events = match Events::open(&plan) {
            Ok(events) => events,
            Err(error) => return not_run_here(error),
        };
        let cpus =
            |events: &Events| -> Vec<_> { events.rings.iter().map(|ring| ring.cpu).collect() };
        let all = cpus(&events);
        for _ in 0..2 {
            let unwatched = events.follow_cpus(&plan, Instant::now());
            assert_eq!(unwatched, Duration::ZERO);
        }
        assert_eq!(cpus(&events), all);
        for ring in &mut events.rings {
            ring.sampler.disable().unwrap();
        }
        // The enabled time of each event has grown since the last check, so this check still finds
        // the events alive. From now on the enabled time stands still, so the next check finds that
        // they have ended.
        events.follow_cpus(&plan, Instant::now());
        // With the clock source jiffies, the clock stands still until the next timer tick.
        thread::sleep(Duration::from_millis(20));
        events.drain(&HashSet::new()).for_each(drop);
        let unwatched = events.follow_cpus(&plan, Instant::now());
        assert!(unwatched > Duration::ZERO);
        assert_eq!(cpus(&events), all);
        assert!(has_samples(&mut events));
        // A CPU goes offline. No CPU has the number to which its event is moved here.
        events.rings[0].cpu = usize::MAX;
        events.follow_cpus(&plan, Instant::now());
        let mut followed = cpus(&events);
        followed.sort_unstable();
        assert_eq!(followed, all);
        // Now CPUs come online.
        events.rings.truncate(1);
        events.follow_cpus(&plan, Instant::now());
        assert_eq!(cpus(&events).len(), all.len());
    }
}

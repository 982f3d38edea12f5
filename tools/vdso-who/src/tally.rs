//! The watched processes, and the clock reads of each caller.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::address_space::{AddressSpace, Caller, Files, has_room, resident_memory, return_memory};
use crate::arguments::{Arguments, GroupBy};
use crate::clock_read::{Activity, Clock, ClockRead, ClockReads};
use crate::perf::{ENDED, Event, OTHER_NAMESPACE, Sample};
use crate::progress::Progress;
use crate::{proc, unit};

/// The properties that the processes of a row have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
    pub(crate) pid: Option<u32>,
    /// The thread, and the name of its process, with --group-by thread.
    pub(crate) thread: Option<u32>,
    pub(crate) process_name: Option<String>,
}

/// The counted clock reads of a caller, or its samples in clock reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    /// The records of threads that were in a system call.
    pub(crate) calls: u64,
    /// How many records there are of each clock. Records whose clock is not known are left out.
    pub(crate) clocks: [u64; Clock::COUNT],
    /// The records that count as reads only because earlier records of the same code were reads.
    pub(crate) inferred: u64,
}

/// Samples that may or may not be in a clock read. Each field counts the samples that are unclear
/// for one reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unknown {
    /// The mappings of the process could not be read.
    pub(crate) unread: u64,
    /// The thread was in a system call that could not be identified.
    pub(crate) calls: u64,
    /// The process is in another PID namespace, so it has no process id here.
    pub(crate) foreign: u64,
    /// The process is in a gVisor sandbox.
    pub(crate) sandboxed: u64,
}

/// The processes of a row.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) pids: HashSet<u32>,
    pub(crate) samples: u64,
    pub(crate) unknown: Unknown,
    pub(crate) callers: HashMap<Caller, Counts>,
}

/// The samples and reads that were found in the records.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The name of the watched process. None if a cgroup or the host is watched.
    pub(crate) name: Option<String>,
    pub(crate) groups: HashMap<Key, Group>,
    /// How many reads each call chain has. A chain is `process;outer;inner;function`.
    pub(crate) chains: HashMap<String, u64>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) lost: u64,
    /// False if the watched process is known to have no vDSO.
    pub(crate) has_vdso: bool,
    /// A process that is younger than its perf map.
    pub(crate) stale_map: Option<u32>,
}

/// A message from the thread that takes the records to the thread that counts them.
pub(crate) enum Message<'a> {
    Event(Event),
    /// A request to call this function with the findings since the last such request.
    Take(Box<dyn FnOnce(Findings) + Send + 'a>),
}

/// The limit on the private memory that is in use. Above it, what is known about processes and
/// files is discarded. Without this limit, `top` grew to 147 MB in an hour on a host that was
/// compiling.
const MOST_RESIDENT: u64 = 48 << 20;
/// How often the memory is checked, at most.
const MEMORY_CHECK: Duration = Duration::from_secs(2);
/// What is discarded has to be read again when it is needed. The time between two checks is at
/// least this many times the longest time that a record took, so that reading again takes only a
/// small part of the time.
const PAUSE: u32 = 50;

/// The state of the thread that counts the records.
struct Tally<'a> {
    memory_checked: Instant,
    arguments: &'a Arguments,
    progress: &'a Progress,
    files: Files,
    clock_reads: ClockReads,
    processes: Processes,
    found: Findings,
}

/// The processes that have records.
struct Processes {
    /// The watched process. None if a cgroup or the host is watched.
    watched: Option<u32>,
    known: HashMap<u32, Process>,
}

/// What is known about a process.
#[derive(Default)]
struct Process {
    /// None before the first sample of the process, unless a record showed earlier that the process
    /// was forked or executed a program.
    space: Option<AddressSpace>,
    name: Option<String>,
    /// The names of threads, with --group-by thread.
    threads: HashMap<u32, String>,
    has_ended: bool,
    /// Unset until the first sample of the process. Unset again when the process executes a
    /// program, until the first sample of that program. A container's runtime moves its process
    /// into the container's cgroup shortly before the process executes the program of the
    /// container.
    unit: OnceCell<Option<String>>,
    /// The last known unit: of the parent at the fork, or of the process before it executed a
    /// program. It counts if the process ends before its cgroup is read.
    earlier_unit: Option<String>,
}

/// The maximum numbers of processes, rows, callers in a row, and call chains that are kept. They
/// are limited because a program can cause any number of them.
const MOST_PROCESSES: usize = 1 << 12;
const MOST_GROUPS: usize = 1 << 12;
const MOST_CALLERS: usize = 1 << 14;
const MOST_CHAINS: usize = 1 << 15;

/// Counts the records that another thread sends, and reduces the number of waiting records by one
/// for each. A record can take long to count, because the names of its callers are looked up.
pub(crate) fn count<'a>(
    arguments: &Arguments,
    pid: Option<u32>,
    messages: impl IntoIterator<Item = Message<'a>>,
    progress: &Arc<Progress>,
) -> Findings {
    let downloads = if arguments.debuginfod {
        Some(progress.clone())
    } else {
        None
    };
    let mut tally = Tally {
        memory_checked: Instant::now(),
        arguments,
        progress,
        files: Files::new(downloads),
        clock_reads: ClockReads::default(),
        processes: Processes {
            watched: pid,
            known: HashMap::new(),
        },
        found: Findings::default(),
    };
    let mut longest = Duration::ZERO;
    for message in messages {
        match message {
            Message::Event(event) => {
                let before = tally.memory_checked.elapsed();
                tally.add(event);
                let elapsed = tally.memory_checked.elapsed();
                longest = longest.max(elapsed.saturating_sub(before));
                if elapsed >= MEMORY_CHECK.max(longest * PAUSE) {
                    tally.memory_checked = Instant::now();
                    tally.forget(MOST_RESIDENT);
                }
                progress.waiting.fetch_sub(1, Relaxed);
            }
            Message::Take(to) => to(tally.take()),
        }
    }
    tally.take()
}

impl Tally<'_> {
    /// Returns what was found since the last call.
    fn take(&mut self) -> Findings {
        let mut found = std::mem::take(&mut self.found);
        found.has_vdso = true;
        if let Some(process) = self.processes.watched() {
            found.name.clone_from(&process.name);
            if let Some(space) = &process.space {
                found.has_vdso = space.has_vdso();
            }
        }
        found
    }

    /// Forgets the processes that have ended. If more than `most_memory` bytes are still in use,
    /// also forgets the other processes, the files and the earlier system calls. Processes and
    /// files are read again when they are needed. The watched process is always kept.
    fn forget(&mut self, most_memory: u64) {
        let watched = self.processes.watched;
        let known = &mut self.processes.known;
        known.retain(|pid, process| !process.has_ended || watched == Some(*pid));
        if resident_memory() <= most_memory {
            return;
        }
        known.retain(|pid, _| watched == Some(*pid));
        known.shrink_to_fit();
        self.files.forget();
        self.clock_reads.forget();
        return_memory();
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Lost(records) => self.found.lost += records,
            Event::Forked(pid, parent) => self.processes.fork(pid, parent),
            Event::Named(pid, name, has_executed) if is_number(pid) => {
                let process = self.processes.of(pid);
                process.name = Some(name);
                // If a thread other than the main thread executes a program, the kernel reports
                // that the main thread has ended, but the process goes on.
                process.has_ended = false;
                process.threads.clear();
                if has_executed {
                    process.forget_unit();
                    process.space = Some(AddressSpace::new(pid, self.files.clone()));
                }
            }
            Event::ThreadNamed(pid, thread, name) if is_number(pid) => {
                if self.arguments.grouping() == GroupBy::Thread {
                    self.processes.of(pid).name_thread(thread, name);
                }
            }
            Event::Mapped(pid, mapping) if is_number(pid) => {
                let Some(process) = self.processes.known.get_mut(&pid) else {
                    return;
                };
                if let Some(space) = &mut process.space {
                    space.map(mapping);
                }
            }
            Event::Ended(pid) => {
                // The process is kept until `forget` is called, because samples that another CPU
                // took before the process ended can still arrive.
                if let Some(process) = self.processes.known.get_mut(&pid) {
                    process.has_ended = true;
                }
            }
            Event::Named(..) | Event::ThreadNamed(..) | Event::Mapped(..) => {}
            Event::Sample(sample) => {
                self.found.samples += 1;
                self.progress.samples.fetch_add(1, Relaxed);
                if is_number(sample.pid) {
                    self.sample(&sample);
                } else {
                    self.sample_without_number(&sample);
                }
            }
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let pid = sample.pid;
        let process = self.processes.of(pid);
        let key = process.key(sample, self.arguments.grouping());
        if sample.is_of_kernel_thread() {
            self.found.group_of(key, pid);
            return;
        }
        let space = process.space(pid, &self.files);
        let activity = if self.arguments.exact {
            Activity::Reading(ClockReads::counted(space, sample))
        } else {
            self.clock_reads.activity(space, sample)
        };
        match activity {
            Activity::Reading(read) => {
                // Names are looked up now, because the process may end at any time.
                let addresses = space.chain(sample);
                let caller = space.caller(&addresses, self.arguments.depth());
                if space.has_stale_map() {
                    self.found.stale_map = Some(pid);
                }
                if self.arguments.keeps_chains() {
                    let chain = folded_chain(&key.name, space, &addresses, &read);
                    let others = || "[other chains]".into();
                    *entry(&mut self.found.chains, chain, MOST_CHAINS, others) += 1;
                }
                let group = self.found.group_of(key, pid);
                let counts = entry(&mut group.callers, caller, MOST_CALLERS, Caller::unknown);
                counts.records += 1;
                counts.calls += u64::from(read.is_call);
                if let Some(clock) = read.clock {
                    counts.clocks[clock.index()] += 1;
                }
                counts.inferred += u64::from(read.is_inferred);
                self.found.reads += 1;
                self.progress.reads.fetch_add(1, Relaxed);
            }
            Activity::Unknown => {
                let is_hidden = space.is_hidden;
                let unknown = &mut self.found.group_of(key, pid).unknown;
                if is_hidden {
                    unknown.unread += 1;
                } else {
                    unknown.calls += 1;
                }
            }
            Activity::Other => {
                let is_sandboxed = space.is_sandboxed();
                let group = self.found.group_of(key, pid);
                group.unknown.sandboxed += u64::from(is_sandboxed);
            }
        }
    }

    /// Counts a sample whose process id is `OTHER_NAMESPACE` or `ENDED`. Such an id does not
    /// identify a process, so nothing can be read about the process.
    fn sample_without_number(&mut self, sample: &Sample) {
        let name = if sample.pid == OTHER_NAMESPACE {
            "processes of other PID namespaces"
        } else {
            "processes that ended"
        };
        let group = self.found.group(Key {
            name: name.into(),
            ..Key::default()
        });
        group.samples += 1;
        if sample.is_of_kernel_thread() {
            return;
        }
        if sample.pid == OTHER_NAMESPACE {
            group.unknown.foreign += 1;
        } else {
            group.unknown.unread += 1;
        }
    }
}

/// Returns whether a number is the id of one process. `OTHER_NAMESPACE` and `ENDED` are not: each
/// stands for many processes, which have neither a name nor mappings in common.
fn is_number(pid: u32) -> bool {
    pid != OTHER_NAMESPACE && pid != ENDED
}

impl Processes {
    /// Returns the watched process, if there is one and it has records.
    fn watched(&self) -> Option<&Process> {
        self.known.get(&self.watched?)
    }

    /// Returns what is known about a process.
    fn of(&mut self, pid: u32) -> &mut Process {
        if self.known.len() >= MOST_PROCESSES {
            self.known.retain(|pid, _| self.watched == Some(*pid));
        }
        self.known.entry(pid).or_default()
    }

    /// Adds a forked process, which begins with its parent's name and with a copy of its parent's
    /// address space. If nothing is known about the parent, adds nothing.
    fn fork(&mut self, pid: u32, parent: u32) {
        let mut child = None;
        if let Some(parent) = self.known.get(&parent) {
            child = Some(Process {
                space: parent.space.as_ref().map(|space| space.forked(pid)),
                name: parent.name.clone(),
                threads: HashMap::new(),
                has_ended: false,
                unit: OnceCell::new(),
                earlier_unit: parent.last_unit(),
            });
        }
        // The id may have belonged to another process before.
        self.known.remove(&pid);
        if let Some(child) = child {
            *self.of(pid) = child;
        }
    }
}

impl Process {
    /// Returns the key of the row in which a sample of the process counts.
    fn key(&mut self, sample: &Sample, group_by: GroupBy) -> Key {
        let pid = sample.pid;
        let name = self.name.get_or_insert_with(|| proc::name(pid)).clone();
        let unit = self.unit(pid);
        match group_by {
            GroupBy::Thread => Key {
                name: self.thread_name(sample).unwrap_or_else(|| name.clone()),
                unit,
                pid: Some(pid),
                thread: Some(sample.thread),
                process_name: Some(name),
            },
            GroupBy::Process => Key {
                name,
                unit,
                pid: Some(pid),
                ..Key::default()
            },
            GroupBy::Name => Key {
                name,
                unit,
                ..Key::default()
            },
            GroupBy::Unit => Key {
                name: unit.unwrap_or_else(|| "[no unit]".into()),
                ..Key::default()
            },
        }
    }

    /// Returns the unit of the process. It is read when the first sample arrives.
    fn unit(&self, pid: u32) -> Option<String> {
        let read = || unit::of(pid).unwrap_or_else(|_| self.earlier_unit.clone());
        self.unit.get_or_init(read).clone()
    }

    /// Returns the last known unit of the process, without reading it.
    fn last_unit(&self) -> Option<String> {
        match self.unit.get() {
            Some(unit) => unit.clone(),
            None => self.earlier_unit.clone(),
        }
    }

    /// Lets the unit be read again when the next sample arrives.
    fn forget_unit(&mut self) {
        self.earlier_unit = self.last_unit();
        self.unit = OnceCell::new();
    }

    /// Returns the name of a thread. Returns `None` for the main thread, which has the name of its
    /// process, and for a thread whose name cannot be read.
    fn thread_name(&mut self, sample: &Sample) -> Option<String> {
        if sample.thread == sample.pid {
            return None;
        }
        if let Some(name) = self.threads.get(&sample.thread) {
            return Some(name.clone());
        }
        let name = proc::thread_name(sample.pid, sample.thread)?;
        self.name_thread(sample.thread, name.clone());
        Some(name)
    }

    fn name_thread(&mut self, thread: u32, name: String) {
        if self.threads.len() >= MOST_PROCESSES {
            self.threads.clear();
        }
        self.threads.insert(thread, name);
    }

    /// Returns the address space of the process. It is read when the first sample arrives.
    fn space(&mut self, pid: u32, files: &Files) -> &mut AddressSpace {
        self.space.get_or_insert_with(|| {
            let mut space = AddressSpace::new(pid, files.clone());
            space.is_hidden = space.refresh().is_err();
            space
        })
    }
}

impl Group {
    /// Returns the sum of all callers.
    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.callers.values() {
            sum.add(*counts);
        }
        sum
    }

    /// Returns whether the group contains a process other than this one.
    pub(crate) fn has_others(&self, pid: Option<u32>) -> bool {
        self.pids.iter().any(|other| Some(*other) != pid)
    }

    /// Returns the process of the group, if there is only one.
    pub(crate) fn only_pid(&self) -> Option<u32> {
        if self.pids.len() != 1 {
            return None;
        }
        self.pids.iter().next().copied()
    }

    fn add(&mut self, other: Self) {
        self.pids.extend(other.pids);
        self.samples += other.samples;
        self.unknown.add(other.unknown);
        for (caller, counts) in other.callers {
            self.callers.entry(caller).or_default().add(counts);
        }
    }
}

impl Unknown {
    pub(crate) fn sum(self) -> u64 {
        self.unread + self.calls + self.foreign + self.sandboxed
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.unread += other.unread;
        self.calls += other.calls;
        self.foreign += other.foreign;
        self.sandboxed += other.sandboxed;
    }
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.calls += other.calls;
        for (own, other) in self.clocks.iter_mut().zip(other.clocks) {
            *own += other;
        }
        self.inferred += other.inferred;
    }
}

impl Findings {
    /// Returns the row of a key. If there are too many rows already, returns the row of all others.
    fn group(&mut self, mut key: Key) -> &mut Group {
        if self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&key) {
            key = Key {
                name: "[others]".into(),
                ..Key::default()
            };
        }
        self.groups.entry(key).or_default()
    }

    /// Counts a sample of a process, and returns the row of the process.
    fn group_of(&mut self, key: Key, pid: u32) -> &mut Group {
        let group = self.group(key);
        group.pids.insert(pid);
        group.samples += 1;
        group
    }

    /// Limits the rows of processes with the same name. The `most` processes with the most samples
    /// keep rows of their own, and all other processes of that name are merged into one row.
    pub(crate) fn merge(&mut self, most: usize) {
        let mut groups: Vec<_> = self.groups.drain().collect();
        groups.sort_by_key(|(key, group)| (Reverse(group.samples), key.pid));
        let mut names = HashMap::<_, usize>::new();
        for (mut key, group) in groups {
            let name = (key.name.clone(), key.unit.clone());
            let count = names.entry(name).or_default();
            *count += 1;
            if *count > most {
                key.pid = None;
            }
            self.groups.entry(key).or_default().add(group);
        }
    }

    /// Returns the call chains in sorted order, each with its number of reads.
    pub(crate) fn folded(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (chain, reads) in &self.chains {
            lines.push(format!("{chain} {reads}"));
        }
        lines.sort();
        lines
    }
}

/// Returns the count of a key. If no more keys may be kept, returns the count of all others.
fn entry<K: Eq + Hash, C: Default>(
    counts: &mut HashMap<K, C>,
    key: K,
    most: usize,
    others: impl FnOnce() -> K,
) -> &mut C {
    let is_kept = counts.contains_key(&key) || (counts.len() < most && has_room(0));
    let key = if is_kept { key } else { others() };
    counts.entry(key).or_default()
}

/// Returns a call chain as text: the process, the functions from the outermost to the innermost,
/// and the clock read.
fn folded_chain(
    process: &str,
    space: &mut AddressSpace,
    addresses: &[u64],
    read: &ClockRead,
) -> String {
    let mut frames = vec![of_folded(process)];
    for address in addresses.iter().rev() {
        for function in space.functions(*address) {
            frames.push(of_folded(&function));
        }
    }
    for frame in read.frames() {
        frames.push(of_folded(&frame));
    }
    frames.join(";")
}

/// Replaces the characters of a name that would end a frame or a line.
pub(crate) fn of_folded(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::arguments;
    use crate::common::has_proc;
    use crate::mapping::{FileId, Mapping};
    use crate::perf::Registers;

    fn sample(pid: u32, thread: u32) -> Event {
        Event::Sample(Box::new(Sample {
            pid,
            thread,
            in_kernel: false,
            is_64_bit: true,
            registers: Registers {
                pc: 0x1000,
                ..Registers::default()
            },
            number: None,
            first_argument: None,
            stack: vec![],
            callchain: vec![],
            kernel_chain: vec![],
        }))
    }

    /// Returns a tally of all processes.
    fn tally<'a>(arguments: &'a Arguments, progress: &'a Progress) -> Tally<'a> {
        Tally {
            memory_checked: Instant::now(),
            arguments,
            progress,
            files: Files::default(),
            clock_reads: ClockReads::default(),
            processes: Processes {
                watched: None,
                known: HashMap::new(),
            },
            found: Findings::default(),
        }
    }

    /// Takes samples of three threads, one of which has no name of its own.
    #[test]
    fn each_thread_has_a_row_with_its_name_if_that_is_wanted() {
        let pid = (1 << 22) + 1; // larger than the id of any real process
        for (line, expected) in [
            (
                "--all --group-by=thread",
                vec![
                    (pid, "server", 1),
                    (pid + 1, "worker", 2),
                    (pid + 2, "server", 1),
                ],
            ),
            ("--all --group-by=process", vec![(0, "server", 4)]),
        ] {
            let options = arguments(line);
            let progress = Progress::default();
            let mut tally = tally(&options, &progress);
            tally.add(Event::Named(pid, "server".into(), true));
            tally.add(Event::ThreadNamed(pid, pid + 1, "worker".into()));
            for thread in [pid, pid + 1, pid + 1, pid + 2] {
                tally.add(sample(pid, thread));
            }
            let mut rows = Vec::new();
            for (key, group) in &tally.found.groups {
                assert_eq!(key.pid, Some(pid));
                rows.push((key.thread.unwrap_or(0), key.name.as_str(), group.samples));
            }
            rows.sort_unstable();
            assert_eq!(rows, expected, "{line}");
        }
    }

    /// Takes a sample of a forked process, which has ended when the sample is counted, and one of
    /// its parent after the parent has executed a program. No real process has these ids.
    #[test]
    fn a_process_that_ended_has_its_last_known_unit() {
        let parent = (1 << 22) + 1;
        let options = arguments("--all --group-by=process");
        let progress = Progress::default();
        let mut tally = tally(&options, &progress);
        let process = tally.processes.of(parent);
        process.unit.set(Some("web.service".into())).unwrap();
        tally.add(Event::Forked(parent + 1, parent));
        tally.add(sample(parent + 1, parent + 1));
        tally.add(Event::Named(parent, "web".into(), true));
        tally.add(sample(parent, parent));
        assert_eq!(tally.found.groups.len(), 2);
        for key in tally.found.groups.keys() {
            assert_eq!(key.unit.as_deref(), Some("web.service"), "{key:?}");
        }
    }

    /// This process executes a program after it was moved into another cgroup.
    #[test]
    fn the_unit_is_read_again_when_a_program_is_executed() {
        if !has_proc() {
            return;
        }
        let own = std::process::id();
        let options = arguments("--all --group-by=process");
        let progress = Progress::default();
        let mut tally = tally(&options, &progress);
        let process = tally.processes.of(own);
        process.unit.set(Some("runtime.service".into())).unwrap();
        tally.add(Event::Named(own, "program".into(), true));
        tally.add(sample(own, own));
        for key in tally.found.groups.keys() {
            assert_ne!(key.unit.as_deref(), Some("runtime.service"));
        }
    }

    /// Adds the records of 100 short-lived processes, as on a host that is compiling. No real
    /// process has these ids.
    #[test]
    fn what_is_known_of_processes_that_ended_is_forgotten() {
        let host = arguments("--all");
        let progress = Progress::default();
        let mut tally = tally(&host, &progress);
        let first = (1 << 22) + 1;
        for pid in first..first + 100 {
            tally.add(Event::Named(pid, "cc1".into(), true));
            tally.add(Event::Mapped(
                pid,
                Mapping {
                    range: 0x1000..0x2000,
                    offset: 0,
                    path: "".into(),
                    file: FileId::default(),
                    seen: std::time::SystemTime::now(),
                },
            ));
            tally.add(sample(pid, pid));
            if pid != first {
                tally.add(Event::Ended(pid));
            }
        }
        tally.forget(u64::MAX);
        let known: Vec<_> = tally.processes.known.keys().copied().collect();
        assert_eq!(known, [first]);
        // Too much memory is in use.
        tally.forget(0);
        assert!(tally.processes.known.is_empty());
        assert_eq!(tally.take().samples, 100);
    }
}

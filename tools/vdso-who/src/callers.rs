//! The processes that are watched, and the reads of each caller.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::arguments::{Arguments, GroupBy};
use crate::clock_read::clock_read;
use crate::perf::{Event, Taken};
use crate::progress::Progress;
use crate::space::{Caller, Files, Space, has_room};
use crate::{proc, unit};

/// What the processes of a row have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
    pub(crate) pid: Option<u32>,
}

/// The processes of a row.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) pids: HashSet<u32>,
    pub(crate) samples: u64,
    /// Samples of processes whose mappings could not be read. Each may be in a read.
    pub(crate) unread: u64,
    /// Their reads, or samples in reads.
    pub(crate) callers: HashMap<Caller, u64>,
    /// Those of these samples that were in the kernel.
    pub(crate) in_kernel: HashMap<Caller, u64>,
}

/// What the records show.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The name of the process that is watched, if it is one.
    pub(crate) name: Option<String>,
    pub(crate) groups: HashMap<Key, Group>,
    /// As flamegraph.pl reads them.
    pub(crate) chains: HashMap<String, u64>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) lost: u64,
    /// Whether the process has a vDSO, as far as its mappings are known.
    pub(crate) has_vdso: bool,
}

/// What the thread that takes the records sends to the one that counts them.
pub(crate) enum Message<'a> {
    Event(Event),
    /// Call this with what was found since the last time.
    Take(Box<dyn FnOnce(Findings) + Send + 'a>),
}

struct Tally<'a> {
    arguments: &'a Arguments,
    progress: &'a Progress,
    files: Files,
    processes: Processes,
    found: Findings,
}

/// The processes that have records.
struct Processes {
    /// The one that is watched, if it is one.
    watched: Option<u32>,
    known: HashMap<u32, Process>,
}

/// What is known of a process.
#[derive(Default)]
struct Process {
    /// None before its first sample, unless it is known from its start.
    space: Option<Space>,
    name: Option<String>,
    unit: OnceCell<Option<String>>,
}

/// How many processes, rows, callers of a row, and call chains are kept. A program can make any
/// number of them.
const MOST_PROCESSES: usize = 1 << 12;
const MOST_GROUPS: usize = 1 << 12;
const MOST_CALLERS: usize = 1 << 14;
const MOST_CHAINS: usize = 1 << 15;

/// Counts the records that another thread sends, and subtracts each from the number of those that
/// wait. This can be slow, because it looks up names.
pub(crate) fn count<'a>(
    arguments: &Arguments,
    pid: Option<u32>,
    messages: impl IntoIterator<Item = Message<'a>>,
    progress: &Arc<Progress>,
) -> Findings {
    let files = Files::new(arguments.debuginfod.then(|| progress.clone()));
    let (known, found) = Default::default();
    let processes = Processes {
        watched: pid,
        known,
    };
    let mut tally = Tally {
        arguments,
        progress,
        files,
        processes,
        found,
    };
    for message in messages {
        match message {
            Message::Event(event) => {
                tally.add(event);
                progress.waiting.fetch_sub(1, Relaxed);
            }
            Message::Take(to) => to(tally.take()),
        }
    }
    tally.take()
}

impl Tally<'_> {
    fn take(&mut self) -> Findings {
        let Processes { watched, known } = &self.processes;
        let process = watched.and_then(|pid| known.get(&pid));
        let has_vdso = process
            .and_then(|process| process.space.as_ref())
            .is_none_or(Space::has_vdso);
        let name = process.and_then(|process| process.name.clone());
        Findings {
            name,
            has_vdso,
            ..std::mem::take(&mut self.found)
        }
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Lost(records) => self.found.lost += records,
            Event::Forked(pid, parent) => {
                let child = self.processes.known.get(&parent).map(|parent| Process {
                    space: parent.space.as_ref().map(|space| space.forked(pid)),
                    name: parent.name.clone(),
                    unit: OnceCell::new(),
                });
                // The number may have been that of another process.
                self.processes.known.remove(&pid);
                if let Some(child) = child {
                    *self.processes.of(pid) = child;
                }
            }
            Event::Named(pid, name, has_executed) => {
                let process = self.processes.of(pid);
                process.name = Some(name);
                if has_executed {
                    process.space = Some(Space::new(pid, self.files.clone()));
                }
            }
            Event::Mapped(pid, mapping) => {
                let process = self.processes.known.get_mut(&pid);
                if let Some(space) = process.and_then(|process| process.space.as_mut()) {
                    space.map(mapping);
                }
            }
            Event::Sample(taken) => self.sample(&taken),
        }
    }

    fn sample(&mut self, taken: &Taken) {
        let pid = taken.pid;
        let process = self.processes.of(pid);
        let mut key = process.key(pid, self.arguments.grouping());
        let space = process.space.get_or_insert_with(|| {
            let mut space = Space::new(pid, self.files.clone());
            space.is_hidden = space.refresh().is_err();
            space
        });
        let found = &mut self.found;
        if found.groups.len() >= MOST_GROUPS && !found.groups.contains_key(&key) {
            key = Key {
                name: "[others]".into(),
                unit: None,
                pid: None,
            };
        }
        let name = of_folded(&key.name);
        let group = found.groups.entry(key).or_default();
        group.pids.insert(pid);
        group.samples += 1;
        found.samples += 1;
        self.progress.samples.fetch_add(1, Relaxed);
        let Some(leaf) =
            clock_read(space, taken).or_else(|| self.arguments.exact.then(String::new))
        else {
            // A kernel thread has a program counter of 0.
            group.unread += u64::from(taken.registers.pc != 0 && space.is_hidden);
            return;
        };
        found.reads += 1;
        self.progress.reads.fetch_add(1, Relaxed);
        // Names are looked up while the process still runs.
        let addresses = space.chain(taken);
        let caller = space.caller(&addresses);
        if taken.in_kernel {
            count_one(
                &mut group.in_kernel,
                caller.clone(),
                MOST_CALLERS,
                Caller::unknown,
            );
        }
        count_one(&mut group.callers, caller, MOST_CALLERS, Caller::unknown);
        if self.arguments.keeps_chains() {
            let functions = addresses
                .iter()
                .rev()
                .flat_map(|address| space.functions(*address));
            let parts = once(name)
                .chain(functions.map(|name| of_folded(&name)))
                .chain(once(of_folded(&leaf)));
            let chain = parts.collect::<Vec<_>>().join(";");
            count_one(&mut found.chains, chain, MOST_CHAINS, || {
                "[other chains]".into()
            });
        }
    }
}

impl Processes {
    /// Returns what is known of a process.
    fn of(&mut self, pid: u32) -> &mut Process {
        if self.known.len() >= MOST_PROCESSES {
            self.known.retain(|pid, _| self.watched == Some(*pid));
        }
        self.known.entry(pid).or_default()
    }
}

impl Process {
    /// Returns the row of the process.
    fn key(&mut self, pid: u32, group_by: GroupBy) -> Key {
        let name = self.name.get_or_insert_with(|| proc::name(pid)).clone();
        let unit = self.unit.get_or_init(|| unit::of(pid)).clone();
        match group_by {
            GroupBy::Process => Key {
                name,
                unit,
                pid: Some(pid),
            },
            GroupBy::Name => Key {
                name,
                unit,
                pid: None,
            },
            GroupBy::Unit => Key {
                name: unit.unwrap_or_else(|| "[no unit]".into()),
                unit: None,
                pid: None,
            },
        }
    }
}

impl Findings {
    /// Puts the processes of one name together but for those with the most samples.
    pub(crate) fn merge(&mut self, most: usize) {
        let mut groups: Vec<_> = self.groups.drain().collect();
        groups.sort_by_key(|(key, group)| (Reverse(group.samples), key.pid));
        let mut names = HashMap::<_, usize>::new();
        for (mut key, group) in groups {
            let count = names
                .entry((key.name.clone(), key.unit.clone()))
                .or_default();
            *count += 1;
            key.pid = key.pid.filter(|_| *count <= most);
            let all = self.groups.entry(key).or_default();
            all.pids.extend(group.pids);
            all.samples += group.samples;
            all.unread += group.unread;
            for (to, from) in [
                (&mut all.callers, group.callers),
                (&mut all.in_kernel, group.in_kernel),
            ] {
                for (caller, reads) in from {
                    *to.entry(caller).or_default() += reads;
                }
            }
        }
    }

    /// Returns the call chains, each with its reads, sorted.
    pub(crate) fn folded(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .chains
            .iter()
            .map(|(chain, reads)| format!("{chain} {reads}"))
            .collect();
        lines.sort();
        lines
    }
}

/// Counts one more of a key, or of the others if no more keys may be kept.
fn count_one<K: Eq + Hash>(
    counts: &mut HashMap<K, u64>,
    key: K,
    most: usize,
    others: impl FnOnce() -> K,
) {
    let is_kept = counts.contains_key(&key) || (counts.len() < most && has_room(0));
    *counts
        .entry(if is_kept { key } else { others() })
        .or_default() += 1;
}

/// Returns a name without what ends a frame or a line.
pub(crate) fn of_folded(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, "?")
}

//! The processes that are watched, and the reads of each caller.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::iter::once;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use crate::clock_read::clock_read;
use crate::options::{GroupBy, Options};
use crate::perf::{Event, Taken};
use crate::shared::Shared;
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

/// What the thread that counts is told.
pub(crate) enum Message {
    Event(Event),
    /// Send what was found since the last time.
    Take(Sender<Findings>),
}

struct Tally<'a> {
    options: &'a Options,
    /// The process that is watched, if it is one.
    pid: Option<u32>,
    shared: &'a Shared,
    files: Files,
    spaces: HashMap<u32, Space>,
    names: HashMap<u32, String>,
    units: HashMap<u32, Option<String>>,
    found: Findings,
}

/// How many processes, rows, callers of a row, and call chains are kept. A program can make any
/// number of them.
const MOST_SPACES: usize = 1 << 12;
const MOST_GROUPS: usize = 1 << 12;
const MOST_CALLERS: usize = 1 << 14;
const MOST_CHAINS: usize = 1 << 15;

/// Counts the records that another thread sends, and subtracts each from the number of those that
/// wait. This can be slow, because it looks up names.
pub(crate) fn count(
    options: &Options,
    pid: Option<u32>,
    messages: impl IntoIterator<Item = Message>,
    shared: &Arc<Shared>,
) -> Findings {
    let says = shared.clone();
    let on_download = || Rc::new(move |path: &Path| says.set_download(path)) as _;
    let files = Files::new(options.debuginfod.then(on_download));
    let (spaces, names, units, found) = Default::default();
    let mut tally = Tally { options, pid, shared, files, spaces, names, units, found };
    for message in messages {
        match message {
            Message::Event(event) => {
                tally.add(event);
                shared.waiting.fetch_sub(1, Relaxed);
            }
            // Nobody waits for it if the measurement is over.
            Message::Take(to) => drop(to.send(tally.take())),
        }
    }
    tally.take()
}

impl Tally<'_> {
    fn take(&mut self) -> Findings {
        let space = self.pid.and_then(|pid| self.spaces.get(&pid));
        let has_vdso = space.is_none_or(Space::has_vdso);
        let name = self.pid.and_then(|pid| self.names.get(&pid)).cloned();
        Findings { name, has_vdso, ..std::mem::take(&mut self.found) }
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Lost(records) => self.found.lost += records,
            Event::Forked(pid, parent) => {
                let space = self.spaces.get(&parent).map(|parent| parent.forked(pid));
                self.put(pid, space);
                let name = self.names.get(&parent).cloned();
                self.names.extend(name.map(|name| (pid, name)));
            }
            Event::Named(pid, name, has_executed) => {
                if has_executed {
                    self.put(pid, Some(Space::new(pid, self.files.clone())));
                }
                self.names.insert(pid, name);
            }
            Event::Mapped(pid, mapping) => {
                if let Some(space) = self.spaces.get_mut(&pid) {
                    space.map(mapping);
                }
            }
            Event::Sample(taken) => self.sample(&taken),
        }
    }

    fn put(&mut self, pid: u32, space: Option<Space>) {
        if self.spaces.len() >= MOST_SPACES {
            let watched = self.pid;
            self.spaces.retain(|pid, _| watched == Some(*pid));
            self.units.clear();
        }
        // The number may be that of another process now.
        self.units.remove(&pid);
        match space {
            Some(space) => self.spaces.insert(pid, space),
            None => self.spaces.remove(&pid),
        };
    }

    /// Returns the row of a process.
    fn key(&mut self, pid: u32) -> Key {
        let name = self.names.entry(pid).or_insert_with(|| proc::name(pid)).clone();
        let unit = self.units.entry(pid).or_insert_with(|| unit::of(pid)).clone();
        let key = match self.options.group_by() {
            GroupBy::Process => Key { name, unit, pid: Some(pid) },
            GroupBy::Name => Key { name, unit, pid: None },
            GroupBy::Unit => Key { name: unit.unwrap_or_else(|| "[no unit]".into()), unit: None, pid: None },
        };
        if self.found.groups.len() < MOST_GROUPS || self.found.groups.contains_key(&key) {
            return key;
        }
        Key { name: "[others]".into(), unit: None, pid: None }
    }

    fn sample(&mut self, taken: &Taken) {
        let pid = taken.pid;
        if !self.spaces.contains_key(&pid) {
            let space = Space::of(pid, self.files.clone());
            self.put(pid, Some(space.unwrap_or_else(|_| Space::hidden(pid, self.files.clone()))));
        }
        let key = self.key(pid);
        let found = &mut self.found;
        let name = of_folded(&key.name);
        let group = found.groups.entry(key).or_default();
        group.pids.insert(pid);
        group.samples += 1;
        found.samples += 1;
        self.shared.samples.fetch_add(1, Relaxed);
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let Some(leaf) = clock_read(space, taken).or_else(|| self.options.exact.then(String::new)) else {
            // A kernel thread has a program counter of 0.
            group.unread += u64::from(taken.registers.pc != 0 && space.is_hidden);
            return;
        };
        found.reads += 1;
        self.shared.reads.fetch_add(1, Relaxed);
        // Names are looked up while the process still runs.
        let addresses = space.chain(taken);
        let mut caller = space.caller(&addresses);
        if !group.callers.contains_key(&caller) && (group.callers.len() >= MOST_CALLERS || !has_room(0)) {
            caller = Caller::unknown();
        }
        *group.callers.entry(caller).or_default() += 1;
        if self.options.folded {
            let functions = addresses.iter().rev().flat_map(|address| space.functions(*address));
            let parts =
                once(name).chain(functions.map(|name| of_folded(&name))).chain(once(of_folded(&leaf)));
            let mut chain = parts.collect::<Vec<_>>().join(";");
            if !found.chains.contains_key(&chain) && (found.chains.len() >= MOST_CHAINS || !has_room(0)) {
                chain = "[other chains]".into();
            }
            *found.chains.entry(chain).or_default() += 1;
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
            let count = names.entry((key.name.clone(), key.unit.clone())).or_default();
            *count += 1;
            key.pid = key.pid.filter(|_| *count <= most);
            let all = self.groups.entry(key).or_default();
            all.pids.extend(group.pids);
            all.samples += group.samples;
            all.unread += group.unread;
            for (caller, reads) in group.callers {
                *all.callers.entry(caller).or_default() += reads;
            }
        }
    }

    /// Returns the call chains, each with its reads, sorted.
    pub(crate) fn folded(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.chains.iter().map(|(chain, reads)| format!("{chain} {reads}")).collect();
        lines.sort();
        lines
    }
}

/// Returns a name without what ends a frame or a line.
pub(crate) fn of_folded(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, "?")
}

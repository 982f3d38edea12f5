//! The processes that are watched, and the reads of each caller.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::entry::clock_read;
use crate::perf::{Event, Taken};
use crate::stack::{Files, Frame, Space, has_room};
use crate::{Result, proc};

/// Reads are close if the second comes so soon after the first, in nanoseconds.
const CLOSE: u64 = 1000;

/// A caller, and its reads or samples.
pub(crate) struct Caller {
    pub(crate) frame: Frame,
    /// The next frame, if the first has no name.
    pub(crate) called_by: Option<Frame>,
    pub(crate) reads: u64,
    /// Reads that came soon after the one before of the same thread.
    pub(crate) soon: u64,
}

/// The processes of one name. The process that is watched has its own.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) pids: HashSet<u32>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) callers: Vec<Caller>,
}

/// What is known of one call chain.
struct Chain {
    group: usize,
    caller: usize,
    /// As flamegraph.pl reads it.
    folded: Option<Rc<str>>,
}

#[derive(Default)]
pub(crate) struct Tally {
    /// The process that is watched, if it is one.
    pid: Option<u32>,
    /// The processes whose samples count; none if all do.
    followed: Option<HashSet<u32>>,
    is_exact: bool,
    /// What a breakpoint costs, in nanoseconds.
    trap_ns: u64,
    is_folded: bool,
    files: Rc<RefCell<Files>>,
    spaces: HashMap<u32, Space>,
    names: HashMap<u32, String>,
    pub(crate) groups: Vec<Group>,
    /// By the number of the space.
    chains: HashMap<(u64, Vec<u64>), Chain>,
    folded: HashMap<Rc<str>, u64>,
    /// When each thread read a clock last.
    last: HashMap<u32, u64>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) lost: u64,
    /// Programs that the process executed.
    pub(crate) programs: u32,
}

/// The call chains and the processes that are kept. There can be any number of them.
const MOST_CHAINS: usize = 1 << 15;
const MOST_SPACES: usize = 1 << 12;

impl Tally {
    /// Reads the mappings of the process, if it is one.
    pub(crate) fn new(pid: Option<u32>, trap_ns: Option<u64>, is_folded: bool) -> Result<Self> {
        let files = Rc::<RefCell<Files>>::default();
        let (mut spaces, mut groups) = (HashMap::new(), Vec::new());
        if let Some(pid) = pid {
            let mut space = Space::of(pid, files.clone())?;
            space.warm_up();
            spaces.insert(pid, space);
            let (name, pids) = (proc::name(pid), HashSet::from([pid]));
            groups.push(Group { name, pids, ..Group::default() });
        }
        Ok(Self {
            pid,
            followed: pid.map(|pid| HashSet::from([pid])),
            is_exact: trap_ns.is_some(),
            trap_ns: trap_ns.unwrap_or(0),
            is_folded,
            files,
            spaces,
            groups,
            ..Self::default()
        })
    }

    /// The processes that are followed.
    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.followed.iter().flatten().copied()
    }

    pub(crate) fn has_vdso(&self) -> bool {
        self.pid.is_none_or(|pid| self.spaces.get(&pid).is_some_and(Space::has_vdso))
    }

    /// The code of a process that runs.
    pub(crate) fn space(&mut self, pid: u32) -> Result<&mut Space> {
        self.spaces.get_mut(&pid).ok_or_else(|| "the process ended".into())
    }

    fn follows(&self, pid: u32) -> bool {
        self.followed.as_ref().is_none_or(|followed| followed.contains(&pid))
    }

    pub(crate) fn add(&mut self, time: u64, event: Event) {
        match event {
            Event::Lost(records) => self.lost += records,
            Event::Forked { pid, parent } if self.follows(parent) => {
                let space = self.spaces.get(&parent).map(|parent| parent.forked(pid));
                self.put(pid, space);
                let name = self.names.get(&parent).cloned();
                self.names.extend(name.map(|name| (pid, name)));
                if let Some(followed) = &mut self.followed {
                    followed.insert(pid);
                }
            }
            Event::Named { pid, name, executed } if self.follows(pid) => {
                if executed {
                    let space = Space::new(pid, self.files.clone());
                    self.put(pid, Some(space));
                }
                if self.pid == Some(pid) {
                    self.programs += u32::from(executed);
                    self.groups[0].name = name;
                } else {
                    self.names.insert(pid, name);
                }
            }
            Event::Mapped(pid, mapping) => {
                if let Some(space) = self.spaces.get_mut(&pid) {
                    space.map(mapping);
                }
            }
            Event::Sample(taken) if self.follows(taken.pid) => self.sample(time, &taken),
            Event::Sample(_) | Event::Forked { .. } | Event::Named { .. } => {}
        }
    }

    fn put(&mut self, pid: u32, space: Option<Space>) {
        if self.spaces.len() >= MOST_SPACES {
            let watched = self.pid;
            self.spaces.retain(|pid, _| watched == Some(*pid));
        }
        match space {
            Some(space) => self.spaces.insert(pid, space),
            None => self.spaces.remove(&pid),
        };
    }

    fn sample(&mut self, time: u64, taken: &Taken) {
        let pid = taken.pid;
        if !self.spaces.contains_key(&pid) {
            // A process that ended already has no mappings.
            let space = Space::of(pid, self.files.clone());
            let space = space.unwrap_or_else(|_| Space::new(pid, self.files.clone()));
            self.put(pid, Some(space));
        }
        let group = self.group(pid);
        self.samples += 1;
        self.groups[group].samples += 1;
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let Some(leaf) = clock_read(space, taken).or_else(|| self.is_exact.then(String::new)) else { return };
        let mut addresses = space.chain(taken);
        let mut key = (space.number, addresses.clone());
        // A process can have any number of functions, with long names.
        if !self.chains.contains_key(&key) && !has_room(0) {
            addresses.clear();
            key.1.clear();
        }
        if self.chains.get(&key).is_none_or(|chain| chain.group != group) {
            if self.chains.len() >= MOST_CHAINS {
                self.chains.clear();
            }
            let chain = self.chain(group, pid, &addresses, &leaf);
            self.chains.insert(key.clone(), chain);
        }
        let before = self.last.insert(taken.tid, time);
        let is_soon = before.is_some_and(|before| time.saturating_sub(before) < self.trap_ns + CLOSE);
        let chain = &self.chains[&key];
        if let Some(folded) = &chain.folded {
            let is_kept = self.folded.len() < MOST_CHAINS || self.folded.contains_key(folded);
            let name = if is_kept { folded.clone() } else { "[other chains]".into() };
            *self.folded.entry(name).or_default() += 1;
        }
        let group = &mut self.groups[chain.group];
        let caller = &mut group.callers[chain.caller];
        caller.reads += 1;
        caller.soon += u64::from(is_soon);
        group.reads += 1;
        self.reads += 1;
    }

    /// The group of a process, by its name.
    fn group(&mut self, pid: u32) -> usize {
        if self.pid == Some(pid) {
            return 0;
        }
        let name = self.names.entry(pid).or_insert_with(|| proc::name(pid));
        let first = usize::from(self.pid.is_some());
        let known = self.groups.iter().skip(first).position(|group| group.name == *name);
        let at = known.map_or(self.groups.len(), |at| at + first);
        if known.is_none() {
            self.groups.push(Group { name: name.clone(), ..Group::default() });
        }
        self.groups[at].pids.insert(pid);
        at
    }

    /// Names the addresses while the process still runs.
    fn chain(&mut self, group: usize, pid: u32, addresses: &[u64], leaf: &str) -> Chain {
        let Some(space) = self.spaces.get_mut(&pid) else { unreachable!("it was put there") };
        let at = space.caller(addresses);
        let mut frame = |at: usize| addresses.get(at).map(|address| space.frame(*address));
        let first = frame(at).unwrap_or_else(|| Frame::unknown("[unknown]".into(), ""));
        let called_by = if first.has_name { None } else { frame(at + 1) };
        let callers = &mut self.groups[group].callers;
        let known = callers.iter().position(|caller| caller.frame == first && caller.called_by == called_by);
        let caller = known.unwrap_or(callers.len());
        if known.is_none() {
            callers.push(Caller { frame: first, called_by, reads: 0, soon: 0 });
        }
        let folded = self.is_folded.then(|| {
            let space = self.spaces.get_mut(&pid);
            let names = space.into_iter().flat_map(|space| {
                addresses.iter().rev().map(|address| space.frame(*address).function).collect::<Vec<_>>()
            });
            let names = [self.groups[group].name.clone()].into_iter().chain(names).chain([leaf.to_owned()]);
            names.map(|name| of_folded(&name)).collect::<Vec<_>>().join(";").into()
        });
        Chain { group, caller, folded }
    }

    /// The call chains, each with its reads, sorted.
    pub(crate) fn folded(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.folded.iter().map(|(chain, reads)| format!("{chain} {reads}")).collect();
        lines.sort();
        lines
    }
}

/// A name without what ends a frame or a line.
fn of_folded(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, "?")
}

#[test]
fn no_name_breaks_a_folded_line() {
    assert_eq!(of_folded("a;b\n\u{1}<c>"), "a:b??<c>");
}

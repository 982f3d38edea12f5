//! The processes that are watched, and the reads of each caller.

use std::collections::{HashMap, HashSet};
use std::iter::once;
use std::rc::Rc;

use crate::entry::clock_read;
use crate::perf::{Event, Taken};
use crate::stack::{Files, Frame, Space, has_room};
use crate::{Options, Result, Subject, proc};

/// A caller, and the next frame if the first has no name.
pub(crate) type Caller = (Rc<Frame>, Option<Rc<Frame>>);

/// The processes of one name.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) pids: HashSet<u32>,
    pub(crate) samples: u64,
    /// Samples of processes without known mappings. Each may be in a read.
    pub(crate) unread: u64,
    /// Their reads, or samples in reads.
    pub(crate) callers: HashMap<Caller, u64>,
}

#[derive(Default)]
pub(crate) struct Tally {
    /// The process that is watched, if it is one, and those that it started.
    pid: Option<u32>,
    pub(crate) followed: HashSet<u32>,
    is_exact: bool,
    is_folded: bool,
    files: Files,
    pub(crate) spaces: HashMap<u32, Space>,
    pub(crate) names: HashMap<u32, String>,
    pub(crate) groups: HashMap<String, Group>,
    /// As flamegraph.pl reads them.
    chains: HashMap<String, u64>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) lost: u64,
    /// Whether the process executed another program.
    pub(crate) has_executed: bool,
}

/// The processes, the callers of one name, and the call chains that are kept. There can be any
/// number of them.
const MOST_SPACES: usize = 1 << 12;
const MOST_CALLERS: usize = 1 << 14;
const MOST_CHAINS: usize = 1 << 15;

impl Tally {
    /// Reads the mappings of the process, if it is one. Of a command that waits, the kernel reports
    /// them.
    pub(crate) fn new(options: &Options, pid: Option<u32>) -> Result<Self> {
        let (is_exact, is_folded) = (options.exact, options.folded);
        let followed = pid.into_iter().collect();
        let mut tally = Self { pid, followed, is_exact, is_folded, ..Self::default() };
        tally.files.asks_debuginfod = options.debuginfod;
        let waits = matches!(options.subject, Subject::Command(_)) && !options.exact;
        if let Some(pid) = pid.filter(|_| !waits) {
            let mut space = Space::of(pid, tally.files.clone())?;
            space.warm_up();
            tally.spaces.insert(pid, space);
            tally.names.insert(pid, proc::name(pid));
        }
        Ok(tally)
    }

    pub(crate) fn has_vdso(&self) -> bool {
        self.pid.is_none_or(|pid| self.spaces.get(&pid).is_none_or(Space::has_vdso))
    }

    fn follows(&self, pid: u32) -> bool {
        self.pid.is_none() || self.followed.contains(&pid)
    }

    pub(crate) fn add(&mut self, event: Event) {
        match event {
            Event::Lost(records) => self.lost += records,
            Event::Forked(pid, parent) if self.follows(parent) => {
                let space = self.spaces.get(&parent).map(|parent| parent.forked(pid));
                self.put(pid, space);
                let name = self.names.get(&parent).cloned();
                self.names.extend(name.map(|name| (pid, name)));
                self.followed.extend(self.pid.map(|_| pid));
            }
            Event::Named(pid, name, has_executed) if self.follows(pid) => {
                if has_executed {
                    self.put(pid, Some(Space::new(pid, self.files.clone())));
                    self.has_executed |= self.pid == Some(pid);
                }
                self.names.insert(pid, name);
            }
            Event::Mapped(pid, mapping) => {
                if let Some(space) = self.spaces.get_mut(&pid) {
                    space.map(mapping);
                }
            }
            Event::Sample(taken) if self.follows(taken.pid) => self.sample(&taken),
            Event::Sample(_) | Event::Forked(..) | Event::Named(..) => {}
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

    fn sample(&mut self, taken: &Taken) {
        let pid = taken.pid;
        if !self.spaces.contains_key(&pid) {
            // A process that ended already has no mappings.
            let space = Space::of(pid, self.files.clone());
            let space = space.unwrap_or_else(|_| Space::new(pid, self.files.clone()));
            self.put(pid, Some(space));
        }
        let name = self.names.entry(pid).or_insert_with(|| proc::name(pid));
        let group = self.groups.entry(name.clone()).or_default();
        group.pids.insert(pid);
        group.samples += 1;
        self.samples += 1;
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let Some(leaf) = clock_read(space, taken).or_else(|| self.is_exact.then(String::new)) else {
            // A kernel thread has no mappings, and a program counter of 0.
            group.unread += u64::from(taken.registers.pc != 0 && !space.has_mappings());
            return;
        };
        self.reads += 1;
        // Names are looked up while the process still runs.
        let addresses = space.chain(taken);
        let at = space.caller(&addresses);
        let mut frame = |at: usize| addresses.get(at).map(|address| space.frame(*address));
        let unknown = || Rc::new(Frame::unknown("[unknown]".into(), ""));
        let first = frame(at).unwrap_or_else(unknown);
        let next = if first.has_name { None } else { frame(at + 1) };
        let mut caller = (first, next);
        if !group.callers.contains_key(&caller) && (group.callers.len() >= MOST_CALLERS || !has_room(0)) {
            caller = (unknown(), None);
        }
        *group.callers.entry(caller).or_default() += 1;
        if self.is_folded {
            let functions = addresses.iter().rev().map(|address| of_folded(&space.frame(*address).function));
            let parts = once(of_folded(name)).chain(functions).chain(once(of_folded(&leaf)));
            let mut chain = parts.collect::<Vec<_>>().join(";");
            if !self.chains.contains_key(&chain) && (self.chains.len() >= MOST_CHAINS || !has_room(0)) {
                chain = "[other chains]".into();
            }
            *self.chains.entry(chain).or_default() += 1;
        }
    }

    /// The call chains, each with its reads, sorted.
    pub(crate) fn folded(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.chains.iter().map(|(chain, reads)| format!("{chain} {reads}")).collect();
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

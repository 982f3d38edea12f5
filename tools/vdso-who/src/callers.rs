//! The processes that are watched, and the reads of each caller.

use std::collections::{HashMap, HashSet};
use std::iter::once;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::clock_read::clock_read;
use crate::perf::{Event, Taken};
use crate::space::{Files, Frame, Space, has_room};
use crate::{Options, proc};

/// A caller, and the next frame if the first has no name.
pub(crate) type Caller = (Arc<Frame>, Option<Arc<Frame>>);

/// The processes of one name.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) pids: HashSet<u32>,
    pub(crate) samples: u64,
    /// Samples of processes whose mappings could not be read. Each may be in a read.
    pub(crate) unread: u64,
    /// Their reads, or samples in reads.
    pub(crate) callers: HashMap<Caller, u64>,
}

/// What the records show.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) names: HashMap<u32, String>,
    pub(crate) groups: HashMap<String, Group>,
    /// As flamegraph.pl reads them.
    chains: HashMap<String, u64>,
    pub(crate) samples: u64,
    pub(crate) reads: u64,
    pub(crate) lost: u64,
    /// Whether the process has a vDSO, as far as its mappings are known.
    pub(crate) has_vdso: bool,
}

struct Tally {
    /// The process that is watched, if it is one.
    pid: Option<u32>,
    is_exact: bool,
    is_folded: bool,
    files: Files,
    spaces: HashMap<u32, Space>,
    found: Findings,
}

/// The processes, the callers of one name, and the call chains that are kept. There can be any
/// number of them.
const MOST_SPACES: usize = 1 << 12;
const MOST_CALLERS: usize = 1 << 14;
const MOST_CHAINS: usize = 1 << 15;

/// Takes the records that another thread sends, and subtracts each from `waiting`. It takes as long
/// as names are looked up.
pub(crate) fn count(
    options: &Options,
    pid: Option<u32>,
    events: impl IntoIterator<Item = Event>,
    waiting: &AtomicUsize,
) -> Findings {
    let files = Files::new(options.debuginfod.then(|| Rc::new(|_: &Path| ()) as _));
    let (is_exact, is_folded, spaces, found) =
        (options.exact, options.folded, HashMap::new(), Findings::default());
    let mut tally = Tally { pid, is_exact, is_folded, files, spaces, found };
    for event in events {
        tally.add(event);
        waiting.fetch_sub(1, Relaxed);
    }
    let space = pid.and_then(|pid| tally.spaces.get(&pid));
    Findings { has_vdso: space.is_none_or(Space::has_vdso), ..tally.found }
}

impl Tally {
    fn add(&mut self, event: Event) {
        match event {
            Event::Lost(records) => self.found.lost += records,
            Event::Forked(pid, parent) => {
                let space = self.spaces.get(&parent).map(|parent| parent.forked(pid));
                self.put(pid, space);
                let name = self.found.names.get(&parent).cloned();
                self.found.names.extend(name.map(|name| (pid, name)));
            }
            Event::Named(pid, name, has_executed) => {
                if has_executed {
                    self.put(pid, Some(Space::new(pid, self.files.clone())));
                }
                self.found.names.insert(pid, name);
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
        }
        match space {
            Some(space) => self.spaces.insert(pid, space),
            None => self.spaces.remove(&pid),
        };
    }

    fn sample(&mut self, taken: &Taken) {
        let pid = taken.pid;
        if !self.spaces.contains_key(&pid) {
            let space = Space::of(pid, self.files.clone());
            self.put(pid, Some(space.unwrap_or_else(|_| Space::hidden(pid, self.files.clone()))));
        }
        let found = &mut self.found;
        let name = found.names.entry(pid).or_insert_with(|| proc::name(pid));
        let group = found.groups.entry(name.clone()).or_default();
        group.pids.insert(pid);
        group.samples += 1;
        found.samples += 1;
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let Some(leaf) = clock_read(space, taken).or_else(|| self.is_exact.then(String::new)) else {
            // A kernel thread has a program counter of 0.
            group.unread += u64::from(taken.registers.pc != 0 && space.is_hidden);
            return;
        };
        found.reads += 1;
        // Names are looked up while the process still runs.
        let addresses = space.chain(taken);
        let at = space.caller(&addresses);
        let mut frame = |at: usize| addresses.get(at).map(|address| space.frame(*address));
        let unknown = || Arc::new(Frame::unknown("[unknown]".into(), ""));
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
            if !found.chains.contains_key(&chain) && (found.chains.len() >= MOST_CHAINS || !has_room(0)) {
                chain = "[other chains]".into();
            }
            *found.chains.entry(chain).or_default() += 1;
        }
    }
}

impl Findings {
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

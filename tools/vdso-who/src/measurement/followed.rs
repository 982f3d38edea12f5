//! The processes that are watched.

use std::collections::HashSet;

use crate::arguments::Arguments;
use crate::perf::Event;
use crate::proc;

pub(super) struct Followed {
    /// The process that was asked for. None if a cgroup or the host is watched.
    first: Option<u32>,
    /// Whether the descendants of the process `first` are watched as well.
    with_children: bool,
    /// Whether this program starts the process that was asked for. If so, that process has no
    /// descendants yet.
    is_command: bool,
    /// The process `first` and its watched descendants.
    pids: HashSet<u32>,
    /// Processes that are not watched. Their samples are not copied.
    pub(super) unwatched_pids: HashSet<u32>,
}

impl Followed {
    pub(super) fn new(arguments: &Arguments, first: Option<u32>) -> Self {
        Self {
            first,
            with_children: arguments.follows(),
            is_command: arguments.has_command(),
            pids: first.into_iter().collect(),
            unwatched_pids: HashSet::new(),
        }
    }

    /// Adds the descendants that run now.
    pub(super) fn add_family(&mut self) {
        let Some(first) = self.first else { return };
        if self.with_children && !self.is_command {
            self.pids.extend(proc::family(first));
        }
    }

    /// Returns the processes. The one that was asked for comes first.
    pub(super) fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<_> = self.pids.iter().copied().collect();
        pids.sort_by_key(|pid| Some(*pid) != self.first);
        pids
    }

    /// Returns the descendants.
    pub(super) fn children(&self) -> impl Iterator<Item = u32> {
        let pids = self.pids.iter().copied();
        pids.filter(|pid| Some(*pid) != self.first)
    }

    fn has(&self, pid: u32) -> bool {
        self.first.is_none() || self.pids.contains(&pid)
    }

    /// Returns whether a record belongs to a watched process. If the record says that a process was
    /// forked, first decides whether the new process is watched.
    pub(super) fn takes(&mut self, event: &Event) -> bool {
        match event {
            Event::Lost(_) => true,
            Event::Sample(sample) => {
                let is_watched = self.has(sample.pid);
                if !is_watched {
                    self.unwatched_pids.insert(sample.pid);
                }
                is_watched
            }
            Event::Mapped(pid, _)
            | Event::Named(pid, ..)
            | Event::ThreadNamed(pid, ..)
            | Event::Ended(pid) => self.has(*pid),
            Event::Forked(pid, parent) => self.fork(*pid, *parent),
        }
    }

    fn fork(&mut self, pid: u32, parent: u32) -> bool {
        if self.first.is_none() {
            return true;
        }
        let is_watched = self.with_children && self.has(parent);
        // The id may have belonged to another process before.
        self.unwatched_pids.remove(&pid);
        self.pids.remove(&pid);
        if is_watched {
            self.pids.insert(pid);
        }
        is_watched
    }
}

//! What is known of each caller.

use std::collections::HashMap;

use vdso_doctor::ProcessVdso;

use crate::perf::Taken;
use crate::stack::{Frame, Stacks, has_room};

/// A caller, and its reads or samples.
pub(crate) struct Caller {
    pub(crate) frame: Frame,
    pub(crate) reads: u64,
    /// Reads that came soon after the one before of the same thread.
    pub(crate) soon: u64,
}

/// The reads of one call chain.
struct Chain {
    caller: usize,
    reads: u64,
    /// The chain as inferno reads it.
    folded: Option<String>,
}

pub(crate) struct Tally {
    stacks: Stacks,
    vdso: Option<ProcessVdso>,
    is_folded: bool,
    /// Those of the program that runs.
    chains: HashMap<Vec<u64>, Chain>,
    /// Folded chains and their reads that are no longer in `chains`.
    past: HashMap<String, u64>,
    pub(crate) callers: Vec<Caller>,
    /// When each thread read a clock last.
    last: HashMap<u32, u64>,
    /// The first times from one read of a thread to its next one.
    pub(crate) gaps: Vec<u64>,
    pub(crate) reads: u64,
}

const GAPS: usize = 100_000;

/// The call chains that are kept. A recursive function has any number of them.
const MOST_CHAINS: usize = 1 << 15;

impl Tally {
    pub(crate) fn new(stacks: Stacks, vdso: Option<ProcessVdso>, is_folded: bool) -> Self {
        let (chains, past, callers, last, gaps) = Default::default();
        Self { stacks, vdso, is_folded, chains, past, callers, last, gaps, reads: 0 }
    }

    /// The process mapped something.
    pub(crate) fn refresh(&mut self) {
        // If it ended, the mappings that are known stay.
        let _ = self.stacks.refresh();
    }

    /// The process executed another program.
    pub(crate) fn replace(&mut self, stacks: Stacks, vdso: Option<ProcessVdso>) {
        self.fold();
        self.last.clear();
        self.stacks = stacks;
        self.vdso = vdso;
    }

    /// Keeps of the chains what a flame graph shows.
    fn fold(&mut self) {
        for Chain { folded, reads, .. } in self.chains.drain().map(|(_, chain)| chain) {
            let Some(chain) = folded else { continue };
            let is_kept = self.past.len() < MOST_CHAINS || self.past.contains_key(&chain);
            *self.past.entry(if is_kept { chain } else { "[other chains]".into() }).or_default() += reads;
        }
    }

    /// Adds a read. It is soon if less than `soon` nanoseconds passed since the one before.
    pub(crate) fn add(&mut self, time: u64, taken: &Taken, soon: u64) {
        let mut addresses = self.stacks.chain(taken);
        // A process can have any number of functions, with long names.
        if !self.chains.contains_key(&addresses) && !has_room(0) {
            addresses.clear();
        }
        let before = self.last.insert(taken.tid, time);
        let gap = before.map(|before| time.saturating_sub(before));
        let is_soon = gap.is_some_and(|gap| gap < soon);
        self.gaps.extend(gap.filter(|_| self.gaps.len() < GAPS));
        if !self.chains.contains_key(&addresses) {
            if self.chains.len() >= MOST_CHAINS {
                self.fold();
            }
            let chain = self.chain(&addresses, taken.registers.pc);
            self.chains.insert(addresses.clone(), chain);
        }
        let Some(chain) = self.chains.get_mut(&addresses) else { return };
        chain.reads += 1;
        let caller = &mut self.callers[chain.caller];
        caller.reads += 1;
        caller.soon += u64::from(is_soon);
        self.reads += 1;
    }

    /// Names the addresses while the process still runs.
    fn chain(&mut self, addresses: &[u64], pc: u64) -> Chain {
        let caller = self.stacks.caller(addresses).or(addresses.first().copied());
        let unknown =
            || Frame { function: "[unknown]".into(), file: None, line: None, module: String::new() };
        let frame = caller.map_or_else(unknown, |address| self.stacks.frame(address));
        let known = self.callers.iter().position(|caller| caller.frame == frame);
        let caller = known.unwrap_or(self.callers.len());
        if known.is_none() {
            self.callers.push(Caller { frame, reads: 0, soon: 0 });
        }
        let folded = self.is_folded.then(|| {
            let symbol = self.vdso.as_ref().and_then(|vdso| vdso.symbol_at(pc));
            let leaf = symbol.map_or("[system call]", |symbol| &symbol.name).to_owned();
            let names = addresses.iter().rev().map(|address| self.stacks.frame(*address).function);
            names.chain([leaf]).map(|name| of_folded(&name)).collect::<Vec<_>>().join(";")
        });
        Chain { caller, reads: 0, folded }
    }

    /// The folded chains, each with its reads.
    pub(crate) fn folded(&self) -> Vec<String> {
        let now = self.chains.values().filter_map(|chain| Some((chain.folded.as_deref()?, chain.reads)));
        let past = self.past.iter().map(|(chain, reads)| (&**chain, *reads));
        now.chain(past).map(|(chain, reads)| format!("{chain} {reads}")).collect()
    }
}

/// A name as inferno reads it, and as XML may contain it.
fn of_folded(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, "?")
}

#[test]
fn no_name_breaks_a_folded_line_or_xml() {
    assert_eq!(of_folded("a;b\n\u{1}<c>"), "a:b??<c>");
}

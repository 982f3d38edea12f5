//! The call sites of functions that take the number of the system call as an argument, as libc's
//! syscall(2) does.
//!
//! A thread in a short system call spends a third of the time at the entry to the kernel and at the
//! exit from it. In a sample from there, the call chain contains no function that identifies the
//! system call. But the same call site usually makes the same system call again. So once one sample
//! has identified the system call of a call site, a later sample from that site counts as a sample
//! in the same system call. A call site that has made system calls of both kinds, those that read a
//! clock and others, identifies nothing.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use super::kernel::{Call, Function};
use crate::address_space::AddressSpace;
use crate::perf::Sample;

/// The calls that were seen from a call site.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    clock: Option<Function>,
    other: bool,
}

impl Seen {
    fn add(&mut self, call: Call) {
        match call {
            Call::Clock(function) => self.clock = Some(function),
            Call::Other => self.other = true,
            // An exception can come during any call, so it tells nothing.
            Call::Exception => {}
        }
    }

    /// Returns a call that reads a clock if every known call from the site read one, and
    /// [`Call::Other`] if none did. Returns `None` if there were both, because the next call from
    /// the site could be either, or if no call from the site is known.
    fn call(self) -> Option<Call> {
        match (self.clock, self.other) {
            (Some(function), false) => Some(Call::Clock(function)),
            (None, true) => Some(Call::Other),
            _ => None,
        }
    }
}

/// How many addresses of a call chain, beginning with the program counter, distinguish one call
/// site from another. Go has four functions between its `unix.ClockGettime` and the `syscall`
/// instruction.
const DEPTH: usize = 6;

/// The maximum number of call sites that are kept.
const MOST: usize = 1 << 13;

#[derive(Default)]
pub(super) struct Sites {
    /// The calls by process and program counter.
    code: HashMap<(u32, u64), Seen>,
    /// The calls by process and call chain. A call chain is found by unwinding, and unwinding reads
    /// the files of the program. The files of a program that reads no clock need not be read, so
    /// only the chains of code that has read a clock are kept.
    chains: HashMap<u64, Seen>,
}

impl Sites {
    /// Records a call that is known.
    pub(super) fn learn(&mut self, space: &mut AddressSpace, sample: &Sample, call: Call) {
        if self.code.len() >= MOST {
            self.code.clear();
        }
        let code = self.code.entry(place(sample)).or_default();
        code.add(call);
        if code.clock.is_some() {
            if self.chains.len() >= MOST {
                self.chains.clear();
            }
            let chain = chain(space, sample);
            self.chains.entry(chain).or_default().add(call);
        }
    }

    /// Returns the call that the same code made before.
    pub(super) fn call(&self, space: &mut AddressSpace, sample: &Sample) -> Option<Call> {
        let code = self.code.get(&place(sample))?;
        if code.clock.is_none() {
            return code.call();
        }
        self.chains.get(&chain(space, sample))?.call()
    }
}

fn place(sample: &Sample) -> (u32, u64) {
    (sample.pid, sample.registers.pc)
}

fn chain(space: &mut AddressSpace, sample: &Sample) -> u64 {
    let mut hasher = DefaultHasher::new();
    sample.pid.hash(&mut hasher);
    for address in space.chain(sample).iter().take(DEPTH) {
        address.hash(&mut hasher);
    }
    hasher.finish()
}

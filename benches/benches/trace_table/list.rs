//! What call ops are compared with: ftrace's list, in user space.
//!
//! One list has all tracers, each in a record with the sites that it is for. A site knows whether anybody traces it, as ftrace's does,
//! whose call is a no-op until then; if so it walks the whole list, and one look-up in each record's hash table tells whether the record is
//! for it.
//!
//! It can do what call ops can: tracers come and go while the list is walked. So a record's table is replaced whole, as ftrace does it, and
//! as there nobody waits; what was replaced is left behind. It is written to be fast: tables are open-addressed and at most half full, and
//! nothing is locked or counted on the reading side. What it would need to time reads is left out.

#![allow(unsafe_code, reason = "the links of the list are pointers")]

use std::iter;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use vdso_time_trace::{Event, Read, Site, Tracer};

/// All records; the newest first.
static LIST: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// A tracer, and where it traces.
struct Record {
    tracer: &'static Tracer,
    sites: AtomicPtr<Set>,
    next: Option<&'static Record>,
}

/// Some sites, by address.
struct Set {
    /// A power of two of addresses; 0 is none.
    slots: Box<[usize]>,
    shift: u32,
}

/// A site of the list's own.
pub(crate) struct ListSite {
    is_traced: AtomicBool,
    /// What its events say, and what records know it by. It is in no list of the crate's.
    site: Site,
}

impl ListSite {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { is_traced: AtomicBool::new(false), site: Site::new(name, "time()", file!(), line!()) }
    }

    #[inline]
    pub(crate) fn call<R: Read>(&'static self, read: impl Fn() -> R) -> R {
        if self.is_traced.load(Ordering::Relaxed) { self.trace(read) } else { read() }
    }

    #[cold]
    #[inline(never)]
    fn trace<R: Read>(&'static self, read: impl Fn() -> R) -> R {
        let answer = read();
        let event = Event::new(&self.site, answer.reading());
        for record in records() {
            if record.sites().contains(self.address()) {
                record.tracer.call(&event);
            }
        }
        answer
    }

    fn address(&'static self) -> usize {
        ptr::from_ref(&self.site).addr()
    }

    /// Has a tracer told of this site. The bench has one thread: nobody else attaches.
    pub(crate) fn attach(&'static self, tracer: &'static Tracer) {
        let record = records().find(|record| ptr::eq(record.tracer, tracer)).unwrap_or_else(|| {
            let sites = AtomicPtr::new(Box::leak(Box::new(Set::of(&[]))));
            let record = Box::leak(Box::new(Record { tracer, sites, next: records().next() }));
            LIST.store(record, Ordering::Release);
            record
        });
        let mut sites = record.sites().addresses();
        sites.push(self.address());
        record.sites.store(Box::leak(Box::new(Set::of(&sites))), Ordering::Release);
        self.is_traced.store(true, Ordering::Release);
    }
}

fn records() -> impl Iterator<Item = &'static Record> {
    // SAFETY: `attach` stores leaked records, and nobody else anything.
    let newest = unsafe { LIST.load(Ordering::Acquire).as_ref() };
    iter::successors(newest, |record| record.next)
}

impl Record {
    fn sites(&self) -> &'static Set {
        // SAFETY: `attach` stores leaked sets, and nobody else anything.
        unsafe { &*self.sites.load(Ordering::Acquire) }
    }
}

impl Set {
    fn of(addresses: &[usize]) -> Self {
        let room = (2 * addresses.len()).next_power_of_two().max(2);
        let mut set = Self { slots: vec![0; room].into(), shift: usize::BITS - room.ilog2() };
        for address in addresses {
            let free = set.probe(*address).find(|at| set.slots[*at] == 0);
            set.slots[free.expect("it is half empty")] = *address;
        }
        set
    }

    fn addresses(&self) -> Vec<usize> {
        self.slots.iter().copied().filter(|slot| *slot != 0).collect()
    }

    /// The slots where an address may be, the likeliest first.
    fn probe(&self, address: usize) -> impl Iterator<Item = usize> + use<> {
        /// 2^64 by the golden ratio: its multiples lie far apart (Knuth, 6.4).
        const GOLDEN: usize = 0x9e37_79b9_7f4a_7c15_u64 as usize;
        let (first, mask) = (address.wrapping_mul(GOLDEN) >> self.shift, self.slots.len() - 1);
        (first..).map(move |at| at & mask)
    }

    fn contains(&self, address: usize) -> bool {
        self.probe(address).map(|at| self.slots[at]).take_while(|slot| *slot != 0).any(|slot| slot == address)
    }
}

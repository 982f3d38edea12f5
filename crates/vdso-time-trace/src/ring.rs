//! [`Ring`]: the last reads.
//!
//! Each read takes a ticket; the slot of a ticket is its remainder by `N`. A writer that finds its slot being written (by one that is a
//! multiple of `N` tickets away, which a signal handler may have interrupted) loses its event, which is counted.

use core::fmt;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use vdso_time::getcpu;

use crate::event::Event;
use crate::per_site::Fresh;
use crate::site::{Site, sites};
use crate::slot::{Fields, Slot};
use crate::timing::now;
use crate::tracer::Trace;

/// The last `N` reads: where, on which CPU, and when.
pub struct Ring<const N: usize> {
    tickets: AtomicU64,
    lost: AtomicU64,
    slots: [Slot; N],
}

/// A read of the past.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Past {
    /// Its number, from 0.
    pub number: u64,
    /// Where it was.
    pub site: &'static Site,
    /// The CPU; `None` if that cannot be told.
    pub cpu: Option<u32>,
    /// Nanoseconds of `CLOCK_MONOTONIC`, whatever the site reads.
    pub nanos: i64,
}

/// No CPU.
const UNKNOWN: u32 = u32::MAX;

impl<const N: usize> Ring<N> {
    /// Of nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N > 0) };
        Self { tickets: AtomicU64::new(0), lost: AtomicU64::new(0), slots: [const { fresh() }; N] }
    }

    /// The last events, oldest first. Those that are written or overwritten meanwhile are left out.
    pub fn events(&self) -> impl Iterator<Item = Past> {
        let end = self.tickets.load(Ordering::Relaxed);
        (end.saturating_sub(N as u64)..end).filter_map(|ticket| self.event(ticket))
    }

    /// The events that were not written because their slot was being written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn event(&self, ticket: u64) -> Option<Past> {
        let Fields { site, cpu, nanos } = self.slot(ticket).read(ticket)?;
        let cpu = Some(cpu).filter(|cpu| *cpu != UNKNOWN);
        Some(Past { number: ticket, site: sites().get(site)?, cpu, nanos })
    }

    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[(ticket % N as u64) as usize]
    }
}

/// A slot with no event.
const fn fresh() -> Slot {
    Slot {
        sequence: AtomicU64::new(0),
        site: AtomicUsize::new(0),
        cpu: AtomicU32::new(UNKNOWN),
        nanos: AtomicI64::new(0),
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Fresh for Ring<N> {
    const FRESH: Self = Self::new();
}

impl<const N: usize> Trace for Ring<N> {
    fn event(&self, event: &Event) {
        let Some(site) = event.site().index() else { return };
        let cpu = getcpu().map_or(UNKNOWN, |cpu| cpu.cpu);
        let nanos = event.span().map_or_else(now, |(_, end)| end);
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        if !self.slot(ticket).write(ticket, Fields { site, cpu, nanos }) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<const N: usize> fmt::Debug for Ring<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.events()).finish()
    }
}

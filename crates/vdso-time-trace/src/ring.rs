//! [`Ring`]: the last reads.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use vdso_time::{Clock as _, Instant, Monotonic, cpu};

use crate::seqlock::Slot;
use crate::site::{Site, sites};
use crate::tracer::Trace;

/// The last `N` reads: where, on which CPU, and when.
///
/// An event that meets another writer in its slot is lost, and [`lost`](Self::lost) counts it. That
/// takes a writer that `N` others overtake.
pub struct Ring<const N: usize> {
    /// Event `n` goes to slot `n % N`.
    tickets: AtomicU64,
    lost: AtomicU64,
    slots: [Slot; N],
}

/// An event of a [`Ring`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Past {
    /// Its number, from 0.
    pub number: u64,
    /// Where the clock was read.
    pub site: &'static Site,
    /// The CPU, or `None` if `cpu()` failed.
    pub cpu: Option<u32>,
    /// Nanoseconds of `CLOCK_MONOTONIC`, whatever clock the site reads; 0 where a sandbox denies it.
    pub nanos: i64,
}

const UNKNOWN_CPU: u64 = u64::MAX;

impl<const N: usize> Ring<N> {
    /// Creates an empty ring.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N > 0) };
        let slots =
            [const { Slot { sequence: AtomicU64::new(0), fields: [const { AtomicU64::new(0) }; 3] } }; N];
        Self { tickets: AtomicU64::new(0), lost: AtomicU64::new(0), slots }
    }

    /// Returns the last events, oldest first, without those that are being written.
    pub fn events(&self) -> impl Iterator<Item = Past> {
        let end = self.tickets.load(Ordering::Relaxed);
        (end.saturating_sub(N as u64)..end).filter_map(|number| {
            let [site, cpu, nanos] = self.slot(number).read(number)?;
            let cpu = Some(cpu).filter(|cpu| *cpu != UNKNOWN_CPU).map(|cpu| cpu as u32);
            Some(Past { number, site: sites().get(site as usize)?, cpu, nanos: nanos as i64 })
        })
    }

    /// Returns the number of lost events.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn slot(&self, ticket: u64) -> &Slot {
        &self.slots[(ticket % N as u64) as usize]
    }
}

impl<const N: usize> Trace for Ring<N> {
    fn event(&self, site: &'static Site, _: Option<i64>) {
        let Some(site) = site.index() else { return };
        let cpu = cpu().map_or(UNKNOWN_CPU, u64::from);
        let nanos = Monotonic::try_now().map_or(0, Instant::as_nanos);
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        if !self.slot(ticket).write(ticket, [site as u64, cpu, nanos as u64]) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<const N: usize> fmt::Debug for Ring<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.events()).finish()
    }
}

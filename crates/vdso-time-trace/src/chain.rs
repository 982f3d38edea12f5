//! The lock-free protocol between reads and [`attach`](crate::attach()): a site's [`Chain`] of
//! [`Link`]s.
//!
//! [`Chain::ops`] points to the only tracer of the site. While there are several it points to a
//! walker, which calls every tracer of the chain. A link never leaves its chain, so a walk never
//! meets a link that is gone: nothing is reclaimed and nobody waits.
//!
//! # Memory ordering
//!
//! - `attach` publishes the tracer and all that was written to it before. A read finds a tracer by
//!   `Chain::ops`, by `Link::tracer` of a reused link, or by `Chain::links` in a new link, which is
//!   complete before it is stored. Each is stored with `Release` and loaded with `Acquire`.
//! - A read loads `ops` with `Relaxed`, so an untraced read has no barrier, even on arm. If it is
//!   not null the read loads it again, with `Acquire`.
//! - `Link::next` does not change once the link is in a chain. The `Acquire` load of the chain's
//!   head makes all links readable, so `next` is `Relaxed`.
//! - A read that finds the walker sees every link that was in the chain when the walker was stored.
//!   It loads each tracer separately, so it may see later changes. A tracer that stays attached
//!   stays in one link, so it is called exactly once.
//! - Callers of `attach` and `detach` hold a lock, which orders them among themselves.

#![allow(unsafe_code, reason = "the content of an `AtomicPtr` becomes a reference here")]

use core::iter;
use core::ptr;

use crate::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::tracer::Tracer;

/// An atomic `Option<&'static T>`.
pub(crate) struct AtomicRef<T: Sync + 'static>(pub(crate) AtomicPtr<T>);

impl<T: Sync> AtomicRef<T> {
    fn load(&self, ordering: Ordering) -> Option<&'static T> {
        // SAFETY: only `store` writes the pointer, and takes it from a `&'static T`. `T` is `Sync`.
        unsafe { self.0.load(ordering).as_ref() }
    }

    fn store(&self, target: Option<&'static T>, ordering: Ordering) {
        self.0.store(target.map_or(ptr::null_mut(), |target| ptr::from_ref(target).cast_mut()), ordering);
    }
}

/// The tracers of one site.
pub(crate) struct Chain {
    /// The tracer, or the walker if there are several.
    pub(crate) ops: AtomicRef<Tracer>,
    /// The newest link.
    pub(crate) links: AtomicRef<Link>,
}

/// Room for one tracer at one site.
///
/// The first [`attach`](crate::attach()) that needs a link gives it to a site for ever. Later
/// tracers of that site reuse it, whoever supplied it.
pub struct Link {
    /// Whether it is in a chain. Written under the lock.
    pub(crate) taken: AtomicBool,
    /// `None` while the link is free.
    pub(crate) tracer: AtomicRef<Tracer>,
    /// The next older link.
    pub(crate) next: AtomicRef<Link>,
}

impl Link {
    fn tracer(&self) -> Option<&'static Tracer> {
        self.tracer.load(Ordering::Acquire)
    }

    fn holds(&self, tracer: &Tracer) -> bool {
        self.tracer().is_some_and(|held| ptr::eq(held, tracer))
    }
}

/// `attach` and `detach` need the caller to hold the lock.
impl Chain {
    /// One load, and one branch in the caller.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        !self.ops.0.load(Ordering::Relaxed).is_null()
    }

    pub(crate) fn ops(&self) -> Option<&'static Tracer> {
        self.ops.load(Ordering::Acquire)
    }

    fn links(&self) -> impl Iterator<Item = &'static Link> {
        iter::successors(self.links.load(Ordering::Acquire), |link| link.next.load(Ordering::Relaxed))
    }

    pub(crate) fn tracers(&self) -> impl Iterator<Item = &'static Tracer> {
        self.links().filter_map(Link::tracer)
    }

    pub(crate) fn holds(&self, tracer: &Tracer) -> bool {
        self.links().any(|link| link.holds(tracer))
    }

    /// Whether the chain has a free link.
    pub(crate) fn has_room(&self) -> bool {
        self.links().any(|link| link.tracer().is_none())
    }

    /// Adds a tracer that the chain does not hold, in a free link or else in the next of `links`,
    /// which are in no chain. Returns whether there was a link.
    pub(crate) fn attach(
        &self,
        tracer: &'static Tracer,
        mut links: impl Iterator<Item = &'static Link>,
    ) -> bool {
        if let Some(link) = self.links().find(|link| link.tracer().is_none()) {
            link.tracer.store(Some(tracer), Ordering::Release);
        } else {
            let Some(link) = links.next() else { return false };
            link.taken.store(true, Ordering::Relaxed);
            link.tracer.store(Some(tracer), Ordering::Relaxed);
            link.next.store(self.links.load(Ordering::Relaxed), Ordering::Relaxed);
            self.links.store(Some(link), Ordering::Release);
        }
        self.update_ops();
        true
    }

    /// Removes a tracer. Returns whether the chain held it.
    pub(crate) fn detach(&self, tracer: &Tracer) -> bool {
        let Some(link) = self.links().find(|link| link.holds(tracer)) else { return false };
        link.tracer.store(None, Ordering::Relaxed);
        self.update_ops();
        true
    }

    fn update_ops(&self) {
        let mut tracers = self.tracers();
        let ops = match (tracers.next(), tracers.next()) {
            (Some(_), Some(_)) => Some(Tracer::walker()),
            (first, _) => first,
        };
        self.ops.store(ops, Ordering::Release);
    }
}

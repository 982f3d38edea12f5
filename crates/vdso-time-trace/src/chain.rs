//! The protocol between calls and those who attach: a site's [`Anchor`], and the [`Link`]s behind it.
//!
//! An anchor points to the one tracer of its site, or, while there are several, to a walker, which calls every tracer of the
//! chain. A chain has the links of one site and no others. A link that is put there stays for ever, with a tracer or without
//! one, so a walk that is under way never steps on a link that is gone: nothing is reclaimed, and nobody waits.
//!
//! # Memory ordering
//!
//! - What `attach` publishes is the tracer: what was written to it before, such as a threshold. A call may find it in three places, and
//!   each is stored with `Release` and read with `Acquire`: `Anchor::ops` leads to it itself; `Link::tracer` of a link that is used again;
//!   and `Anchor::links` for a new link, which is complete before it is in the chain. So what a call finds is whole.
//! - `Anchor::ops` is read by a `Relaxed` load, and an `Acquire` fence follows where it was not null: that pairs with the store
//!   as an `Acquire` load does, and an untraced call pays no barrier, on arm neither.
//! - `Link::next` never changes once the link is in the chain, so the `Acquire` load of the head makes the whole chain readable, and
//!   `next` is `Relaxed`.
//! - A call that finds the walker in `ops` sees every link that was there when it was stored. It may see
//!   later changes too: each tracer is loaded by itself. So a call during a change calls the tracers of before or of after, and
//!   a tracer that is in the chain throughout, which is in one link throughout, exactly once.
//! - Those who attach and detach take turns (`attach.rs` has the lock); among themselves they need no order but the lock's.

#![allow(unsafe_code, reason = "what an `AtomicPtr` holds becomes a reference here")]

use core::iter;
use core::ptr::{self, NonNull};

use crate::atomic::{AtomicBool, AtomicPtr, Ordering, fence};

/// Null, or a `&'static T`: nobody but [`Place::store`] writes to it.
pub(crate) struct Place<T: Sync + 'static>(pub(crate) AtomicPtr<T>);

impl<T: Sync> Place<T> {
    fn load(&self, ordering: Ordering) -> Option<&'static T> {
        // SAFETY: `store` took it from a `&'static T`, which any thread may have, for it is `Sync`.
        unsafe { self.0.load(ordering).as_ref() }
    }

    fn store(&self, target: Option<&'static T>, ordering: Ordering) {
        self.0.store(target.map_or(ptr::null_mut(), |target| ptr::from_ref(target).cast_mut()), ordering);
    }
}

/// A site's end of the chain.
pub(crate) struct Anchor<T: Sync + 'static> {
    /// Nothing, the one tracer, or the walker.
    pub(crate) ops: Place<T>,
    /// The newest link.
    pub(crate) links: Place<Link<T>>,
}

/// Room for one tracer in the chain of one site.
pub(crate) struct Link<T: Sync + 'static> {
    /// Whether it is in a chain. Only those who attach ask.
    pub(crate) taken: AtomicBool,
    /// Nothing while the link is free.
    pub(crate) tracer: Place<T>,
    /// The next older link.
    pub(crate) next: Place<Link<T>>,
}

/// The one tracer of a site, or the walker, before it is known to be whole.
pub(crate) struct Ops<T: Sync + 'static>(NonNull<T>);

impl<T: Sync> Ops<T> {
    /// It, whole.
    #[inline]
    pub(crate) fn get(self) -> &'static T {
        fence(Ordering::Acquire);
        // SAFETY: `Anchor::ops` took it from its place, and what is there was stored from a `&'static T`.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Sync> Link<T> {
    fn tracer(&self) -> Option<&'static T> {
        self.tracer.load(Ordering::Acquire)
    }

    fn holds(&self, tracer: &T) -> bool {
        self.tracer().is_some_and(|held| ptr::eq(held, tracer))
    }
}

impl<T: Sync> Anchor<T> {
    /// What the site points to, if there is a tracer: one load and, in the caller, one branch.
    #[inline]
    pub(crate) fn ops(&self) -> Option<Ops<T>> {
        NonNull::new(self.ops.0.load(Ordering::Relaxed)).map(Ops)
    }

    fn links(&self) -> impl Iterator<Item = &'static Link<T>> {
        iter::successors(self.links.load(Ordering::Acquire), |link| link.next.load(Ordering::Relaxed))
    }

    /// The tracers of the chain: what a walker calls.
    pub(crate) fn tracers(&self) -> impl Iterator<Item = &'static T> {
        self.links().filter_map(Link::tracer)
    }

    /// Whether a tracer is in the chain.
    pub(crate) fn holds(&self, tracer: &T) -> bool {
        self.links().any(|link| link.holds(tracer))
    }

    /// Whether the next tracer has a link already.
    pub(crate) fn has_room(&self) -> bool {
        self.links().any(|link| link.tracer().is_none())
    }

    /// Puts a tracer into the chain that is not there: into a free link, or into `fresh`, which no chain has. The caller has the
    /// lock.
    pub(crate) fn attach(
        &self,
        tracer: &'static T,
        fresh: impl FnOnce() -> Option<&'static Link<T>>,
        walker: impl FnOnce(&Self) -> &'static T,
    ) -> bool {
        if let Some(link) = self.links().find(|link| link.tracer().is_none()) {
            link.tracer.store(Some(tracer), Ordering::Release);
        } else {
            let Some(link) = fresh() else { return false };
            link.taken.store(true, Ordering::Relaxed);
            link.tracer.store(Some(tracer), Ordering::Relaxed);
            link.next.store(self.links.load(Ordering::Relaxed), Ordering::Relaxed);
            self.links.store(Some(link), Ordering::Release);
        }
        self.point(walker);
        true
    }

    /// Takes a tracer out of the chain; says whether it was there. The caller has the lock.
    pub(crate) fn detach(&self, tracer: &T, walker: impl FnOnce(&Self) -> &'static T) -> bool {
        let Some(link) = self.links().find(|link| link.holds(tracer)) else { return false };
        link.tracer.store(None, Ordering::Relaxed);
        self.point(walker);
        true
    }

    /// Points to what the chain now has: nothing, one tracer, or several.
    fn point(&self, walker: impl FnOnce(&Self) -> &'static T) {
        let mut tracers = self.tracers();
        let ops = match (tracers.next(), tracers.next()) {
            (Some(_), Some(_)) => Some(walker(self)),
            (first, _) => first,
        };
        self.ops.store(ops, Ordering::Release);
    }
}

//! [`attach()`] and [`detach`] connect tracers to sites.

use core::error::Error;
use core::fmt;
use core::hint;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::chain::{AtomicRef, Link};
use crate::select::Select;
use crate::site::{Site, sites};
use crate::tracer::Tracer;

impl Link {
    /// Creates `N` links, of no site.
    #[must_use]
    pub const fn array<const N: usize>() -> [Self; N] {
        [const {
            Self {
                taken: AtomicBool::new(false),
                tracer: AtomicRef(AtomicPtr::new(null_mut())),
                next: AtomicRef(AtomicPtr::new(null_mut())),
            }
        }; N]
    }
}

/// The error of [`attach`](attach()) with too few links. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Full {
    /// How many more links are needed.
    pub missing: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} links too few for the sites", self.missing)
    }
}

impl Error for Full {}

/// Attaches a tracer to sites. Returns the number of sites that it was not attached to before,
/// which is 0 without the feature `enabled`.
///
/// Each of these takes a free link of the site, or else a new one of `links`.
///
/// Callers of `attach` and `detach` wait for each other in a spin lock; reads never wait. These
/// must call neither, because they may have interrupted the holder of the lock:
///
/// - a signal handler, and a tracer of a site at which one reads;
/// - the child of a fork(2) in a process with several threads.
///
/// # Errors
/// `links` has fewer new links than are needed.
pub fn attach(tracer: &'static Tracer, select: Select<'_>, links: &'static [Link]) -> Result<usize, Full> {
    locked(|| {
        let selected = |site: &&Site| select.selects(site) && !site.chain.holds(tracer);
        let mut unused = links.iter().filter(|link| !link.taken.load(Ordering::Relaxed));
        let needed = sites().iter().filter(selected).filter(|site| !site.chain.has_room()).count();
        match needed.saturating_sub(unused.clone().count()) {
            0 => Ok(sites()
                .iter()
                .filter(selected)
                .filter(|site| site.chain.attach(tracer, &mut unused))
                .count()),
            missing => Err(Full { missing }),
        }
    })
}

/// Detaches a tracer from sites. Returns the number of sites that it was attached to.
///
/// A read that is under way may still call the tracer. [`attach`](attach()) says who must not call
/// this.
#[allow(clippy::must_use_candidate, reason = "it is called for its effect")]
pub fn detach(tracer: &'static Tracer, select: Select<'_>) -> usize {
    locked(|| sites().iter().filter(|site| select.selects(site) && site.chain.detach(tracer)).count())
}

/// Changes chains under the lock. The change must not panic.
fn locked<R>(change: impl FnOnce() -> R) -> R {
    static LOCKED: AtomicBool = AtomicBool::new(false);

    while LOCKED.swap(true, Ordering::Acquire) {
        hint::spin_loop();
    }
    let result = change();
    LOCKED.store(false, Ordering::Release);
    result
}

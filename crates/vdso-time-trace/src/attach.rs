//! [`attach()`] and [`detach`]: who is told of which sites' reads.
//!
//! They take turns behind one spin lock, which is held for a walk over the sites: threads that attach at once wait for each other, reads
//! never wait for anybody. A signal handler must do neither: it would wait for ever for the thread that it interrupted. Nor must the child
//! of a fork(2) that another thread may have interrupted so.

use core::error::Error;
use core::fmt;
use core::hint;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::chain::{self, Place};
use crate::select::Select;
use crate::site::sites;
use crate::timing;
use crate::tracer::Tracer;

/// Room for one tracer at one site.
///
/// The first time that it is needed it becomes its site's, for ever: later tracers of that site use it again, whoever brought it.
pub struct Link(chain::Link<Tracer>);

impl Link {
    /// A link of no site yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(chain::Link {
            taken: AtomicBool::new(false),
            tracer: Place(AtomicPtr::new(null_mut())),
            next: Place(AtomicPtr::new(null_mut())),
        })
    }

    /// So many.
    #[must_use]
    pub const fn array<const N: usize>() -> [Self; N] {
        [const { Self::new() }; N]
    }

    /// Whether it is a site's already.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.taken.load(Ordering::Relaxed)
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("taken", &self.is_taken()).finish_non_exhaustive()
    }
}

/// There were too few links, and nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    missing: usize,
}

impl Full {
    /// How many more links it takes.
    #[must_use]
    pub const fn missing(self) -> usize {
        self.missing
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} links too few for the sites", self.missing)
    }
}

impl Error for Full {}

/// Has a tracer told of the reads of some sites from now on; gives the number of sites that it was not attached to before.
/// Without the feature `enabled` there are no sites, so that is 0.
///
/// Each of these takes a free link of the site's own, or else a new one of `links`.
///
/// Whoever attaches or detaches waits for others who do. So a signal handler must do neither (it may have interrupted them), nor a tracer
/// that a signal handler's reads call, nor the child of a fork(2) in a process with several threads.
///
/// # Errors
/// There are fewer new links than are needed.
pub fn attach(tracer: &'static Tracer, select: Select<'_>, links: &'static [Link]) -> Result<usize, Full> {
    if tracer.is_timed() {
        timing::measure_own();
    }
    tracer.attached();

    let _turn = Turn::wait();
    let new = || sites().iter().filter(|site| select.selects(site) && !site.anchor().holds(tracer));
    let mut fresh = links.iter().filter(|link| !link.is_taken());
    let needed = new().filter(|site| !site.anchor().has_room()).count();
    let missing = needed.saturating_sub(fresh.clone().count());
    if missing > 0 {
        return Err(Full { missing });
    }
    let attach = |site: &&crate::Site| {
        site.anchor().attach(tracer, || fresh.next().map(|link| &link.0), Tracer::walker)
    };
    Ok(new().filter(attach).count())
}

/// Has a tracer no longer told of the reads of some sites; gives the number of sites that it was attached to.
///
/// A call that is under way may still tell it. Where this must not be called, [`attach`](attach()) says.
#[allow(clippy::must_use_candidate, reason = "it is called for what it does")]
pub fn detach(tracer: &'static Tracer, select: Select<'_>) -> usize {
    let _turn = Turn::wait();
    let selected = sites().iter().filter(|site| select.selects(site));
    selected.filter(|site| site.anchor().detach(tracer, Tracer::walker)).count()
}

static BUSY: AtomicBool = AtomicBool::new(false);

/// The right to change chains.
struct Turn;

impl Turn {
    fn wait() -> Self {
        while BUSY.swap(true, Ordering::Acquire) {
            hint::spin_loop();
        }
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

//! [`report`]: the sites by calls.

use core::array;
use core::cmp::Reverse;
use core::fmt;

use crate::counter::Counter;
use crate::per_site::PerSite;
use crate::site::{Site, sites};

/// What was counted until now, as a table of the first `N` sites, the most calls first.
///
/// The counts are copied here, once, onto the stack: it prints what it was sorted by, and nothing is allocated.
#[must_use]
pub fn report<const N: usize>(counters: &PerSite<Counter, N>) -> Report<N> {
    let row = |index| {
        let site = sites().get(index)?;
        Some(Row { site, calls: counters.of(site)?.calls() })
    };
    let mut rows = array::from_fn(row);
    rows.sort_unstable_by_key(|row| row.as_ref().map(|row| Reverse(row.calls)).ok_or(()));
    Report { rows, missed: counters.missed() }
}

/// A table; it is printed with `{}`. Where there are no [`sites`] it says why.
#[derive(Debug)]
pub struct Report<const N: usize> {
    rows: [Option<Row>; N],
    missed: u64,
}

/// A site, and its calls.
#[derive(Clone, Copy, Debug)]
struct Row {
    site: &'static Site,
    calls: u64,
}

impl<const N: usize> Report<N> {
    /// The sites and their calls, the most calls first.
    pub fn rows(&self) -> impl Iterator<Item = (&'static Site, u64)> {
        self.rows.iter().flatten().map(|row| (row.site, row.calls))
    }
}

impl<const N: usize> fmt::Display for Report<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if sites().is_empty() {
            let why = if cfg!(feature = "enabled") {
                "this program has no call in `traced!`"
            } else {
                "the feature `enabled` of vdso-time-trace is off"
            };
            return writeln!(f, "no site: {why}");
        }
        let widest =
            |text: fn(&Site) -> &str| self.rows().map(|(site, _)| text(site).len()).max().unwrap_or(0);
        let (name, function) = (widest(Site::name).max(4), widest(Site::function).max(8));
        writeln!(f, "{:>12}  {:name$}  {:function$}  where", "calls", "site", "function")?;
        for (site, calls) in self.rows() {
            writeln!(
                f,
                "{calls:>12}  {:name$}  {:function$}  {}:{}",
                site.name(),
                site.function(),
                site.file(),
                site.line()
            )?;
        }
        if self.missed > 0 {
            writeln!(f, "{:>12}  at sites for which there is no room", self.missed)?;
        }
        Ok(())
    }
}

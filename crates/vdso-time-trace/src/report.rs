//! [`report`]: the sites, sorted by calls.

use core::array;
use core::cmp::Reverse;
use core::fmt;

use crate::counter::Counter;
use crate::site::{Site, sites};

/// Copies the counts of the first `N` sites, most calls first. Nothing is allocated.
#[must_use]
pub fn report<const N: usize>(counters: &[Counter; N]) -> Report<N> {
    let mut rows = array::from_fn(|index| Some((sites().get(index)?, counters[index].calls())));
    // An `Ok` sorts before an `Err`, so the rows without a site come last.
    rows.sort_unstable_by_key(|row| row.map(|(_, calls)| Reverse(calls)).ok_or(()));
    Report(rows)
}

/// A table of the sites and their calls, which `{}` prints. If the program has no [`sites`], `{}`
/// prints the reason instead.
#[derive(Debug)]
pub struct Report<const N: usize>([Option<(&'static Site, u64)>; N]);

impl<const N: usize> Report<N> {
    /// Returns the sites and their calls, most calls first.
    pub fn rows(&self) -> impl Iterator<Item = (&'static Site, u64)> {
        self.0.iter().flatten().copied()
    }
}

impl<const N: usize> fmt::Display for Report<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if sites().is_empty() {
            return f.write_str(if cfg!(feature = "enabled") {
                "no site: this program has no call in `traced!`\n"
            } else {
                "no site: the feature `enabled` of vdso-time-trace is off\n"
            });
        }
        let mut name = "site".len();
        let mut function = "function".len();
        for (site, _) in self.rows() {
            name = name.max(site.name().len());
            function = function.max(site.function().len());
        }
        writeln!(
            f,
            "{:>12}  {:name$}  {:function$}  where",
            "calls", "site", "function"
        )?;
        for (site, calls) in self.rows() {
            write!(
                f,
                "{calls:>12}  {:name$}  {:function$}",
                site.name(),
                site.function()
            )?;
            writeln!(f, "  {}:{}", site.file(), site.line())?;
        }
        match sites().len().saturating_sub(N) {
            0 => Ok(()),
            more => writeln!(f, "{more} more sites have no counter"),
        }
    }
}

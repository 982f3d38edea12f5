//! What is claimed of a figure, and whether the noise lets it be told.

use vdso_time_benches::harness::Spacing::{self, BackToBack, Isolated};
use vdso_time_benches::harness::samples::{Samples, Statistic};

/// A bar: this crate's call against another's.
pub(super) struct Bar {
    pub(super) row: &'static str,
    pub(super) spacing: Spacing,
    pub(super) against: &'static str,
    /// The largest ratio that meets it.
    pub(super) at_most: f64,
}

const fn bar(row: &'static str, spacing: Spacing, against: &'static str, at_most: f64) -> Bar {
    Bar { row, spacing, against, at_most }
}

/// Held against the figures, never asserted.
pub(super) const BARS: &[Bar] = &[
    bar("BM_time_time", Isolated, "direct", 1.03),
    bar("BM_time_time", Isolated, "libc", 1.03),
    bar("BM_time_clock_gettime", BackToBack, "direct", 1.01),
    bar("BM_time_clock_gettime", Isolated, "direct", 1.01),
    bar("BM_time_clock_gettime", BackToBack, "libc", 0.99),
    bar("BM_time_clock_gettime", Isolated, "libc", 0.99),
    bar("BM_time_clock_gettime_MONOTONIC_COARSE", Isolated, "libc", 0.90),
    bar("BM_time_clock_gettime_REALTIME_COARSE", Isolated, "libc", 0.90),
    bar("BM_time_clock_getres", Isolated, "direct", 1.03),
    bar("BM_counter_monotonic", BackToBack, "ticks", 1.03),
    bar("BM_counter_monotonic", BackToBack, "direct", 0.47),
    bar("BM_counter_monotonic", Isolated, "direct", 0.63),
    bar("BM_counter_monotonic_ordered", Isolated, "direct", 0.83),
    bar("BM_counter_realtime", BackToBack, "syscall", 0.125),
];

/// The contenders that a row's first one is compared with.
pub(super) const OTHERS: [&str; 5] = ["direct", "libc", "std", "syscall", "ticks"];

/// The closeness to 1 that is told of a ratio of which nothing is claimed.
const MARGIN: f64 = 0.03;

/// Whose call the figures of a row are about.
pub(super) fn subject(row: &str) -> &'static str {
    if row.starts_with("BM_counter") {
        "counter"
    } else if row.ends_with("_syscall") {
        "syscall"
    } else {
        "vdso"
    }
}

/// A ratio.
pub(super) enum Figure {
    /// It is larger than the noise.
    Told(f64),
    /// It is not.
    Noisy,
}

/// How a row's subject compares with another contender; `None` if the row has none of this name.
pub(super) fn figure(
    samples: &Samples,
    row: &str,
    spacing: Spacing,
    against: &str,
    statistic: Statistic,
) -> Option<Figure> {
    if against == subject(row) || samples.nanos(row, spacing, against, statistic).is_none() {
        return None;
    }
    let (Some(ratio), Some(control)) = (
        samples.ratio(row, spacing, [subject(row), against], statistic),
        samples.control(row, spacing, statistic),
    ) else {
        return Some(Figure::Noisy);
    };
    let claim = BARS.iter().find(|bar| (bar.row, bar.spacing, bar.against) == (row, spacing, against));
    let margin = match claim {
        Some(bar) => (1.0 - bar.at_most).abs(),
        None => (1.0 - ratio).abs().max(MARGIN),
    };
    let quiet = (1.0 - control).abs() <= margin / 3.0;
    Some(if quiet { Figure::Told(ratio) } else { Figure::Noisy })
}

/// Whether any figure of a row is too close to the noise.
pub(super) fn is_noisy(samples: &Samples, row: &str) -> bool {
    let mut cells = Spacing::ALL.into_iter().flat_map(|spacing| OTHERS.map(|against| (spacing, against)));
    cells.any(|(spacing, against)| {
        matches!(figure(samples, row, spacing, against, Statistic::Median), Some(Figure::Noisy))
    })
}

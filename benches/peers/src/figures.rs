//! Ratios of what was measured, and the noise in them.

use vdso_time_benches::harness::Spacing;
use vdso_time_benches::harness::samples::{CONTROL, Samples, Statistic};
use vdso_time_benches::harness::stats::{median, minimum};

use crate::foreign::home;
use crate::rows::DIRECT;

/// The name under which a contender's own program measured the vDSO's function.
fn direct_of(contender: &str) -> String {
    home(contender).map_or_else(|| DIRECT.into(), |home| format!("{DIRECT} ({home})"))
}

/// What each process measured of a contender, as multiples of `direct` in that very process.
fn to_direct(samples: &Samples, row: &str, spacing: Spacing, contender: &str) -> Option<Vec<f64>> {
    let direct = samples.of(row, spacing, &direct_of(contender))?;
    let nanos = samples.of(row, spacing, contender)?;
    Some(nanos.iter().zip(direct).map(|(nanos, direct)| nanos / direct).collect())
}

fn ratio_of_minima(samples: &Samples, row: &str, spacing: Spacing, contenders: [&str; 2]) -> Option<f64> {
    let [one, other] = contenders.map(|contender| samples.of(row, spacing, contender).map(minimum));
    Some(one? / other?)
}

/// How a contender compares with another; by their ratios to `direct`, if they are of different programs.
pub fn ratio(
    samples: &Samples,
    row: &str,
    spacing: Spacing,
    [one, other]: [&str; 2],
    statistic: Statistic,
) -> Option<f64> {
    if home(one) == home(other) {
        return samples.ratio(row, spacing, [one, other], statistic);
    }
    let ratio = match statistic {
        Statistic::Minimum => {
            let [one, other] = [one, other]
                .map(|contender| ratio_of_minima(samples, row, spacing, [contender, &direct_of(contender)]));
            one? / other?
        }
        Statistic::Median => {
            let [ones, others] = [one, other].map(|contender| to_direct(samples, row, spacing, contender));
            median(&ones?.iter().zip(&others?).map(|(one, other)| one / other).collect::<Vec<_>>())
        }
    };
    Some(ratio).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// How much a contender's program finds between the same call measured twice: by how much the ratio is off 1.
pub fn noise(samples: &Samples, row: &str, spacing: Spacing, contender: &str) -> Option<f64> {
    let control = match home(contender) {
        None => CONTROL.map(str::to_string),
        Some(home) => [format!("direct again ({home})"), direct_of(contender)],
    };
    let [again, first] = control.each_ref().map(String::as_str);
    samples.ratio(row, spacing, [again, first], Statistic::Median).map(|ratio| (1.0 - ratio).abs())
}

/// The noise in the comparison of two.
pub fn noise_between(samples: &Samples, row: &str, spacing: Spacing, [one, other]: [&str; 2]) -> Option<f64> {
    let own = noise(samples, row, spacing, one)?;
    if home(one) == home(other) {
        return Some(own);
    }
    Some(own + noise(samples, row, spacing, other)?)
}

/// The closeness to 1 that is told of a ratio of which nothing is claimed.
pub const MARGIN: f64 = 0.03;

/// The median ratio to `direct`, or why there is none: no such contender, or more noise than a third of what it differs by.
pub fn told(samples: &Samples, row: &str, spacing: Spacing, contender: &str) -> Told {
    let own = direct_of(contender);
    let median = samples.ratio(row, spacing, [contender, &own], Statistic::Median);
    let fastest = samples.ratio(row, spacing, [contender, &own], Statistic::Minimum);
    match (median, fastest, noise(samples, row, spacing, contender)) {
        (Some(median), Some(fastest), Some(noise)) => {
            let margin = (1.0 - median).abs().max(MARGIN);
            if noise <= margin / 3.0 { Told::Ratio { median, fastest } } else { Told::Noisy }
        }
        _ if samples.of(row, spacing, contender).is_some() => Told::Noisy,
        _ => Told::Absent,
    }
}

/// What there is to tell of a ratio.
pub enum Told {
    Ratio { median: f64, fastest: f64 },
    Noisy,
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_compared_by_their_own_floors() {
        let mut samples = Samples::default();
        // The second process of the other program ran on a CPU at half the pace.
        let lines = [("x", 20.0), ("direct", 10.0), ("musl", 30.0), ("direct (musl)", 10.0)];
        let slow = [("x", 20.0), ("direct", 10.0), ("musl", 60.0), ("direct (musl)", 20.0)];
        for (contender, nanos) in lines.into_iter().chain(slow) {
            samples.add(&format!("row\tisolated\t{contender}\t{nanos}")).expect("a line");
        }
        let of =
            |pair, statistic| ratio(&samples, "row", Spacing::Isolated, pair, statistic).expect("samples");
        for statistic in [Statistic::Median, Statistic::Minimum] {
            assert!((of(["x", "musl"], statistic) - 2.0 / 3.0).abs() < 1e-9);
            assert!((of(["x", "direct"], statistic) - 2.0).abs() < 1e-9);
        }
        assert_eq!(ratio(&samples, "row", Spacing::Isolated, ["x", "nobody"], Statistic::Median), None);
    }

    #[test]
    fn noise_is_of_both_programs() {
        let mut samples = Samples::default();
        let lines = [
            (CONTROL[0], 101.0),
            (CONTROL[1], 100.0),
            ("direct (musl)", 100.0),
            ("direct again (musl)", 98.0),
        ];
        for (contender, nanos) in lines {
            samples.add(&format!("row\tisolated\t{contender}\t{nanos}")).expect("a line");
        }
        let noise = |pair| noise_between(&samples, "row", Spacing::Isolated, pair).expect("samples");
        assert!((noise(["x", "y"]) - 0.01).abs() < 1e-9);
        assert!((noise(["x", "musl"]) - 0.03).abs() < 1e-9);
    }
}

//! The few statistics that the tables are made of.

/// The smallest.
#[must_use]
pub fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The middle one; of an even number, the mean of the two.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The mean.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Linear between the two values around it, as benchstat has it; NaN of none.
fn quantile(values: &[f64], at: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let position = at * (values.len() as f64 - 1.0);
    let (below, above) = (position.floor(), position.ceil());
    match (values.get(below as usize), values.get(above as usize)) {
        (Some(low), Some(high)) => low + (high - low) * (position - below),
        _ => f64::NAN,
    }
}

/// The values within one and a half times the interquartile range of the quartiles.
#[must_use]
pub fn without_outliers(values: &[f64]) -> Vec<f64> {
    let (first, third) = (quantile(values, 0.25), quantile(values, 0.75));
    let reach = 1.5 * (third - first);
    values.iter().copied().filter(|value| (first - reach..=third + reach).contains(value)).collect()
}

/// How far the values lie from their mean at most, in percent of it.
#[must_use]
pub fn percent_around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    let farthest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    100.0 * farthest / mean
}

/// The Mann-Whitney U test: how probable it is that two samples of one population differ as much as these, either way.
///
/// Exact, ties included: of all the ways to choose as many ranks as `a` has, those are counted whose sum is as far out.
/// (U is the sum of ranks less a constant.)
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    let both: Vec<f64> = a.iter().chain(b).copied().collect();
    // Twice the rank, for a tie's rank is a half: those below and those not above, itself among them.
    let rank = |value: &f64| -> usize {
        1 + both.iter().map(|other| usize::from(other < value) + usize::from(other <= value)).sum::<usize>()
    };
    let ranks: Vec<usize> = both.iter().map(rank).collect();
    let sum: usize = ranks[..a.len()].iter().sum();
    // ways[chosen][sum], over the ranks so far.
    let mut ways = vec![vec![0.0; ranks.iter().sum::<usize>() + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for &rank in &ranks {
        for chosen in (1..=a.len()).rev() {
            for total in rank..ways[chosen].len() {
                ways[chosen][total] += ways[chosen - 1][total - rank];
            }
        }
    }
    let ways = &ways[a.len()];
    let all: f64 = ways.iter().sum();
    let (low, high): (f64, f64) = (ways[..=sum].iter().sum(), ways[sum..].iter().sum());
    (2.0 * low.min(high) / all).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn mann_whitney_is_exact() {
        // Two of the twenty ways to choose three ranks of six are as far out.
        near(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        // The example in SciPy's documentation of mannwhitneyu.
        near(mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]), 1.0 / 9.0);
        // With ties, counted by hand: two of twenty on each side.
        near(mann_whitney(&[1.0, 1.0, 2.0], &[2.0, 3.0, 3.0]), 0.2);
        near(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
    }

    #[test]
    fn quantiles_are_interpolated() {
        near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        near(quantile(&[4.0, 1.0, 2.0, 3.0], 0.25), 1.75);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn outliers_are_left_out() {
        assert_eq!(without_outliers(&[1.0, 2.0, 2.0, 3.0, 100.0]), [1.0, 2.0, 2.0, 3.0]);
        near(percent_around_mean(&[9.0, 10.0, 11.0]), 10.0);
    }
}

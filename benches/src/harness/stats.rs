//! Quantiles.

/// Returns the middle value, or the mean of the two middle values; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the value at this fraction of the sorted values, interpolated linearly; NaN of none.
pub fn quantile(values: &[f64], at: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let position = at * (values.len() as f64 - 1.0);
    match (values.get(position.floor() as usize), values.get(position.ceil() as usize)) {
        (Some(low), Some(high)) => low + (high - low) * position.fract(),
        _ => f64::NAN,
    }
}

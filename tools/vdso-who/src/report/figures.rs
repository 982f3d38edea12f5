//! Shares, their errors, and the cost of a clock read.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Measures the cost of a clock read on this machine, in nanoseconds. Takes the shortest of several
/// series of reads, because interrupts lengthen a series. There are few reads, because `top`
/// measures the cost in each interval, while this process is sampled as well, and a read can take
/// 10 us if the hypervisor traps it. The result is 0 if the clock does not show how long a series
/// takes, as with the clock source jiffies.
pub(super) fn read_ns() -> f64 {
    const SERIES: u32 = 5;
    const READS: u32 = 20;
    let mut shortest = Duration::MAX;
    for _ in 0..SERIES {
        let start = Instant::now();
        for _ in 0..READS {
            black_box(Instant::now());
        }
        shortest = shortest.min(start.elapsed());
    }
    shortest.as_secs_f64() * 1e9 / f64::from(READS)
}

/// Returns a part as a share of a whole. If the whole is 0, the divisor is 1, so that the share of
/// a part of 0 is 0 and not NaN.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns how far a share can be from the true one, with a confidence of 95 %: the distance to the
/// farther end of the Wilson score interval, which is the end towards 50 %.
pub(super) fn error(part: u64, whole: u64) -> f64 {
    const Z: f64 = 1.96;
    let share = share(part, whole);
    let whole = whole.max(1) as f64;
    let half = Z * (share * (1.0 - share) / whole + (Z / (2.0 * whole)).powi(2)).sqrt();
    let center = share + Z * Z / (2.0 * whole);
    let scale = 1.0 + Z * Z / whole;
    half / scale + (center / scale - share).abs()
}

#[cfg(test)]
mod tests {
    use super::error;

    /// Expects the distance from `share` to the farther root of
    /// `(p - share)^2 = 1.96^2 p (1 - p) / whole`, found by bisection.
    #[test]
    fn the_error_of_a_share_reaches_the_farther_end_of_wilsons_interval() {
        for (part, whole, expected) in [
            (0, 50, 0.071_350),
            (50, 50, 0.071_350),
            (1, 2, 0.405_471),
            (12, 100, 0.078_123),
            (990, 1000, 0.008_310),
        ] {
            let error = error(part, whole);
            assert!(
                (error - expected).abs() < 1e-5,
                "{part} of {whole}: {error}"
            );
        }
    }
}

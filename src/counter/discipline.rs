//! Computes the next state from one consistent state: a step of the calibration, the next segment,
//! or the end of the counter's use.

use super::sample::{Burst, Sample, Source};
use super::segment::{self, Rate, Segment};
use super::state::{ClockState, Phase};
use super::status::Status;

/// The time between the first sample and the first long burst, in nanoseconds.
const ROUGH: u64 = 1_000_000;
/// The time between the two long bursts that give the rate.
const BASELINE: u64 = 10_000_000;
/// The age at which a sample gives no rate, because the system may have been suspended since.
const OLD: u64 = 1_000_000_000;
/// The time after which a temporary refusal is checked again.
const RETRY: u64 = 1_000_000_000;
/// Turns of the bursts that give the rate, which take some microseconds.
const LONG: u32 = 32;
/// Turns after a short burst that took suspiciously long.
const SUSPECT: u32 = 8;
/// Turns of the burst between two segments: what one read can bear.
const SHORT: u32 = 1;
/// A smaller error, in nanoseconds, may be noise and is smoothed. A larger one is a change of the
/// kernel's rate.
const NOISE: u64 = 64;
/// The counter is given up after so many spoilt calibrations in a row, because a suspend can spoil
/// one, or after so many divergences in a row, each on another CPU than before.
const STRIKES: u8 = 3;

/// Returns the next state, if one is due. `now` is the kernel's time.
pub(super) fn next_state<S: Source>(source: &S, state: &ClockState, now: u64) -> Option<ClockState> {
    let passed = now.wrapping_sub(state.sampled.nanos);
    let next = match state.phase {
        Phase::Off(status) if !status.is_temporary() || passed < RETRY => None,
        Phase::Idle | Phase::Off(_) => match source.detect() {
            Ok(()) => begin(source, state),
            Err(status) => Some(off(state, status)),
        },
        Phase::Rough | Phase::Baseline if passed > OLD => begin(source, state),
        Phase::Rough if passed >= ROUGH => baseline(source, state),
        Phase::Baseline if passed >= BASELINE => first_segment(source, state),
        Phase::Running => next_segment(source, state),
        Phase::Rough | Phase::Baseline => None,
    }?;
    let refused = Sample { ticks: 0, nanos: now };
    Some(if matches!(next.phase, Phase::Off(_)) { ClockState { sampled: refused, ..next } } else { next })
}

fn off(state: &ClockState, status: Status) -> ClockState {
    ClockState::without_segment(Phase::Off(status), &state.segment)
}

/// Calibrates again, or gives the counter up.
fn restart(state: &ClockState, spoilt: u8, strikes: u8) -> ClockState {
    match (spoilt, strikes) {
        (STRIKES.., _) => off(state, Status::Frequency),
        (_, STRIKES..) => off(state, Status::CpusDisagree),
        _ => ClockState { spoilt, strikes, ..ClockState::without_segment(Phase::Idle, &state.segment) },
    }
}

/// Calibrates again after a rate that is impossible or not the stated one.
fn spoilt(state: &ClockState) -> ClockState {
    restart(state, state.spoilt + 1, state.strikes)
}

fn begin<S: Source>(source: &S, state: &ClockState) -> Option<ClockState> {
    let Burst { sample: sampled, cost, .. } = Burst::take(source, SHORT, None)?;
    Some(ClockState { phase: Phase::Rough, sampled, cost, ..*state })
}

/// The rate from the state's sample to this one.
fn rate_to(state: &ClockState, sample: Sample) -> Option<Rate> {
    let ticks = sample.ticks.wrapping_sub(state.sampled.ticks);
    segment::rate(ticks, sample.nanos.wrapping_sub(state.sampled.nanos))
}

fn baseline<S: Source>(source: &S, state: &ClockState) -> Option<ClockState> {
    let Some(base_rate) = rate_to(state, Burst::take(source, SHORT, None)?.sample) else {
        return Some(spoilt(state));
    };
    let Burst { sample: sampled, cost, .. } = Burst::take(source, LONG, Some(base_rate))?;
    Some(ClockState { phase: Phase::Baseline, base_rate, sampled, cost, ..*state })
}

fn first_segment<S: Source>(source: &S, state: &ClockState) -> Option<ClockState> {
    let burst = Burst::take(source, LONG, Some(state.base_rate))?;
    let stated = source.stated_frequency();
    let is_right = |&rate: &Rate| {
        let is_steady = rate.abs_diff(state.base_rate) <= rate / 16;
        is_steady && stated.is_none_or(|stated| agrees(rate, stated))
    };
    let Some(rate) = rate_to(state, burst.sample).filter(is_right) else {
        return Some(spoilt(state));
    };
    if burst.cost > suspect_cost(state.cost) {
        return Some(restart(state, 0, state.strikes)); // something disturbed every sample of a burst
    }
    let cost = burst.cost.min(state.cost);
    let Sample { ticks: start, nanos } = burst.sample.centred(cost);
    Some(ClockState {
        segment: Segment { start, nanos, rate, span: segment::span(rate) },
        offset: burst.middle_offset(),
        base_rate: rate,
        sampled: burst.sample,
        cost,
        phase: Phase::Running,
        spoilt: 0,
        strikes: state.strikes,
        cpu: source.cpu(),
    })
}

/// Whether the rate is within 1 % of what the hardware states.
fn agrees(rate: Rate, stated: u64) -> bool {
    segment::frequency(rate).abs_diff(stated) <= stated / 100
}

/// The cost above which a burst is suspect: three times the least one, which is 0 or 1 tick on a
/// coarse counter.
fn suspect_cost(cost: u64) -> u64 {
    cost.max(1).saturating_mul(3)
}

fn next_segment<S: Source>(source: &S, state: &ClockState) -> Option<ClockState> {
    let cpu = source.cpu();
    let mut burst = Burst::take(source, SHORT, Some(state.base_rate))?;
    let mut cost = state.cost.min(burst.cost);
    if burst.cost > suspect_cost(state.cost) {
        // The vDSO now enters the kernel, the CPU is slower, or two interrupts came.
        if let Err(status) = source.detect() {
            return Some(off(state, status));
        }
        burst = Burst::take(source, SUSPECT, Some(state.base_rate))?;
        cost = burst.cost;
    }
    let centre = burst.sample.centred(cost);
    let next = match state.segment.at(centre.ticks) {
        Some(nanos) => continued(state, centre.nanos.wrapping_sub(nanos) as i64),
        None => resumed(state, burst.sample, centre),
    };
    let is_same_cpu = cpu.is_none() || cpu == state.cpu;
    let Some((segment, base_rate)) = next else {
        // A suspend, a migrated virtual machine, or a CPU whose counter differs.
        return Some(match source.detect() {
            Err(status) => off(state, status),
            Ok(()) => restart(state, 0, state.strikes + u8::from(!is_same_cpu)),
        });
    };
    let offset = burst.offset_after(state.offset, state.base_rate);
    // The clocks agree on another CPU, or on an unknown one: so the CPUs caused no strike.
    let strikes = if cpu.is_some() && is_same_cpu { state.strikes } else { 0 };
    Some(ClockState { segment, offset, base_rate, sampled: burst.sample, cost, strikes, cpu, ..*state })
}

/// The segment that continues the current one and removes its error, and the new base rate.
fn continued(state: &ClockState, error: i64) -> Option<(Segment, Rate)> {
    let segment = &state.segment;
    if error.unsigned_abs() > segment.slew_limit() {
        return None;
    }
    let correction = segment.spread(error);
    let (learnt, spread) = if error.unsigned_abs() > NOISE {
        (correction, correction)
    } else {
        (correction / 8, correction / 2)
    };
    let base_rate = state.base_rate.checked_add_signed(learnt)?;
    Some((segment.next(base_rate.checked_add_signed(spread)?), base_rate))
}

/// The segment that begins at the centre of a sample, because the current one has ended, and the
/// new base rate.
fn resumed(state: &ClockState, sample: Sample, centre: Sample) -> Option<(Segment, Rate)> {
    let old = &state.segment;
    let ticks = sample.ticks.wrapping_sub(state.sampled.ticks);
    let expected = segment::long_nanos(ticks, state.base_rate);
    // NTP changes the rate by up to 500 ppm. A larger difference is a suspend.
    let limit = expected / 2000 + u128::from(old.slew_limit());
    let error = i128::from(sample.nanos.wrapping_sub(state.sampled.nanos)) - expected as i128;
    if error.unsigned_abs() > limit {
        return None;
    }
    let correction = ((error << 32) / i128::from(ticks.max(1))) as i64;
    let is_long = ticks > old.span.saturating_mul(64);
    let learnt = if is_long || error.unsigned_abs() > NOISE.into() { correction } else { correction / 8 };
    let base_rate = state.base_rate.checked_add_signed(learnt)?;
    // The old segment may just have answered with its end. The new one does not begin earlier than
    // that, and removes the lead.
    let lead = (old.end_nanos().wrapping_sub(centre.nanos) as i64).max(0);
    let nanos = centre.nanos.wrapping_add(lead as u64);
    let segment = Segment { start: centre.ticks, nanos, rate: base_rate, span: segment::span(base_rate) };
    if lead.unsigned_abs() > segment.slew_limit() {
        return None;
    }
    let rate = base_rate.checked_add_signed(-segment.spread(lead))?;
    Some((Segment { rate, ..segment }, base_rate))
}

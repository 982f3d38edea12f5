//! What comes after a record: the steps of the calibration, the next line, or the end of the counter's use.
//!
//! All of it is computed before the claim is taken, from one consistent record; nothing here is shared.

use super::line::{self, Line, Rate};
use super::record::{Phase, Record};
use super::sample::{Burst, Sample, Source};
use super::status::Status;

/// The time after which two samples give the rate well enough for the second burst.
const ROUGH: u64 = 1_000_000;
/// The time between the two bursts that give the rate.
const BASELINE: u64 = 10_000_000;
/// The time after which a sample gives no rate: the system may have been suspended meanwhile.
const OLD: u64 = 1_000_000_000;
/// The time after which a thread asks again for what one was refused.
const AGAIN: u64 = 1_000_000_000;
/// Turns of these bursts, which take some microseconds.
const LONG: u32 = 32;
/// Turns where every sample of a short burst was dear.
const SUSPECT: u32 = 8;
/// Turns of the burst between two lines, which is what a read can bear.
const SHORT: u32 = 1;
/// An error up to this, in nanoseconds, may be noise, and is smoothed. A larger one is a change of the kernel's rate.
const NOISE: u64 = 64;
/// How often in a row another CPU's counter may be the reason why counter and clock went apart, or a suspend in the middle
/// of a calibration the reason for a rate that cannot be.
const STRIKES: u8 = 3;

/// The record after this one, if it is time for one; `now` is the kernel's time.
pub(super) fn after<S: Source>(source: &S, record: &Record, now: u64) -> Option<Record> {
    let passed = now.wrapping_sub(record.sampled.nanos);
    let next = match record.phase {
        Phase::Off(status) if !status.is_refusal() || passed < AGAIN => None,
        Phase::Idle | Phase::Off(_) => match source.trust() {
            Ok(()) => begin(source, record),
            Err(status) => Some(off(record, status)),
        },
        Phase::Rough | Phase::Baseline if passed > OLD => begin(source, record),
        Phase::Rough if passed >= ROUGH => baseline(source, record),
        Phase::Baseline if passed >= BASELINE => first_line(source, record),
        Phase::Line => next_line(source, record),
        Phase::Rough | Phase::Baseline => None,
    }?;
    let refused = Sample { ticks: 0, nanos: now };
    Some(if matches!(next.phase, Phase::Off(_)) { Record { sampled: refused, ..next } } else { next })
}

fn off(record: &Record, status: Status) -> Record {
    Record::without_line(Phase::Off(status), &record.line)
}

/// Calibrates anew.
fn anew(record: &Record) -> Record {
    Record { strikes: record.strikes, ..Record::without_line(Phase::Idle, &record.line) }
}

fn begin<S: Source>(source: &S, record: &Record) -> Option<Record> {
    let Burst { sample: sampled, cost, .. } = Burst::take(source, SHORT, None)?;
    Some(Record { phase: Phase::Rough, sampled, cost, ..*record })
}

/// The rate from the record's sample to this one.
fn rate_to(record: &Record, sample: Sample) -> Option<Rate> {
    let ticks = sample.ticks.wrapping_sub(record.sampled.ticks);
    line::rate(ticks, sample.nanos.wrapping_sub(record.sampled.nanos))
}

fn baseline<S: Source>(source: &S, record: &Record) -> Option<Record> {
    let Some(rate) = rate_to(record, Burst::take(source, SHORT, None)?.sample) else {
        return Some(misread(record));
    };
    let burst = Burst::take(source, LONG, Some(rate))?;
    Some(Record { phase: Phase::Baseline, steady: rate, sampled: burst.sample, cost: burst.cost, ..*record })
}

fn first_line<S: Source>(source: &S, record: &Record) -> Option<Record> {
    let burst = Burst::take(source, LONG, Some(record.steady))?;
    let stated = source.stated_frequency();
    let is_right = |&rate: &Rate| {
        let is_steady = rate.abs_diff(record.steady) <= rate / 16;
        is_steady && stated.is_none_or(|stated| agrees(rate, stated))
    };
    let rate = rate_to(record, burst.sample).filter(is_right);
    let Some(rate) = rate else {
        return Some(misread(record));
    };
    if burst.cost > dear(record.cost) {
        return Some(anew(record)); // something is in the way of one of the bursts
    }
    let cost = burst.cost.min(record.cost);
    let Sample { ticks: start, nanos } = burst.sample.centred(cost);
    Some(Record {
        line: Line { start, nanos, rate, span: line::span(rate) },
        offset: burst.middle(),
        steady: rate,
        sampled: burst.sample,
        cost,
        phase: Phase::Line,
        strikes: record.strikes,
        cpu: source.cpu(),
    })
}

/// The rate is not one that the counter can have.
fn misread(record: &Record) -> Record {
    let strikes = record.strikes + 1;
    if strikes >= STRIKES { off(record, Status::Frequency) } else { Record { strikes, ..anew(record) } }
}

/// Whether a rate is what the hardware states, to a hundredth.
fn agrees(rate: Rate, stated: u64) -> bool {
    let hertz = line::frequency(rate);
    hertz.abs_diff(stated) <= stated / 100
}

/// What a burst costs at most that is not suspect: three times as much as the cheapest one, which on a coarse counter may
/// have cost no tick at all.
fn dear(cost: u64) -> u64 {
    cost.max(1).saturating_mul(3)
}

fn next_line<S: Source>(source: &S, record: &Record) -> Option<Record> {
    let cpu = source.cpu();
    let mut burst = Burst::take(source, SHORT, Some(record.steady))?;
    let mut cost = record.cost.min(burst.cost);
    if burst.cost > dear(record.cost) {
        // The vDSO began to enter the kernel, or the CPU became slower, or this was interrupted twice.
        if let Err(status) = source.trust() {
            return Some(off(record, status));
        }
        burst = Burst::take(source, SUSPECT, Some(record.steady))?;
        cost = burst.cost;
    }
    let centre = burst.sample.centred(cost);
    let next = match record.line.at(centre.ticks) {
        Some(nanos) => bent(record, centre.nanos.wrapping_sub(nanos) as i64),
        None => resumed(record, burst.sample, centre),
    };
    let Some((line, steady)) = next else {
        return Some(apart(source, record, cpu));
    };
    let offset = burst.offset_after(record.offset, record.steady);
    // In time, and on another CPU or on whatever: what went before was not the CPUs' doing.
    let strikes = if cpu.is_some() && cpu == record.cpu { record.strikes } else { 0 };
    Some(Record { line, offset, steady, sampled: burst.sample, cost, phase: Phase::Line, strikes, cpu })
}

/// The line that begins where the record's ends, and takes this error away; and the steady rate.
fn bent(record: &Record, error: i64) -> Option<(Line, Rate)> {
    let line = &record.line;
    if error.unsigned_abs() > line.slew_limit() {
        return None;
    }
    let correction = line.spread(error);
    let (learnt, spread) = if error.unsigned_abs() > NOISE {
        (correction, correction)
    } else {
        (correction / 8, correction / 2)
    };
    let steady = record.steady.checked_add_signed(learnt)?;
    Some((line.next(steady.checked_add_signed(spread)?), steady))
}

/// A line that begins at the centre of a sample, for the record's had ended; and the steady rate.
fn resumed(record: &Record, sample: Sample, centre: Sample) -> Option<(Line, Rate)> {
    let ticks = sample.ticks.wrapping_sub(record.sampled.ticks);
    let expected = line::long_nanos(ticks, record.steady);
    // What NTP may do meanwhile, by which the new line may be off too: more of it was a suspend.
    let limit = expected / 2000 + u128::from(record.line.slew_limit());
    let error = i128::from(sample.nanos.wrapping_sub(record.sampled.nanos)) - expected as i128;
    if error.unsigned_abs() > limit {
        return None;
    }
    let correction = ((error << 32) / i128::from(ticks.max(1))) as i64;
    let is_long = ticks > record.line.span.saturating_mul(64);
    let learnt = if is_long || error.unsigned_abs() > NOISE.into() { correction } else { correction / 8 };
    let steady = record.steady.checked_add_signed(learnt)?;
    // The old line may have said its last time a moment ago: this one does not begin before that, and takes it back.
    let last = record.line.last();
    let ahead = (last.wrapping_sub(centre.nanos) as i64).max(0);
    let nanos = centre.nanos.wrapping_add(ahead as u64);
    let line = Line { start: centre.ticks, nanos, rate: steady, span: line::span(steady) };
    if ahead.unsigned_abs() > line.slew_limit() {
        return None;
    }
    Some((Line { rate: steady.checked_add_signed(-line.spread(ahead))?, ..line }, steady))
}

/// Counter and clock went apart: the system was suspended, the virtual machine moved, or the CPU has another counter.
fn apart<S: Source>(source: &S, record: &Record, cpu: Option<u32>) -> Record {
    if let Err(status) = source.trust() {
        return off(record, status);
    }
    let is_elsewhere = cpu.is_some() && cpu != record.cpu;
    let strikes = record.strikes + u8::from(is_elsewhere);
    if strikes >= STRIKES {
        return off(record, Status::CpusDisagree);
    }
    Record { strikes, ..anew(record) }
}

//! [`Transition`]: makes the next state of the clock. It enters the next phase of the calibration,
//! adds the next segment, or makes the counter unavailable.

use super::sample::{Burst, Interval, Sample};
use super::segment::{self, Rate, Segment};
use super::source::{Keeper, Source};
use super::state::{ClockState, LONGEST_RETRY, NO_RAW_OFFSET, OLD, Phase};
use super::status::Unavailable;
use super::wall;

/// The time between the first sample and the first long burst, in nanoseconds.
const ROUGH: u64 = 1_000_000;
/// The time between the two long bursts that give the rate.
const BASELINE: u64 = 10_000_000;
/// The time after which the kernel is asked for its clock source again while the counter is used.
const RECHECK: u64 = 10_000_000_000;
/// The number of samples in the bursts that give the rate. Such a burst takes some microseconds.
const LONG: u32 = 32;
/// The maximum number of samples in the burst between two segments.
const SHORT: u32 = 8;
/// The largest difference, in nanoseconds, that can be an error of the samples. The clock follows
/// only a part of such a difference, which smooths the error. A larger one is a step or a change of
/// the rate.
const NOISE: u64 = 64;
/// The limit [`NOISE`] in ticks, for a counter on which this many ticks take longer than 64 ns.
/// When the limit was 64 ns for every counter, an error of one tick on a 1 MHz counter looked like
/// a change of the rate. If the kernel's clock stepped right after that error, the step seemed to
/// confirm the change of the rate. The counter clock therefore overshot a fifth of the steps.
pub(crate) const NOISE_TICKS: u64 = 3;
/// The number of corrupted calibrations in a row after which the counter is unavailable. One is not
/// enough, because a suspend can corrupt a calibration even if the counter is good.
const CORRUPTED: u8 = 3;
/// The number of short segments after a change of the kernel's rate.
const UNSTEADY: u8 = 100;

/// One change of the state, and its inputs. Most methods change the state, and return `None` if the
/// changed state must not be published.
pub(crate) struct Transition<'a, S> {
    pub(crate) source: &'a S,
    pub(crate) state: &'a mut ClockState,
    /// The current time: from the segment if one is in force, and otherwise from the kernel.
    pub(crate) now: u64,
    /// Whether more reads are expected soon.
    pub(crate) is_wanted: bool,
    /// Whether system calls are permitted.
    pub(crate) may_check: bool,
    pub(crate) trusts_hypervisor: bool,
    pub(crate) found: Found,
}

/// The events that a transition found, for the statistics.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found {
    /// A jump of the kernel's clock or of the counter.
    pub(crate) step: bool,
    /// The wall clock was set.
    pub(crate) wall_step: bool,
}

impl<S: Source> Transition<'_, S> {
    /// Makes the next state, if one is due.
    #[inline]
    pub(crate) fn next_state(&mut self) -> Option<()> {
        match self.state.phase {
            Phase::Running if self.is_wanted => self.next_segment(),
            Phase::Running => None,
            _ => self.without_segment(),
        }
    }

    #[cold]
    #[inline(never)]
    fn without_segment(&mut self) -> Option<()> {
        let passed = self.now.wrapping_sub(self.state.sampled.nanos);
        match self.state.phase {
            // The check time is in the future. If it is too far in the future, the process has
            // entered another time namespace, and the kernel is asked again.
            Phase::Off if passed.wrapping_neg().wrapping_sub(1) < LONGEST_RETRY => {
                // Once the last segment has ended, a read before the check time needs no transition
                // (see `CounterClock::unavailable`). A read of the wall clock can come here
                // nevertheless, if the offset is wrong. Such a read subtracts the offset from its
                // time and compares the result with the check time. With a wrong offset, the result
                // can be after the check time although the monotonic time is before it. So the
                // offset is measured here.
                if self.state.segment == Segment::empty(0) {
                    self.measure_offset()?;
                }
                Some(())
            }
            Phase::Idle | Phase::Off => match self.detect() {
                Ok(()) => self.begin(),
                Err(reason) => {
                    // The first read of the wall clock needs an offset.
                    if !self.state.has_offset() {
                        self.measure_offset()?;
                    }
                    self.off(reason)
                }
            },
            _ if passed > OLD && self.is_wanted => self.begin(),
            _ if passed > OLD => None,
            Phase::Rough if passed >= ROUGH => self.baseline(),
            Phase::Baseline if passed >= BASELINE => self.first_segment(),
            Phase::Rough | Phase::Baseline | Phase::Running => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn detect(&mut self) -> Result<(), Unavailable> {
        if !self.may_check {
            return Err(Unavailable::SystemCallsForbidden);
        }
        self.state.keeper = self.source.detect(self.trusts_hypervisor)?;
        Ok(())
    }

    /// Makes the counter unavailable until the check time. The offset stays, because a segment in
    /// force still uses it.
    #[cold]
    #[inline(never)]
    #[allow(
        clippy::unnecessary_wraps,
        reason = "it is one of the changes of the state"
    )]
    fn off(&mut self, reason: Unavailable) -> Option<()> {
        let Self { state, now, .. } = self;
        let is_confirmed = state.phase == Phase::Off && state.unavailable == Some(reason);
        if !is_confirmed {
            state.times_unavailable = state.times_unavailable.saturating_add(1);
        }
        let retry = retry(reason, state.corrupted);
        state.sampled = Sample {
            ticks: 0,
            nanos: now.wrapping_add(retry),
        };
        state.phase = Phase::Off;
        state.unavailable = Some(reason);
        Some(())
    }

    /// Calibrates again, or makes the counter unavailable.
    #[cold]
    fn restart(&mut self, corrupted: u8) -> Option<()> {
        self.state.phase = Phase::Idle;
        self.state.corrupted = corrupted;
        if corrupted < CORRUPTED {
            Some(())
        } else {
            self.off(Unavailable::Frequency)
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> Option<()> {
        if self.state.phase == Phase::Off {
            self.measure_exact_offset()?;
        } else {
            self.measure_offset()?;
        }
        let Self {
            source, state, now, ..
        } = self;
        let Burst { sample, cost } = Burst::take(*source, 2, None, 0)?;
        state.phase = Phase::Rough;
        state.sampled = sample;
        state.cost = cost;
        state.checked = *now;
        state.calibrations = state.calibrations.saturating_add(1);
        Some(())
    }

    /// Measures the offset of the wall clock. Keeps the old offset, if there is one, unless the
    /// measurement shows that the wall clock was set.
    fn measure_offset(&mut self) -> Option<()> {
        let possible = wall::measure(self.source)?;
        if !self.keeps_offset(&possible) {
            self.state.offset = wall::best(&possible, self.state.turn());
        }
        Some(())
    }

    /// Returns whether the wall clock can still have the state's offset, according to the
    /// measurement `possible`. If it cannot although an offset was measured before, the wall clock
    /// was set, and `found` records this as a step.
    fn keeps_offset(&mut self, possible: &Interval) -> bool {
        let is_kept = wall::is_kept(self.state.offset, possible, self.state.turn());
        self.found.wall_step |= !is_kept && self.state.has_offset();
        is_kept
    }

    /// Measures the offset of the wall clock, and replaces the old offset even if the wall clock
    /// was not set. The old offset need not be kept, because no answer was computed with it since
    /// the last segment ended: while the counter is unavailable, reads return the kernel's time.
    fn measure_exact_offset(&mut self) -> Option<()> {
        let possible = wall::measure(self.source)?;
        self.keeps_offset(&possible);
        self.state.offset = wall::best(&possible, self.state.turn());
        Some(())
    }

    /// Measures the offset of the wall clock again, once the rate of the counter is known. The rate
    /// is needed for [`ClockState::turn`], which tells a disturbed measurement from an undisturbed
    /// one. Unless the wall clock was set, the new offset is not smaller than the old one, so that
    /// the wall clock does not go back.
    fn refine_offset(&mut self) -> Option<()> {
        let possible = wall::measure(self.source)?;
        let best = wall::best(&possible, self.state.turn());
        if self.keeps_offset(&possible) {
            self.state.offset = self.state.offset.max(best);
        } else {
            self.state.offset = best;
        }
        Some(())
    }

    /// Returns the mean rate between the state's sample and `sample`. The rate is relative to
    /// `CLOCK_MONOTONIC` if `gained` is 0. For another clock, `gained` is the number of nanoseconds
    /// by which that clock advanced more than `CLOCK_MONOTONIC` between the two samples.
    fn rate_to(&self, sample: Sample, gained: i64) -> Option<Rate> {
        let Sample { ticks, nanos } = self.state.sampled;
        let passed = sample.nanos.wrapping_sub(nanos).wrapping_add_signed(gained);
        segment::rate(sample.ticks.wrapping_sub(ticks), passed)
    }

    /// Returns `CLOCK_MONOTONIC_RAW` minus `CLOCK_MONOTONIC`. The reads may make system calls.
    fn raw_offset(&self) -> Option<i64> {
        if !self.may_check {
            return None;
        }
        let possible = Interval::measure(self.source, 4, S::raw)?;
        Some(possible.middle())
    }

    fn baseline(&mut self) -> Option<()> {
        let Some(base_rate) = self.rate_to(Burst::take(self.source, 2, None, 0)?.sample, 0) else {
            return self.restart(self.state.corrupted.saturating_add(1));
        };
        let Burst {
            sample: sampled,
            cost,
        } = Burst::take(self.source, LONG, Some(base_rate), 0)?;
        let pending = self.raw_offset().unwrap_or(NO_RAW_OFFSET);
        let phase = Phase::Baseline;
        *self.state = ClockState {
            sampled,
            base_rate,
            cost,
            pending,
            phase,
            ..*self.state
        };
        Some(())
    }

    fn first_segment(&mut self) -> Option<()> {
        let state = *self.state;
        let burst = Burst::take(self.source, LONG, Some(state.base_rate), 0)?;
        // `CLOCK_MONOTONIC` can be slewed by 10 %, and the slew can begin or end during the
        // measurement. So the rate is also computed with `CLOCK_MONOTONIC_RAW`, which is never
        // slewed. If it was denied at either sample, `CLOCK_MONOTONIC` has to do. A seccomp filter
        // belongs to one thread, and the two samples can come from different threads.
        let gained = match self.raw_offset() {
            Some(offset) if state.pending != NO_RAW_OFFSET => offset.wrapping_sub(state.pending),
            _ => 0,
        };
        let raw = self.rate_to(burst.sample, gained);
        let stated = self.source.stated_frequency();
        let is_right = |&rate: &Rate| {
            let is_near = |other: Rate| rate.abs_diff(other) <= rate / 4;
            let agrees =
                |raw, stated: u64| segment::frequency(raw).abs_diff(stated) <= stated / 100;
            let is_counter =
                |raw| segment::is_possible(raw) && stated.is_none_or(|hz| agrees(raw, hz));
            is_near(state.base_rate) && raw.is_some_and(|raw| is_near(raw) && is_counter(raw))
        };
        let Some(base_rate) = self.rate_to(burst.sample, 0).filter(is_right) else {
            return self.restart(self.state.corrupted.saturating_add(1));
        };
        if burst.cost > self.suspect_cost(state.cost) {
            return self.restart(0); // something disturbed every sample of a burst
        }
        let cost = burst.cost.min(state.cost);
        self.state.cost = cost;
        self.refine_offset()?;
        let Sample {
            ticks: start,
            nanos,
        } = burst.sample.centred(cost);
        *self.state = ClockState {
            segment: Segment {
                start,
                nanos,
                rate: base_rate,
                span: segment::longest_span(base_rate),
            },
            base_rate,
            sampled: burst.sample,
            first: state.sampled.centred(state.cost),
            cost,
            pending: 0,
            phase: Phase::Running,
            corrupted: 0,
            ..*self.state
        };
        self.state.made(0);
        Some(())
    }

    #[inline]
    fn next_segment(&mut self) -> Option<()> {
        let usual = self.state.cost;
        let burst = Burst::take(
            self.source,
            SHORT,
            Some(self.state.base_rate),
            usual + usual / 8 + 1,
        )?;
        // A read on a CPU whose counter is behind looks as if the counter had been set back, so a
        // new segment seems to be due. But if the thread has since moved to another CPU, the
        // current segment can still be fresh on that CPU. A new segment would begin where the
        // current segment ends, and so would replace the current segment too early. Without this
        // check the time was 25 ms ahead, and then stood still for 25 ms.
        if self.state.segment.is_fresh(burst.sample.ticks) {
            return None;
        }
        let offset = self.offset_at(burst.sample)?;
        let is_wall_step = offset != self.state.offset;
        // A suspect cost means that the vDSO now enters the kernel, or that the CPU has become
        // slower.
        let is_suspect = burst.cost > self.suspect_cost(usual);
        if is_suspect || (self.may_check && self.now.wrapping_sub(self.state.checked) > RECHECK) {
            if let Err(reason) = self.detect() {
                return self.off(reason);
            }
            self.state.checked = self.now;
        }
        let cost = if is_suspect {
            burst.cost
        } else {
            burst.cost.min(usual + usual.div_ceil(8))
        };
        let mut next = *self.state;
        if let Err(divergence) = follow(&mut next, burst.sample, cost) {
            return self.diverged(&divergence);
        }
        *self.state = next;
        self.found.wall_step |= is_wall_step;
        self.state.offset = offset;
        self.state.sampled = burst.sample;
        self.state.cost = cost;
        Some(())
    }

    /// Measures the counter again.
    #[cold]
    fn diverged(&mut self, divergence: &Divergence) -> Option<()> {
        self.found.step = true;
        match divergence {
            Divergence::Slew => self.begin(),
            Divergence::Jump => match self.detect() {
                Err(reason) => self.off(reason),
                Ok(()) => self.restart(0),
            },
        }
    }

    /// Returns the number of ticks above which the cost of a sample is suspect.
    ///
    /// If the kernel stops using the counter, each read becomes a system call, which usually takes
    /// at least three times as long. A vDSO that reads a hypervisor's page can fall back to the
    /// system call at any read, and a cheap system call takes only a third longer than a read. So
    /// the limit is lower under a hypervisor. A CPU that has merely become slower can exceed this
    /// lower limit as well. Then the kernel is asked once, which costs some microseconds, and the
    /// higher cost counts as usual from then on. If the CPU's speed alternates, the kernel is asked
    /// after each slowdown. On a coarse counter the cost is 0 or 1, so the limit needs a minimum.
    fn suspect_cost(&self, usual: u64) -> u64 {
        if self.state.keeper == Keeper::Hypervisor {
            usual + usual / 4 + 2
        } else {
            usual.max(1).saturating_mul(3)
        }
    }

    /// Returns the offset of the wall clock: the old one, unless the clock was set.
    #[inline]
    fn offset_at(&self, sample: Sample) -> Option<i64> {
        let offset = self.state.offset;
        let turn = self.state.turn();
        let realtime = self.source.realtime()?;
        let ticks = self.source.ticks_ordered().wrapping_sub(sample.ticks);
        let passed = segment::long_nanos(ticks, self.state.base_rate);
        let high = realtime.wrapping_sub(sample.nanos as i64);
        let possible = Interval {
            low: high.saturating_sub_unsigned(passed),
            high,
            shortest: passed,
        };
        if wall::is_kept(offset, &possible, turn) {
            return Some(offset);
        }
        let possible = wall::measure(self.source)?;
        if wall::is_kept(offset, &possible, turn) {
            return Some(offset);
        }
        Some(wall::best(&possible, turn))
    }
}

/// The reason why no segment can follow the last one.
enum Divergence {
    /// A slew that began or ended during a pause.
    Slew,
    /// A change of the kernel's clock that is larger than any slew: the system was suspended, or
    /// the virtual machine was moved or restored.
    Jump,
}

/// Returns the time in nanoseconds after which an unavailable counter is checked again.
fn retry(reason: Unavailable, corrupted: u8) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    match reason {
        Unavailable::ClockSourceUnknown | Unavailable::Denied => SECOND,
        Unavailable::ClockSource | Unavailable::NotInvariant | Unavailable::SlowVdso => 10 * SECOND,
        Unavailable::Frequency => (10 * SECOND) << corrupted.saturating_sub(CORRUPTED).min(6),
        _ => LONGEST_RETRY,
    }
}

/// The time that passed since the last sample, on both clocks.
struct Passed {
    ticks: u64,
    /// The nanoseconds that these ticks take at the base rate.
    expected: u64,
    /// The nanoseconds that the kernel's clock advanced beyond `expected`.
    change: i64,
}

impl Passed {
    fn new(state: &ClockState, sample: Sample) -> Self {
        let ticks = sample.ticks.wrapping_sub(state.sampled.ticks);
        let expected = segment::long_nanos(ticks, state.base_rate);
        let passed = sample.nanos.wrapping_sub(state.sampled.nanos) as i64;
        let change = passed.saturating_sub(expected as i64);
        Self {
            ticks,
            expected,
            change,
        }
    }

    /// Returns an error if the change is too large for the next segment to follow.
    ///
    /// NTP changes the rate by up to 500 ppm, and adjtimex(2) by up to 20 %. If more than two
    /// segments' time has passed, a change that is larger than NTP's can also come from a suspend,
    /// so it needs a new calibration.
    fn check(&self, longest: u64, rate: Rate) -> Result<(), Divergence> {
        let tolerance = segment::nanos(longest, rate) / 1024;
        let slew = self.expected / 4 + tolerance;
        let ntp = self.expected / 2000 + tolerance;
        let change = self.change.unsigned_abs();
        if change > slew {
            return Err(Divergence::Jump);
        }
        if change > ntp && self.ticks > longest.saturating_mul(2) {
            return Err(Divergence::Slew);
        }
        Ok(())
    }
}

/// Returns the largest difference, in nanoseconds, that can be an error of the samples: see
/// [`NOISE`].
fn noise(rate: Rate) -> u64 {
    NOISE.max(segment::nanos(NOISE_TICKS, rate))
}

/// The kernel's rate, as far as the last sample shows it.
struct Learnt {
    base_rate: Rate,
    /// The change of the rate that the next sample can confirm, or 0.
    suspected: i64,
    /// Whether a change was confirmed.
    is_confirmed: bool,
}

/// Learns the kernel's rate since the last sample. Returns `None` if the new rate would be negative
/// or not fit in 64 bits.
///
/// If the kernel's clock advanced by more or by less than the base rate predicts (`passed.change`),
/// either the clock stepped or its rate changed. One sample cannot tell which. So after the first
/// such sample, a change of the rate is only suspected: the next segment removes the error, and
/// nothing is learnt. After a step, the second sample is as predicted. If instead the second sample
/// differs in the same direction, the rate has changed. The new rate began within the first
/// interval and holds for the whole second one, so the second difference per tick should not be
/// smaller than the first. `is_second` requires that it is at least half of the first.
fn learn(state: &ClockState, passed: &Passed) -> Option<Learnt> {
    let change = segment::rate_of(passed.change, passed.ticks);
    let is_smooth = passed.change.unsigned_abs() <= noise(state.base_rate);
    let is_second = state.pending.signum() == change.signum()
        && change.unsigned_abs() >= state.pending.unsigned_abs() / 2;
    let is_long = passed.ticks > segment::longest_span(state.base_rate).saturating_mul(64);
    if is_smooth {
        return Some(Learnt {
            base_rate: state.base_rate.checked_add_signed(change / 8)?,
            suspected: 0,
            is_confirmed: false,
        });
    }
    if is_second || is_long {
        return Some(Learnt {
            base_rate: state.base_rate.checked_add_signed(change)?,
            suspected: 0,
            is_confirmed: true,
        });
    }
    Some(Learnt {
        base_rate: state.base_rate,
        suspected: change,
        is_confirmed: false,
    })
}

/// The start of the next segment. `error` is what that segment must remove, in nanoseconds: the
/// kernel's time at the segment's first tick, minus the segment's own time there.
struct Beginning {
    start: u64,
    nanos: u64,
    error: i64,
}

impl Beginning {
    /// Computes where the new segment begins.
    ///
    /// If the sample is within the old segment, the new one begins where the old one ends.
    /// Otherwise the new one begins at the sample. Another read may just have returned the time of
    /// the old segment's end, so the new segment's first time is that time or a later one.
    fn after(old: &Segment, sample: Sample, base_rate: Rate) -> Self {
        let end = old.end_nanos();
        if old.covering(sample.ticks).is_none() {
            let lead = (end.wrapping_sub(sample.nanos) as i64).max(0);
            return Self {
                start: sample.ticks,
                nanos: sample.nanos.wrapping_add_signed(lead),
                error: -lead,
            };
        }
        // The error at the end of the old segment is not the error at the sample, because the old
        // segment removes a part of it until then. When this was ignored, a step of 3.9 ms was
        // overshot by 10.8 us.
        let left = segment::nanos(old.end().wrapping_sub(sample.ticks), base_rate);
        let kernel = sample.nanos.wrapping_add(left);
        Self {
            start: old.end(),
            nanos: end,
            error: kernel.wrapping_sub(end) as i64,
        }
    }
}

/// Returns the span of the next segment, which removes `error`.
///
/// If the clock is steady, the result is the longest span. Otherwise the function begins with a
/// quarter of the longest span, so that the next change of the rate causes less error. Then it
/// doubles the span, up to the longest, until a segment can remove the whole error: `error` must be
/// at most a quarter of the time that the span takes.
fn next_span(error: i64, rate: Rate, is_unsteady: bool) -> u64 {
    let longest = segment::longest_span(rate);
    let mut span = longest;
    if is_unsteady {
        span = (longest / 4).max(1);
    }
    while span < longest && segment::nanos(span, rate) / 4 < error.unsigned_abs() {
        span *= 2;
    }
    span
}

/// Makes the next segment from a sample of the kernel's clock. If the function returns an error,
/// the state has not changed.
///
/// # A step
///
/// The counter runs at 1 GHz, so the base rate is 1 ns per tick, and a segment has 2^23 ticks
/// (8.4 ms). The last sample was at tick 0 and at 0 ns. The segment that was made from it begins at
/// tick 33,000, where the segment before it ended, so it ends at tick 8,421,608.
/// Meanwhile the kernel's clock steps forward by 1 ms.
///
/// - The sample is taken at tick 8,390,000, and the kernel's time is 9,390,000 ns. 8,390,000 ns
///   were expected, so the change is 1,000,000 ns: less than a quarter of the interval.
/// - That is a change of the rate by 0.119 ns per tick. It is suspected, but not learnt, so the
///   base rate stays.
/// - The old segment ends with the time 8,421,608 ns. The kernel's time will then be 9,421,608 ns,
///   so the error is 1,000,000 ns.
/// - The clock is unsteady now. A segment of 2^21 ticks can remove an error of at most a quarter of
///   its 2.1 ms. That is too little, so the next segment has 2^22 ticks. Its rate is 1 + 1,000,000
///   / 2^22 = 1.238, and it ends at tick 12,615,912 with the kernel's time, 13,615,912 ns.
/// - The next sample shows no change: it was a step, and nothing remains of it.
///
/// # A slew
///
/// This time the kernel's clock does not step, but runs 10 % faster from tick 4,000,000 on.
///
/// - At tick 8,390,000 the change is 439,000 ns. That is a change of the rate by 0.052, which is
///   suspected. The next segment removes the error, as after a step.
/// - The next sample, 2,121,000 ticks later, shows a change of 212,100 ns, which is a change of the
///   rate by 0.1. It has the sign of the suspected change and is at least half of it, so it is
///   learnt: the base rate is 1.1. Meanwhile the clock was behind by up to 0.44 ms.
#[inline]
fn follow(state: &mut ClockState, sample: Sample, cost: u64) -> Result<(), Divergence> {
    let passed = Passed::new(state, sample);
    passed.check(segment::longest_span(state.base_rate), state.base_rate)?;
    let Learnt {
        base_rate,
        suspected,
        is_confirmed,
    } = learn(state, &passed).ok_or(Divergence::Jump)?;
    let is_change = passed.change.unsigned_abs() > passed.expected / 1000 + noise(state.base_rate);
    let mut unsteady = state.unsteady.saturating_sub(1);
    if is_change {
        unsteady = UNSTEADY;
    }

    let Beginning {
        start,
        nanos,
        error,
    } = Beginning::after(&state.segment, sample.centred(cost), base_rate);
    let span = next_span(error, base_rate, unsteady > 0);
    let mut correction = segment::correction(error, span, base_rate);
    if error.unsigned_abs() <= noise(base_rate) {
        correction /= 2;
    }
    let rate = base_rate
        .checked_add_signed(correction)
        .ok_or(Divergence::Jump)?;
    state.segment = Segment {
        start,
        nanos,
        rate,
        span,
    };
    if is_confirmed && is_change {
        // The mean rate since the baseline began converts the ticks that no segment covers any
        // more. If the baseline contained a change of the rate, its mean would be neither the old
        // rate nor the new one. So the baseline begins again, and its mean is the new rate. When
        // the baseline did not begin again, a tick that was one second old was converted with an
        // error of 75 ms after chrony had slewed the clock for ten minutes.
        state.first = state.sampled.centred(state.cost);
    }
    state.base_rate = base_rate;
    state.pending = suspected;
    state.unsteady = unsteady;
    state.made(error.unsigned_abs());
    Ok(())
}

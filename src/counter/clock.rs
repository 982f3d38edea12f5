//! [`CounterClock`]: how a read is answered, and which read updates the clock.
//!
//! A fast read takes the current segment from the latch. It fails if the next segment is due, if an
//! update came between, or if its answer is below the high-water mark. Then a slow read follows,
//! which may ask the vDSO and may update the latch.
//!
//! # Memory ordering
//!
//! If one ordered read happens before another, the second time is not earlier:
//!
//! - Both by segments: the ticks of the second are not smaller, and the segments are one function
//!   that never falls. The second read sees the same update of the latch or a later one.
//! - First the vDSO, then a segment: the first read raises the high-water mark before it returns.
//! - First a segment, then the vDSO: the answer is at least the end of that segment, or, if the
//!   first tick of the segment is not reached, at least its first time.
//!
//! A slow read loads the latch before the counter. So its tick is not smaller than those that the
//! writer of the segment read.

use super::discipline;
use super::high_water::HighWater;
use super::history::History;
use super::latch::{Latch, Snapshot};
use super::sample::Source;
use super::segment;
use super::state::{ClockState, Phase, WORDS, fresh_monotonic, fresh_realtime, time_at};
use super::status::{State, Status};

/// The least error of a segment, in nanoseconds, while the kernel's clock keeps its rate. Three
/// ticks, if they are longer.
const NOISE: u64 = 30;

/// The largest lead of an answer over the kernel's clock, in nanoseconds. A segment is computed at
/// most one segment before its first tick, so it ends at most two segments ahead; this is twice
/// that. A larger lead means that the process entered another time namespace (setns(2)).
const MAX_LEAD: u64 = 4 * segment::LONGEST;

/// A clock that reads a counter and follows the kernel's clock.
#[repr(C)]
pub(crate) struct CounterClock<S> {
    pub(super) latch: Latch<WORDS>,
    high_water: HighWater,
    pub(super) history: History,
    source: S,
}

impl<S: Source> CounterClock<S> {
    pub(crate) const fn new(source: S) -> Self {
        Self { latch: Latch::new(), high_water: HighWater::new(), history: History::new(), source }
    }

    /// The monotonic time in nanoseconds, if a fast read can answer.
    #[inline]
    pub(crate) fn monotonic(&self, ticks: impl FnOnce(&S) -> u64) -> Option<u64> {
        let (nanos, is_whole) = self.latch.read(|words| fresh_monotonic(words, || ticks(&self.source)));
        nanos.filter(|&nanos| is_whole && nanos >= self.high_water.get())
    }

    /// The time since the Epoch in nanoseconds, if a fast read can answer.
    #[inline]
    pub(crate) fn realtime(&self, ticks: impl FnOnce(&S) -> u64) -> Option<i64> {
        let (nanos, is_whole) = self.latch.read(|words| fresh_realtime(words, || ticks(&self.source)));
        nanos.filter(|_| is_whole)
    }

    /// The monotonic time by a slow read, which updates the clock if that is due. None if a sandbox
    /// denies the time.
    pub(crate) fn slow_monotonic(&self) -> Option<u64> {
        let View { snapshot, state, ticks, nanos } = self.view();
        if let Some(nanos) = nanos {
            if state.segment.is_ending(ticks) {
                self.update(&snapshot, &state, nanos);
            }
            return Some(nanos.max(self.high_water.get()));
        }
        let (now, answer) = self.ask_kernel(&state, ticks)?;
        if state.is_final() {
            return Some(answer); // no segment will follow that could say less
        }
        // Before the update, whose segment may begin earlier than this answer.
        let answer = self.high_water.raise(answer);
        if !state.segment.begins_after(ticks) {
            self.update(&snapshot, &state, now);
        }
        Some(answer)
    }

    /// The time since the Epoch by a slow read.
    pub(crate) fn slow_realtime(&self) -> Option<i64> {
        if !self.load().is_final() {
            self.slow_monotonic()?;
        }
        self.source.realtime()
    }

    pub(super) fn load(&self) -> ClockState {
        ClockState::from_words(&self.latch.snapshot().words)
    }

    /// Loads the latch, reads the counter once, and combines them.
    fn view(&self) -> View {
        let snapshot = self.latch.snapshot();
        let state = ClockState::from_words(&snapshot.words);
        let ticks = if state.phase == Phase::Running { self.source.ticks_ordered() } else { 0 };
        let nanos = time_at(&snapshot, ticks);
        View { snapshot, state, ticks, nanos }
    }

    /// The kernel's time, and the answer when no segment covers the tick. The answer is not earlier
    /// than an answer before, unless the kernel's clock is another one now.
    fn ask_kernel(&self, state: &ClockState, ticks: u64) -> Option<(u64, u64)> {
        let high_water = self.high_water.get();
        // Before the segment's first tick, this CPU's counter is behind the writer's.
        let is_before = state.segment.begins_after(ticks);
        let held = if is_before { state.segment.nanos } else { state.segment.end_nanos() };
        // Read last, so that both are ahead of it by `MAX_LEAD` at most.
        let now = self.source.monotonic()?;
        let is_foreign = |nanos: u64| nanos > now.saturating_add(MAX_LEAD);
        if is_foreign(high_water) {
            self.high_water.lower(high_water, now);
        }
        let answer = [high_water, held].into_iter().filter(|&nanos| !is_foreign(nanos)).fold(now, u64::max);
        Some((now, answer))
    }

    /// Publishes the next state, if it is due and no other caller was faster.
    fn update(&self, snapshot: &Snapshot<WORDS>, state: &ClockState, now: u64) {
        if snapshot.has_writer() {
            return;
        }
        if let Some(next) = discipline::next_state(&self.source, state, now) {
            if self.latch.update(snapshot, &next.to_words()) {
                self.history.follow(&next);
            }
        }
    }

    /// Whether the counter answers, or why not.
    pub(crate) fn status(&self) -> Status {
        self.view().status()
    }

    /// The status, the error bound and the frequency of one moment.
    pub(crate) fn state(&self) -> State {
        // Loaded before the view: later marks are not ahead of what the view says.
        let high_water = self.high_water.get();
        let view = self.view();
        let error_bound = match view.nanos {
            Some(nanos) => view.segment_error().saturating_add(high_water.saturating_sub(nanos)),
            None => self.ask_kernel(&view.state, view.ticks).map_or(0, |(now, answer)| answer - now),
        };
        let frequency = view.state.frequency().map(|frequency| self.history.baseline(frequency).frequency());
        State { status: view.status(), error_bound, frequency }
    }

    /// The counter's rate in Hz, once it is measured.
    pub(crate) fn frequency(&self) -> Option<u64> {
        self.baseline().map(|baseline| baseline.frequency())
    }

    /// Asks the kernel whether the counter will be used. If it was given up, returns why.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match self.load().phase {
            Phase::Off(status) if !status.is_temporary() => Err(status),
            _ => self.source.detect(),
        }
    }
}

/// A consistent view of the clock at one tick.
struct View {
    snapshot: Snapshot<WORDS>,
    state: ClockState,
    ticks: u64,
    /// The time of the tick, if a segment covers it.
    nanos: Option<u64>,
}

impl View {
    fn status(&self) -> Status {
        match self.state.phase {
            Phase::Off(status) => status,
            Phase::Running if self.nanos.is_some() => Status::Used,
            _ if self.snapshot.has_writer() => Status::Updating,
            Phase::Running => Status::Stale,
            _ => Status::Calibrating,
        }
    }

    /// How far the segment may be from the kernel's clock, in nanoseconds.
    fn segment_error(&self) -> u64 {
        let ClockState { segment, base_rate, .. } = self.state;
        let correction = segment::nanos(segment.span, segment.rate.abs_diff(base_rate));
        NOISE.max(segment::nanos(3, base_rate)) + correction + segment.drift()
    }
}

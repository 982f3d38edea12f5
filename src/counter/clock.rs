//! [`CounterClock`]: how a read is answered, and which read updates the clock.
//!
//! A fast read takes the current segment from the latch. It fails if the next segment is due, if an
//! update came between, or if its answer is below the high-water mark. Then a slow read follows. It
//! asks the vDSO if no segment covers its tick. It updates the latch if the next segment is due, if
//! the clock is being calibrated, or if another read came within the last millisecond without a
//! segment in force. So a reader that comes once in a while pays for the vDSO only.
//!
//! # Memory ordering
//!
//! If one ordered read happens before another, the second time is not earlier:
//!
//! - Both by segments: the ticks of the second are not smaller, and the segments are one function
//!   that never falls. The second read sees the same update of the latch or a later one.
//! - First the vDSO, then a segment: the first read raises the high-water mark before it returns,
//!   or the counter was not used (below).
//! - First a segment, then the vDSO: the answer is at least the end of that segment, or, if the
//!   first tick of the segment is not reached, at least its first time. After a restart or a
//!   refusal the segment stays in force until it ends.
//!
//! A slow read loads the latch before the counter. So its tick is not smaller than those that the
//! writer of the segment read.
//!
//! Where the counter is not used, a read writes nothing, not even the high-water mark. It asks the
//! vDSO between two loads of the sequence number, and needs no mark if both are the same. Each later
//! segment follows three later updates: a sample, another one at least 1 ms later by the kernel's
//! clock, and the first segment, at least 10 ms after that. A CPU can execute the second load before
//! the vDSO's read of the counter, but no earlier than its window of instructions reaches, which is
//! far less than 11 ms; an interrupt between them empties the window. So the segment begins later
//! than the answer.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::discipline::Step;
use super::high_water::HighWater;
use super::history::History;
use super::latch::{Latch, Snapshot};
use super::sample::Source;
use super::segment::{self, Rate, Segment};
use super::state::{ClockState, Phase, Rest, WORDS, fresh_monotonic, fresh_realtime, segment_at};
use super::status::{State, Statistics, Status};

/// The least error of a segment, in nanoseconds, while the kernel's clock keeps its rate. Three
/// ticks, if they are longer.
const NOISE: u64 = 30;

/// The largest lead of an answer over the kernel's clock, in nanoseconds. A segment is computed at
/// most one segment before its first tick, so it ends at most two segments ahead; this is twice
/// that. A larger lead means that the process entered another time namespace (setns(2)).
const MAX_LEAD: u64 = 4 * segment::LONGEST;

/// The unit of a mark: 1024 ns.
const MARK_SHIFT: u32 = 10;
/// The time after a read without a segment in force in which another one makes a segment: 1 ms.
const SOON: usize = 1_000_000 >> MARK_SHIFT;

/// How often an error is measured at most. The least result counts, because an interrupt between
/// two reads makes it larger.
const TRIES: u32 = 3;

/// A clock that reads a counter and follows the kernel's clock.
#[repr(C)]
pub(crate) struct CounterClock<S> {
    pub(super) latch: Latch<WORDS, Marks>,
    pub(super) history: History,
    pub(super) source: S,
}

/// Words that slow reads write.
pub(super) struct Marks {
    high_water: HighWater,
    /// The time of the last read without a segment in force.
    read_at: AtomicUsize,
    /// How often the vDSO answered in the counter's place. Threads can lose a count to each other.
    vdso_reads: AtomicUsize,
    forbids_checks: AtomicBool,
}

impl Marks {
    /// Whether a read without a segment in force came shortly before. Marks this one.
    fn is_soon(&self, now: u64) -> bool {
        let mark = (now >> MARK_SHIFT) as usize;
        let is_soon = mark.wrapping_sub(self.read_at.load(Relaxed)) < SOON;
        self.read_at.store(mark, Relaxed);
        is_soon
    }

    fn count_vdso_read(&self) {
        self.vdso_reads.store(self.vdso_reads.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

impl<S: Source> CounterClock<S> {
    pub(crate) const fn new(source: S) -> Self {
        let marks = Marks {
            high_water: HighWater::new(),
            // Not 0: so the clock is in .data with the slots, and not in another page.
            read_at: AtomicUsize::new(1),
            vdso_reads: AtomicUsize::new(0),
            forbids_checks: AtomicBool::new(false),
        };
        Self { latch: Latch::new(marks), history: History::new(), source }
    }

    /// The monotonic time in nanoseconds, if a fast read can answer.
    #[inline]
    pub(crate) fn monotonic(&self, ticks: impl FnOnce(&S) -> u64) -> Option<u64> {
        let (nanos, is_whole) = self.latch.read(|words| fresh_monotonic(words, || ticks(&self.source)));
        nanos.filter(|&nanos| is_whole && nanos >= self.latch.beside.high_water.get())
    }

    /// The time since the Epoch in nanoseconds, if a fast read can answer.
    #[inline]
    pub(crate) fn realtime(&self, ticks: impl FnOnce(&S) -> u64) -> Option<i64> {
        let (nanos, is_whole) = self.latch.read(|words| fresh_realtime(words, || ticks(&self.source)));
        nanos.filter(|_| is_whole)
    }

    /// The monotonic time by a slow read, which updates the clock if that is due. None if a sandbox
    /// denies the time.
    #[inline]
    pub(crate) fn slow_monotonic(&self) -> Option<u64> {
        match self.off_monotonic() {
            None => self.used_monotonic(),
            now => now,
        }
    }

    /// The same where the counter is used, or may be.
    #[inline(never)]
    fn used_monotonic(&self) -> Option<u64> {
        let resting = self.resting(Source::monotonic, |now, _| now);
        let high_water = &self.latch.beside.high_water;
        if let Some(now) = resting.filter(|&now| high_water.get() <= now) {
            return Some(high_water.raise(now));
        }
        self.updating_monotonic()
    }

    /// The time since the Epoch by a slow read.
    pub(crate) fn slow_realtime(&self) -> Option<i64> {
        let monotonic = |time: i64, offset: i64| time.wrapping_sub(offset) as u64;
        if let Some(time) = self.resting(Source::realtime, monotonic) {
            return Some(time);
        }
        self.updating_monotonic()?;
        self.source.realtime()
    }

    /// The vDSO's answer where the counter is not used, and need not be checked now.
    #[inline]
    fn off_monotonic(&self) -> Option<u64> {
        let (now, is_whole) = self.latch.read(|words| {
            let is_off = Rest::is_off(words);
            is_off.then(|| self.source.monotonic())?.filter(|&now| Rest::has_no_check(words, now))
        });
        now.filter(|_| is_whole)
    }

    /// The vDSO's answer if no update is due. `monotonic` computes the monotonic time from the answer
    /// and the offset of the wall clock.
    #[inline]
    fn resting<T: Copy>(
        &self,
        read: impl FnOnce(&S) -> Option<T>,
        monotonic: impl FnOnce(T, i64) -> u64,
    ) -> Option<T> {
        let (found, is_whole) = self.latch.read(|words| {
            let rest = Rest::of(words, || self.source.ticks_ordered())?;
            let answer = read(&self.source)?;
            let now = monotonic(answer, rest.offset);
            rest.times.contains(&now).then_some((answer, now, rest.is_off))
        });
        let (answer, now, is_off) = found.filter(|_| is_whole)?;
        if !is_off {
            if self.latch.beside.is_soon(now) {
                return None;
            }
            self.latch.beside.count_vdso_read();
        }
        Some(answer)
    }

    #[inline(never)]
    fn updating_monotonic(&self) -> Option<u64> {
        let Marks { high_water, .. } = &self.latch.beside;
        let view = self.view();
        if let Some(nanos) = view.nanos() {
            if view.state.is_ending(view.ticks) {
                self.update(&view, nanos, true);
            }
            return Some(nanos.max(high_water.get()));
        }
        let (now, answer) = self.ask_kernel(&view.state, view.ticks)?;
        // Before the update, whose segment may begin earlier than this answer.
        let answer = high_water.raise(answer);
        let is_soon = self.latch.beside.is_soon(now);
        if !view.state.segment.begins_after(view.ticks) {
            // A segment removes a lead. Without it the time would stand still.
            self.update(&view, now, is_soon || answer > now);
        }
        self.latch.beside.count_vdso_read();
        Some(answer)
    }

    pub(super) fn load(&self) -> ClockState {
        ClockState::from_words(&self.latch.snapshot().words)
    }

    /// Loads the latch, reads the counter once if there is a segment, and combines them.
    fn view(&self) -> View {
        let snapshot = self.latch.snapshot();
        let state = ClockState::from_words(&snapshot.words);
        let ticks = if state.segment.span > 0 { self.source.ticks_ordered() } else { 0 };
        let segment = segment_at(&snapshot, ticks);
        View { snapshot, state, ticks, segment }
    }

    /// The kernel's time, and the answer when no segment covers the tick. The answer is not earlier
    /// than an answer before, unless the kernel's clock is another one now.
    fn ask_kernel(&self, state: &ClockState, ticks: u64) -> Option<(u64, u64)> {
        let Marks { high_water: mark, .. } = &self.latch.beside;
        let high_water = mark.get();
        // Before the segment's first tick, this CPU's counter is behind the writer's.
        let is_before = state.segment.begins_after(ticks);
        let held = if is_before { state.segment.nanos } else { state.segment.end_nanos() };
        // Read last, so that both are ahead of it by `MAX_LEAD` at most.
        let now = self.source.monotonic()?;
        let is_foreign = |nanos: u64| nanos > now.saturating_add(MAX_LEAD);
        if is_foreign(high_water) {
            mark.lower(high_water, now);
        }
        let answer = [high_water, held].into_iter().filter(|&nanos| !is_foreign(nanos)).fold(now, u64::max);
        Some((now, answer))
    }

    /// Publishes the next state, if it is due and no other caller was faster.
    fn update(&self, view: &View, now: u64, is_wanted: bool) {
        let View { snapshot, state, .. } = view;
        if snapshot.has_writer() {
            return;
        }
        let may_check = !self.latch.beside.forbids_checks.load(Relaxed);
        let step = Step { source: &self.source, state, now, is_wanted, may_check };
        if let Some(mut next) = step.next_state() {
            if next.phase != Phase::Running && view.segment.is_none() {
                next.segment = Segment::empty(next.segment.end_nanos());
            }
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
        let high_water = self.latch.beside.high_water.get();
        let view = self.view();
        let error_bound = match view.segment {
            Some(segment) => {
                let lead = high_water.saturating_sub(segment.time(view.ticks));
                self.segment_error(&view, &segment).saturating_add(lead)
            }
            None => self.ask_kernel(&view.state, view.ticks).map_or(0, |(now, answer)| answer - now),
        };
        let frequency = view.state.frequency().map(|frequency| self.history.baseline(frequency).frequency());
        State { status: view.status(), error_bound, frequency }
    }

    /// How far the segment is from the kernel's clock, and how far it can be before it ends, in
    /// nanoseconds.
    fn segment_error(&self, view: &View, segment: &Segment) -> u64 {
        let ClockState { base_rate, sampled, cost, .. } = view.state;
        let (mut error, mut seen) = (u64::MAX, base_rate);
        let mut before = view.ticks;
        for _ in 0..TRIES {
            // A denied clock shows no error.
            let now = self.source.monotonic().unwrap_or(segment.time(before));
            let after = self.source.ticks_ordered();
            // The clocks were read between the two ticks.
            let far = [before, after].map(|ticks| segment.time(ticks).abs_diff(now));
            error = error.min(far.into_iter().fold(0, u64::max));
            let passed = before.wrapping_sub(sampled.ticks);
            if passed > segment.span / 8 && passed < segment.span.saturating_mul(2) {
                seen = segment::rate(passed, now.wrapping_sub(sampled.nanos)).unwrap_or(base_rate);
            }
            if after.wrapping_sub(before) <= cost.saturating_mul(3) {
                break;
            }
            before = after;
        }
        let left = segment.end().wrapping_sub(view.ticks);
        let apart = |rate: Rate| segment::nanos(left, segment.rate.abs_diff(rate));
        let growth = apart(base_rate).max(apart(seen)) + segment::nanos(left, segment.rate).div_ceil(2000);
        NOISE.max(segment::nanos(3, base_rate)).saturating_add(error).saturating_add(growth)
    }

    /// The counter's rate in Hz, once it is measured.
    pub(crate) fn frequency(&self) -> Option<u64> {
        self.baseline().map(|baseline| baseline.frequency())
    }

    /// Asks the kernel whether the counter will be used. If it was given up, returns why.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match self.load().phase {
            Phase::Off(status @ (Status::Frequency | Status::CpusDisagree)) => Err(status),
            _ => self.source.detect(),
        }
    }

    /// Makes no system call from now on.
    pub(crate) fn forbid_checks(&self) {
        self.latch.beside.forbids_checks.store(true, Relaxed);
    }

    /// What the clock has done so far.
    pub(crate) fn statistics(&self) -> Statistics {
        self.load().tally.statistics(self.latch.beside.vdso_reads.load(Relaxed) as u64)
    }
}

/// A consistent view of the clock at one tick.
struct View {
    snapshot: Snapshot<WORDS>,
    state: ClockState,
    ticks: u64,
    /// The segment that covers the tick.
    segment: Option<Segment>,
}

impl View {
    /// The time of the tick.
    fn nanos(&self) -> Option<u64> {
        Some(self.segment?.time(self.ticks))
    }

    fn status(&self) -> Status {
        match self.state.phase {
            Phase::Off(status) => status,
            Phase::Running if self.segment.is_some() => Status::Used,
            _ if self.snapshot.has_writer() => Status::Updating,
            Phase::Running => Status::Stale,
            _ => Status::Calibrating,
        }
    }
}

//! [`CounterClock`]: answers reads, and chooses the reads that update the clock.
//!
//! A fast read takes the current segment from the latch. It fails if the next segment is due, if an
//! update happened during the read, or if the resulting time is below the high-water mark. Then a
//! slow read follows. If no segment covers the tick of the slow read, the vDSO answers.
//!
//! A slow read also makes the next segment and updates the latch, if that segment is due or
//! *wanted*. A segment is wanted if none is in force, and if one of these is true: the vDSO
//! answered another read less than 1 ms before, or the slow read has to return a time that is ahead
//! of the kernel's clock, so that the time does not go back.
//!
//! # Memory ordering
//!
//! If one ordered read happens before another, the time of the second read is not earlier. There
//! are three cases:
//!
//! - Both times come from segments: the tick of the second read is not smaller, and the segments
//!   are one function that never falls. The second read sees the same update of the latch or a
//!   later one.
//! - The first time comes from the vDSO and the second one from a segment: the first read raises
//!   the high-water mark before it returns, and a fast read fails if its time is below the mark. If
//!   the counter was not used during the first read, the mark is not needed, as shown below.
//! - The first time comes from a segment and the second one from the vDSO: the second time is at
//!   least the latest time that the first read can have returned. This latest time is usually the
//!   time of the segment's end. But if the tick of the second read is before the segment's first
//!   tick, the latest time is the segment's first time. Even if the calibration begins again or the
//!   counter becomes unavailable, the segment stays in force until it ends.
//!
//! A slow read loads the latch before it reads the counter, so its tick is not smaller than the
//! ticks that the writer of the segment read.
//!
//! An ordered fast read can load the latch and read the counter in any order, because a tick has
//! the same time whatever segment covers it. So on x86 the fence of an ordered read comes before
//! the loads of the latch, and does not wait for them. With the fence after the loads, the
//! benchmark `ratios` measured 24 ns instead of 21 on an AMD EPYC. A loop without other work hid
//! the difference: there it was only 0.3 ns.
//!
//! On aarch64 only a branch orders a read of the counter before a later store. The branch on
//! `past < fresh_span` in [`fresh`] depends on the tick, so nothing is stored before the counter is
//! read. This is why a read must not be made branch-free.
//!
//! Where the counter is not used, a read writes nothing. An answer that is earlier than the *check
//! time*, at which the kernel must be asked again, needs no high-water mark:
//!
//! - Every later segment begins after the answer. Before a caller measures the counter again, it
//!   must have read a kernel time at or after the check time. The measurement takes at least 11 ms,
//!   and the first segment begins at its end.
//! - Every earlier segment ended at or before the answer. A read skips the mark only if the state
//!   [is off](is_off), which means that the counter is not used and the last segment has ended. A
//!   caller publishes this state only after it has read a kernel time at or after the end of the
//!   last segment.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use vdso_time::Timespec;

use super::high_water::HighWater;
use super::latch::Latch;
use super::segment::{self, Segment};
use super::source::Source;
use super::state::{
    ClockState, OLD, Phase, WALL, WORDS, Words, fresh, is_before_check, is_off, is_sparse,
    may_be_sparse, offset_of, realtime_after, turn_of,
};
use super::status::{State, Statistics, Status, Unavailable};
use super::transition::{Found, Transition};
use super::view::{View, covering};
use super::wall;

/// The largest lead of an answer over the kernel's clock, in nanoseconds. A larger lead means that
/// the process is in another time namespace (setns(2)).
///
/// No answer is later than the end of the last segment, which was made during the previous segment.
/// So the lead is at most the length of two segments. A segment's rate can be 25 % above the
/// measured rate, so two segments of 16 ms advance the clock by at most 40 ms. The rest of the
/// limit allows for a lead that existed before the first of the two segments, and that this segment
/// had to remove.
const MAX_LEAD: u64 = 4 * segment::LONGEST;

/// 1 ms. If two reads come within this time while no segment is in force, the second one makes a
/// segment.
const SOON: u64 = 1_000_000;

/// The shortest time, in nanoseconds, that a read of the wall clock assumes for a turn. A turn is
/// one read of each of the kernel's two clocks (see [`wall`]). If these two reads give an offset
/// that is more than about a turn from the known one, the offset is measured again.
const SHORTEST_TURN: u64 = 500;

/// The longest time for which [`CounterClock::prepare_for_sandbox`] reads, in nanoseconds. A
/// calibration takes 11 ms, and more on a busy machine.
const LONGEST_PREPARATION: u64 = 50_000_000;

/// A clock that reads a counter and follows the kernel's clock.
///
/// The members are ordered for the sparse read. This read needs only the first members and the
/// first words of one of the latch's two copies. With the first copy these are in two cache lines
/// of 64 bytes, and with the second one in three. The alignment equals the size of the static
/// clock, so that the clock is within one page: see `CLOCK`.
#[repr(C, align(512))]
pub(crate) struct CounterClock<S> {
    high_water: HighWater,
    /// How often the vDSO answered instead of the counter. If threads count at the same time, some
    /// counts are lost.
    vdso_reads: AtomicUsize,
    latch: Latch<WORDS>,
    /// The values of the fields of the same names in [`Statistics`].
    steps: AtomicUsize,
    wall_steps: AtomicUsize,
    forbids_system_calls: AtomicBool,
    /// Whether the hypervisor's statement about the counter is sufficient.
    trusts_hypervisor: AtomicBool,
    source: S,
}

#[inline]
fn count(counter: &AtomicUsize) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

/// Returns whether a time is at least [`SOON`] after the high-water mark. The mark can be later
/// than the time: then the result is `false`.
#[inline]
fn is_long_after(now: u64, high_water: u64) -> bool {
    now.wrapping_sub(high_water).wrapping_sub(SOON) as i64 >= 0
}

/// Returns whether `answer` is so far ahead of `now`, the kernel's time, that it must come from
/// another time namespace.
fn is_foreign(answer: u64, now: u64) -> bool {
    answer > now.saturating_add(MAX_LEAD)
}

impl<S: Source> CounterClock<S> {
    pub(crate) const fn new(source: S) -> Self {
        Self {
            high_water: HighWater::new(),
            vdso_reads: AtomicUsize::new(0),
            latch: Latch::new(),
            steps: AtomicUsize::new(0),
            wall_steps: AtomicUsize::new(0),
            forbids_system_calls: AtomicBool::new(false),
            trusts_hypervisor: AtomicBool::new(false),
            source,
        }
    }

    /// Calls `time` with the words of the segment, the monotonic time, and the nanoseconds since
    /// the start of the segment. Returns the result, or `None` if a fast read cannot answer.
    #[inline]
    fn fast<T>(
        &self,
        ticks: impl FnOnce(&S) -> u64,
        time: impl FnOnce(&Words, u64, u64) -> T,
    ) -> Option<T> {
        let (nanos, answer) = self.latch.read(|_, [words, _]| {
            let [start, passed] = fresh::<S>(words, || ticks(&self.source))?;
            let nanos = start.wrapping_add(passed);
            Some((nanos, time(words, nanos, passed)))
        })?;
        (nanos >= self.high_water.get()).then_some(answer)
    }

    /// Returns the monotonic time in nanoseconds, if a fast read can answer.
    #[inline]
    pub(crate) fn monotonic(&self, ticks: impl FnOnce(&S) -> u64) -> Option<u64> {
        self.fast(ticks, |_, nanos, _| nanos)
    }

    /// Returns the time since the Epoch, if a fast read can answer.
    #[inline]
    pub(crate) fn realtime(&self, ticks: impl FnOnce(&S) -> u64) -> Option<Timespec> {
        self.fast(ticks, |words, _, passed| {
            realtime_after(words[WALL].load(), passed)
        })
    }

    /// Returns the monotonic time from a slow read, or `None` if a sandbox denies the clock.
    ///
    /// This function is always inlined into its caller, the slow read of a clock type: with a call
    /// in between, a read without the counter took 0.3 ns longer.
    #[allow(clippy::inline_always, reason = "the caller is cold")]
    #[inline(always)]
    pub(crate) fn slow_monotonic(&self) -> Option<u64> {
        // A read without the counter takes 25 ns. When this function called `or_else` instead of
        // using `if let`, such a read took 2 ns longer, because `or_else` is not inlined here.
        if let Some(now) = self.unavailable(Source::monotonic, |now, _| now) {
            return Some(now);
        }
        let answer = if let Some(answer) = self.sparse() {
            answer
        } else {
            self.updating()?
        };
        Some(answer.nanos)
    }

    /// Returns the time since the Epoch from a slow read.
    pub(crate) fn slow_realtime(&self) -> Option<i64> {
        let monotonic = |time: i64, words: &Words| time.wrapping_sub(offset_of(words)) as u64;
        if let Some(time) = self.unavailable(Source::realtime, monotonic) {
            return Some(time);
        }
        let answer = if let Some(answer) = self.sparse() {
            answer
        } else {
            self.updating()?
        };
        let nanos = answer.nanos as i64;
        let Some(now) = answer.asked else {
            return Some(nanos.wrapping_add(answer.offset));
        };
        // No segment is in force, so this read must find out whether the wall clock was set.
        let realtime = self.source.realtime()?;
        if answer.is_off {
            // The reads before this one returned the kernel's time, because the counter was
            // unavailable, and so does this one. The offset does not follow a step of the wall
            // clock that is smaller than the offset's own error. After such a step, the offset
            // could give this read a time that is earlier than the times of those reads.
            return Some(realtime);
        }
        let step = realtime
            .wrapping_sub(now as i64)
            .wrapping_sub(answer.offset);
        let turn = answer.turn.clamp(SHORTEST_TURN, OLD) as i64;
        if (-turn..=2 * turn).contains(&step) {
            return Some(nanos.wrapping_add(answer.offset));
        }
        Some(nanos.wrapping_add(self.follow_step()?))
    }

    /// Measures the offset, and publishes it if the wall clock was set. Returns the offset for this
    /// read: if possible the published one, so that later reads use the same offset.
    ///
    /// The offset is published before a read uses it. Otherwise the read could return a time that
    /// is ahead of the segment that another caller is making with another offset.
    #[cold]
    #[inline(never)]
    fn follow_step(&self) -> Option<i64> {
        let View {
            version,
            state,
            ticks,
            ..
        } = self.view();
        let turn = state.turn();
        let possible = wall::measure(&self.source)?;
        let is_kept = wall::is_kept(state.offset, &possible, turn);
        let offset = wall::best(&possible, turn);
        // Until the current segment begins, the previous one is in force. An update of the latch
        // would overwrite the previous segment, so a later read has to publish the new offset.
        if is_kept || state.segment.begins_soon(ticks) {
            return Some(state.offset);
        }
        let stepped = ClockState { offset, ..state };
        if self.latch.update(version, &stepped.to_words()) {
            if state.has_offset() {
                count(&self.wall_steps);
            }
            return Some(offset);
        }
        let now = self.source.monotonic()?;
        let state = self.load();
        // After an update that was cut off, nothing can be published any more: see `latch`. So the
        // read uses the offset that it has measured.
        let is_lost = version.has_writer() && now.wrapping_sub(state.sampled.nanos) > OLD;
        Some(if is_lost { offset } else { state.offset })
    }

    /// Returns the vDSO's answer while the counter is not used and it is not yet time to ask the
    /// kernel about it again. `monotonic` computes the monotonic time of the answer.
    #[inline]
    fn unavailable<T: Copy>(
        &self,
        read: impl FnOnce(&S) -> Option<T>,
        monotonic: impl FnOnce(T, &Words) -> u64,
    ) -> Option<T> {
        self.latch.read(|_, [words, _]| {
            if !is_off(words) {
                return None;
            }
            let answer = read(&self.source)?;
            if is_before_check(words, monotonic(answer, words)) {
                Some(answer)
            } else {
                None
            }
        })
    }

    /// Returns the vDSO's answer to a sparse read, which has no segment and makes none.
    ///
    /// Making a segment costs as much as several reads of the vDSO. A program that reads only once
    /// in a while would pay this cost for each read, and use each segment once. So only the second
    /// read within 1 ms makes a segment. The tick alone does not prove that the last segment has
    /// ended, because the counter can have jumped. The vDSO's answer must confirm this.
    #[inline]
    fn sparse(&self) -> Option<SlowAnswer> {
        let answer = self.latch.read(|_, [words, _]| {
            if !may_be_sparse(words, || self.source.ticks()) {
                return None;
            }
            let now = self.source.monotonic()?;
            if !is_sparse(words, now) {
                return None;
            }
            Some(SlowAnswer {
                nanos: now,
                offset: offset_of(words),
                turn: turn_of(words),
                asked: Some(now),
                is_off: false,
            })
        })?;
        let now = answer.nanos;
        let high_water = self.high_water.get();
        if !is_long_after(now, high_water) || !self.high_water.replace(high_water, now) {
            return None;
        }
        count(&self.vdso_reads);
        Some(answer)
    }

    #[cold]
    #[inline(never)]
    fn updating(&self) -> Option<SlowAnswer> {
        let mut view = self.view();
        let mut offset = view.state.offset;
        if let Some(nanos) = view.segment.map(|segment| segment.time(view.ticks)) {
            if view.state.phase == Phase::Running
                && view.state.segment.is_ending(view.ticks)
                && self.update(&mut view, nanos, true)
            {
                offset = view.state.offset;
            }
            return Some(SlowAnswer {
                nanos: nanos.max(self.high_water.get()),
                offset,
                turn: 0,
                asked: None,
                is_off: false,
            });
        }
        let (now, answer) = self.ask_kernel(&view.state, view.ticks)?;
        let is_soon = !is_long_after(now, self.high_water.get());
        // The mark is raised before the update, because the new segment may begin earlier than this
        // answer.
        let answer = self.high_water.raise(answer);
        let mut is_off = view.state.is_off();
        // If the current segment begins soon after the tick, this CPU's counter is only a little
        // behind the writer's, so the current segment is kept. If it begins later, the counter has
        // probably been set back, and will reach the ticks of the current segment a second time.
        // That segment must not come into force again, so a new one may replace it.
        //
        // An answer that is ahead of the kernel's clock makes a new segment wanted, because the new
        // segment removes this lead gradually. Without a segment the time would stand still until
        // the kernel's clock has caught up.
        if !view.state.segment.begins_soon(view.ticks)
            && self.update(&mut view, now, is_soon || answer > now)
        {
            offset = view.state.offset;
            is_off = view.state.is_off();
        }
        count(&self.vdso_reads);
        Some(SlowAnswer {
            nanos: answer,
            offset,
            turn: view.state.turn(),
            asked: Some(now),
            is_off,
        })
    }

    pub(crate) fn load(&self) -> ClockState {
        ClockState::from_words(&self.latch.snapshot().1)
    }

    fn view(&self) -> View {
        View::take(&self.latch, &self.source)
    }

    /// Returns the segment that covers a tick.
    pub(crate) fn segment_at(&self, ticks: u64) -> Option<Segment> {
        self.latch
            .read(|version, words| covering(ticks, version, words))
    }

    fn time_at(&self, ticks: u64) -> Option<u64> {
        Some(self.segment_at(ticks)?.time(ticks))
    }

    /// Returns the time of a tick, once the counter is measured.
    pub(crate) fn nanos_of(&self, ticks: u64) -> Option<u64> {
        self.time_at(ticks).or_else(|| {
            // Only reads make segments and samples, and a program that only converts ticks makes no
            // other reads. So the conversion makes a slow read.
            self.slow_monotonic()?;
            self.time_at(ticks).or_else(|| self.load().nanos_of(ticks))
        })
    }

    /// Returns the kernel's time, and the answer of a read whose tick no segment covers. The answer
    /// is not earlier than previous answers, unless the process entered another time namespace.
    fn ask_kernel(&self, state: &ClockState, ticks: u64) -> Option<(u64, u64)> {
        let high_water = self.high_water.get();
        let held = state.segment.held(ticks);
        // The kernel's clock is read after `high_water` and `held` are known. So if one of these
        // two is ahead of the kernel's time by more than `MAX_LEAD`, the process is in another time
        // namespace.
        let now = self.source.monotonic()?;
        if is_foreign(high_water, now) {
            self.high_water.replace(high_water, now);
        }
        let times = [high_water, held]
            .into_iter()
            .filter(|&nanos| !is_foreign(nanos, now));
        let answer = times.fold(now, u64::max);
        Some((now, answer))
    }

    /// Publishes the next state, if it is due and no other caller was faster. Returns whether it
    /// did.
    fn update(&self, view: &mut View, now: u64, is_wanted: bool) -> bool {
        let View {
            version,
            ref mut state,
            ticks,
            segment,
        } = *view;
        if version.has_writer() {
            return false;
        }
        let mut transition = Transition {
            source: &self.source,
            state,
            now,
            is_wanted,
            may_check: !self.forbids_system_calls.load(Relaxed),
            trusts_hypervisor: self.trusts_hypervisor.load(Relaxed),
            found: Found::default(),
        };
        if transition.next_state().is_none() {
            return false;
        }
        let found = transition.found;
        if state.phase != Phase::Running && segment.is_none() {
            let held = state.segment.held(ticks);
            let is_over = state.phase == Phase::Off && held <= now;
            let is_forgotten = is_over || is_foreign(held, now);
            state.segment = Segment::empty(if is_forgotten { 0 } else { held });
        }
        if !self.latch.update(version, &state.to_words()) {
            return false;
        }
        if found.step {
            count(&self.steps);
        }
        if found.wall_step {
            count(&self.wall_steps);
        }
        true
    }

    pub(crate) fn state(&self) -> State {
        // The high-water mark is loaded before the view is taken. If it were loaded afterwards,
        // another thread could meanwhile have raised it to a later answer of the vDSO, and the time
        // between the view and that answer would be counted as a lead.
        let high_water = self.high_water.get();
        let view = self.view();
        let bound = match view.segment {
            Some(segment) => {
                let lead = high_water.saturating_sub(segment.time(view.ticks));
                view.error(&segment, &self.source)
                    .map(|error| error.saturating_add(lead))
            }
            None => self
                .ask_kernel(&view.state, view.ticks)
                .map(|(now, answer)| answer - now),
        };
        let error_bound = bound.map_or(Duration::MAX, Duration::from_nanos);
        State {
            status: view.status(),
            error_bound,
            frequency: view.state.frequency(),
            statistics: self.statistics(&view.state),
        }
    }

    pub(crate) fn statistics(&self, state: &ClockState) -> Statistics {
        Statistics {
            steps: self.steps.load(Relaxed) as u64,
            wall_steps: self.wall_steps.load(Relaxed) as u64,
            vdso_reads: self.vdso_reads.load(Relaxed) as u64,
            ..state.statistics()
        }
    }

    /// Returns the offset that the next reads of the wall clock will use, in nanoseconds.
    pub(crate) fn offset(&self) -> Option<i64> {
        let View { state, segment, .. } = self.view();
        if segment.is_some() {
            return Some(state.offset);
        }
        self.slow_realtime()?; // makes segments, which a program that only converts needs
        let state = self.load();
        let turn = state.turn();
        let possible = wall::measure(&self.source)?;
        if wall::is_kept(state.offset, &possible, turn) {
            return Some(state.offset);
        }
        Some(wall::best(&possible, turn))
    }

    /// Returns an error if the counter will not be used. The reason comes from the kernel, or from
    /// the rate that was measured.
    pub(crate) fn check(&self) -> Result<(), Unavailable> {
        let state = self.load();
        if self.forbids_system_calls.load(Relaxed) {
            return match (state.phase, state.unavailable) {
                (Phase::Off, Some(reason)) => Err(reason),
                (Phase::Idle, _) => Err(Unavailable::SystemCallsForbidden),
                _ => Ok(()),
            };
        }
        if state.phase == Phase::Off && state.unavailable == Some(Unavailable::Frequency) {
            return Err(Unavailable::Frequency);
        }
        self.source.detect(self.trusts_hypervisor.load(Relaxed))?;
        Ok(())
    }

    /// Returns whether the clock has been read. The first read asks the kernel for its clock
    /// source, so whether the hypervisor is trusted must be known before that read.
    pub(crate) fn was_read(&self) -> bool {
        self.load().has_offset()
    }

    /// Trusts the hypervisor's statement about the counter, unless the clock was read before.
    /// Returns whether the statement is trusted.
    pub(crate) fn trust_hypervisor(&self) -> bool {
        if !self.was_read() {
            self.trusts_hypervisor.store(true, Relaxed);
        }
        self.trusts_hypervisor.load(Relaxed)
    }

    /// Reads until the counter is measured, and then forbids the clock's system calls. Returns the
    /// status afterwards.
    pub(crate) fn prepare_for_sandbox(&self) -> Status {
        if !self.forbids_system_calls.load(Relaxed) {
            self.read_until_measured();
            self.forbids_system_calls.store(true, Relaxed);
        }
        // If no read has decided yet whether the counter is used, this read decides it. It does not
        // ask the kernel, because the clock's system calls are forbidden now.
        self.slow_monotonic();
        self.view().status()
    }

    /// Reads until the counter is used or unavailable, for at most [`LONGEST_PREPARATION`]. Returns
    /// `None` if a sandbox denies the clock.
    fn read_until_measured(&self) -> Option<()> {
        let start = self.source.monotonic()?;
        loop {
            self.slow_monotonic()?;
            let is_measured = matches!(self.view().status(), Status::Used | Status::Unavailable(_));
            let passed = self.source.monotonic()?.wrapping_sub(start);
            if is_measured || passed >= LONGEST_PREPARATION {
                return Some(());
            }
        }
    }
}

/// The answer of a slow read.
struct SlowAnswer {
    /// The monotonic time.
    nanos: u64,
    /// The offset that wall-clock reads from the segment use.
    offset: i64,
    /// [`ClockState::turn`].
    turn: u64,
    /// The kernel's time, if no segment covers the tick.
    asked: Option<u64>,
    /// Whether the counter is unavailable, and no segment is in force.
    is_off: bool,
}

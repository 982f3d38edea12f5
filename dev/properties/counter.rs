//! Properties of the counter clock. Its source is compiled again, for simulated machines.

mod cases;

#[allow(
    dead_code,
    unreachable_pub,
    reason = "the crate exports it and uses the rest"
)]
#[path = "../../crates/vdso-time-counter/src/engine/mod.rs"]
mod engine;

mod arithmetic {
    use std::cell::Cell;

    use vdso_time::__private::compare;
    use vdso_time::ReadCost::{FunctionCall, SystemCall, Unknown};

    use crate::engine::sample::{Burst, Interval};
    use crate::engine::source::{Keeper, Source};
    use crate::engine::status::Unavailable;
    use crate::engine::{segment, state, wall};

    /// Answers with these ticks and times in turn.
    struct Answers<'a>(Cell<&'a [u64]>);

    impl Answers<'_> {
        fn next(&self) -> u64 {
            let (first, others) = self.0.get().split_first().unwrap();
            self.0.set(others);
            *first
        }
    }

    impl Source for Answers<'_> {
        fn ticks(&self) -> u64 {
            self.next()
        }

        fn ticks_ordered(&self) -> u64 {
            self.next()
        }

        fn monotonic(&self) -> Option<u64> {
            Some(self.next())
        }

        fn realtime(&self) -> Option<i64> {
            None
        }

        fn raw(&self) -> Option<i64> {
            None
        }

        fn detect(&self, _: bool) -> Result<Keeper, Unavailable> {
            Ok(Keeper::Kernel)
        }
    }

    /// Preempts the reader in the first sample for 2^32 ns, which 64 bits cannot hold times a rate.
    #[test]
    fn a_burst_drops_a_sample_that_a_preemption_of_any_length_made_late() {
        const LONG: u64 = 1 << 32;
        let answers = [[0, LONG + 10, LONG + 20], [LONG + 30, LONG + 40, LONG + 50]];
        let source = Answers(Cell::new(answers.as_flattened()));
        let burst = Burst::take(&source, 2, Some(1 << 32), 0).unwrap();
        assert_eq!((burst.sample.ticks, burst.cost), (LONG + 30, 20));
    }

    /// Tries every wall time that the kernel allows, and 1698 to 1970.
    #[test]
    fn a_wall_time_is_the_segments_start_and_what_has_passed() {
        const SECOND: i64 = 1_000_000_000;
        const LATEST: i64 = 8_277_292_036 * SECOND; // TIME_SETTOD_SEC_MAX of linux/time64.h
        for start in [
            0,
            1,
            SECOND - 1,
            SECOND,
            -1,
            -SECOND,
            -(SECOND << 33),
            LATEST - 1,
            LATEST,
        ] {
            for passed in [0, 1, 20_000_000, SECOND - 1] {
                let time = state::realtime_after(state::wall_word(start), passed as u64);
                assert_eq!(
                    time,
                    vdso_time::Timespec::from_nanos(start + passed),
                    "{start} + {passed}"
                );
            }
        }
    }

    #[test]
    fn conversions_round_and_saturate() {
        for (ticks, nanos) in [(0, 0), (1, 3), (2, 7), (3, 10), (u64::MAX, u64::MAX)] {
            assert_eq!(segment::scale(ticks, 10, 3), nanos);
        }
        assert_eq!(segment::scale(1_000_000_000, 2, 3), 666_666_667);
        for (rate, hertz) in [
            (1 << 32, 1_000_000_000),
            (3 << 32, 333_333_333),
            (3 << 31, 666_666_667),
        ] {
            assert_eq!(segment::frequency(rate), hertz);
        }
        for (change, ticks, rate) in [
            (-3, 1 << 32, -3),
            (7, 2, 7 << 31),
            (1 << 40, 3 << 30, (1 << 42) / 3),
            (i64::MIN, 1 << 63, -1 << 32),
        ] {
            assert_eq!(segment::rate_of(change, ticks), rate);
        }
        // A correction is at most a quarter of the rate.
        for (error, change) in [(1 << 10, 1 << 22), (1 << 19, 1 << 30), (-1 << 19, -1 << 30)] {
            assert_eq!(segment::correction(error, 1 << 20, 1 << 32), change);
        }
    }

    /// Lists how long a vDSO read, a system call and a read of the measuring clock take, that
    /// clock's unit, and the answer.
    #[test]
    fn a_read_is_much_faster_than_a_system_call_if_it_takes_two_thirds_at_most() {
        for ([vdso, kernel, clock, unit], expected) in [
            ([20, 36, 20, 1], FunctionCall),
            ([200, 320, 200, 1], FunctionCall),
            ([200, 280, 200, 1], Unknown),
            ([20, 200, 20, 1], FunctionCall),
            ([20, 26, 20, 1], Unknown),
            ([200, 200, 200, 1], SystemCall),
            // The vDSO looks in vain, and then makes the system call.
            ([210, 200, 210, 1], SystemCall),
            // The hypervisor traps the counter in both.
            ([2_000, 2_100, 2_000, 1], SystemCall),
            // A clock that the vDSO does not read, beside one that it does.
            ([210, 200, 20, 1], SystemCall),
            // A coarse clock, if the vDSO cannot read the clock source.
            ([5, 100, 1_000, 1], FunctionCall),
            ([5, 100, 4_500, 1], Unknown),
            ([105, 100, 1_000, 1], Unknown),
            // 24 MHz, 10 MHz, 1 MHz, and a coarse clock
            ([25, 150, 25, 42], FunctionCall),
            ([300, 300, 300, 42], SystemCall),
            ([600, 600, 600, 100], SystemCall),
            ([300, 300, 300, 1_000], Unknown),
            ([20, 200, 20, 4_000_000], Unknown),
        ] {
            for start in 0..200 {
                let now = Cell::new(start * 7);
                let calls = Cell::new(0);
                let pass = |nanos| {
                    calls.set(calls.get() + 1);
                    now.set(now.get() + nanos + (calls.get() * calls.get() / 2 + start) % 3); // no two take the same time
                    true
                };
                let read = || pass(clock).then(|| now.get() / unit * unit);
                let found = compare(read, || pass(vdso), || pass(kernel));
                assert!(calls.get() <= 16, "{calls:?} calls");
                let is_right = found == expected || found == Unknown && unit > 1;
                assert!(
                    is_right,
                    "{vdso} and {kernel} in units of {unit}, measured with a clock that takes {clock}: {found:?}"
                );
            }
        }
        assert_eq!(compare(|| Some(1), || false, || true), Unknown);
    }

    #[test]
    fn an_offset_is_kept_within_the_time_of_a_turn_around_the_possible_ones() {
        let measured = |shortest| Interval {
            low: -10,
            high: 20,
            shortest,
        };
        for (offset, is_kept) in [(-61, false), (-60, true), (70, true), (71, false)] {
            assert_eq!(wall::is_kept(offset, &measured(50), 0), is_kept, "{offset}");
            assert_eq!(wall::is_kept(offset, &measured(0), 50), is_kept, "{offset}");
        }
        let any = Interval {
            low: i64::MIN,
            high: i64::MAX,
            shortest: u64::MAX,
        };
        assert!(wall::is_kept(i64::MIN, &any, 0) && wall::is_kept(i64::MAX, &any, 0));
        // The middle, unless each turn was interrupted.
        assert_eq!(
            (wall::best(&measured(30), 30), wall::best(&measured(30), 29)),
            (5, -10)
        );
    }

    #[test]
    fn a_segment_of_any_rate_has_a_tick() {
        for rate in (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit, 0]) {
            let span = segment::longest_span(rate);
            assert!(span.is_power_of_two());
            let fresh = segment::Segment {
                start: 0,
                nanos: 0,
                rate,
                span,
            }
            .fresh_span();
            assert_eq!(
                fresh.next_power_of_two(),
                span,
                "a state stores the fresh span"
            );
            assert!(!segment::is_possible(rate) || span < 1 << 32);
        }
    }
}

mod counter {
    mod accuracy;
    mod calibration;
    mod guarantees;
    mod hostile;
    mod namespaces;
    mod paravirtual;
    mod slews;
    mod ticks;
    mod unavailable;
    mod wall;
    mod witness;
    mod world;
}

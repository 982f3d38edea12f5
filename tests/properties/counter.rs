//! Properties of the counter clock. Its source is compiled again, for simulated machines.

mod cases;

#[path = "../../src/counter"]
mod source {
    pub(crate) mod bounded;
    pub(crate) mod clock;
    mod discipline;
    mod high_water;
    #[allow(unreachable_pub, reason = "public in the crate")]
    mod history;
    mod latch;
    mod offset;
    pub(crate) mod sample;
    mod segment;
    mod state;
    #[allow(unreachable_pub, reason = "public in the crate")]
    pub(crate) mod status;

    #[test]
    fn a_segment_of_any_rate_has_a_tick() {
        for rate in (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit, 0]) {
            assert!(segment::span(rate).is_power_of_two());
            assert!(!segment::is_possible(rate) || segment::span(rate) < 1 << 32);
        }
    }
}

mod counter {
    mod accuracy;
    mod hostile;
    mod machines;
    mod slews;
    mod wall;
    mod witness;
    mod world;
}

//! A process that comes into another time namespace, whose clock is ahead or behind.

use proptest::prelude::*;

use crate::cases::check;
use crate::life::machine;
use crate::status::Status;
use crate::witness::Witness;
use crate::world::{MILLI, Machine};

/// The longest line, and what is left of the one before.
const LINE: u128 = 17 * MILLI;
/// Until the counter is used.
const CALIBRATION: u128 = 13 * MILLI;

/// By how many nanoseconds the namespace's clock is ahead.
fn ahead() -> impl Strategy<Value = i64> {
    prop_oneof![
        (-4_000..4_000_i64).prop_map(|seconds| seconds * 1_000_000_000),
        (-6_000..6_000_i64).prop_map(|millis| millis * 1_000_000),
        (-200..200_i64).prop_map(|millis| millis * 1_000_000),
        -20_000_000..20_000_000_i64,
    ]
}

/// From the line's end on, every read is within the bound, and the time does not go back again. A
/// calibration that is under way may make one wrong line.
#[test]
fn the_clock_of_another_time_namespace_is_followed_within_the_error_bound() {
    let cases = (machine(), ahead(), 0..30_u128, any::<bool>());
    check(2_000, &cases, |(machine, ahead, millis, is_off)| {
        let witness = Witness::new(machine);
        if is_off {
            witness.world.verdict.set(Err(Status::ClockSource));
        }
        let is_measured = millis > 15;
        witness.watch(if is_measured { 8 * CALIBRATION } else { 0 } + millis * MILLI);
        witness.is_calm.set(false);
        witness.is_ordered.set(false);
        witness.world.enter_namespace(ahead);
        witness.watch(if is_measured { LINE } else { 2 * LINE + 4 * CALIBRATION });
        witness.forget();
        witness.is_calm.set(true);
        witness.is_ordered.set(true);
        witness.watch(8 * LINE);
        assert_eq!(witness.settled(), if is_off { Status::ClockSource } else { Status::Used });
        true
    });
}

/// A clock that is a bit behind is waited for. One that is further behind is followed back.
#[test]
fn the_time_stands_still_for_64_ms_at_most() {
    check(500, &(machine(), 1..200_i64), |(machine, millis)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.watch(8 * CALIBRATION);
        let before = witness.read().unwrap();
        witness.is_calm.set(false);
        // The last line may end 16 ms later.
        witness.is_ordered.set(millis < 64 - 17);
        witness.world.enter_namespace(-millis * 1_000_000);
        while witness.status() == Status::Used {
            witness.watch(MILLI / 10);
        }
        assert!(witness.state().error_bound <= 64_000_000);
        if millis > 64 {
            assert!(witness.read().unwrap() < before, "{millis} ms are waited for");
        }
        witness.is_calm.set(true);
        witness.watch(8 * LINE);
        true
    });
}

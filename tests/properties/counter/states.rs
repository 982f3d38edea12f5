//! What the clock says of itself: all of one moment.

use crate::cases::check;
use crate::life::machine;
use crate::status::{State, Status};
use crate::witness::Witness;
use crate::world::{MICRO, Machine};

/// However long the caller is interrupted in between.
#[test]
fn a_state_is_of_one_moment() {
    let ended = check(100, &machine(), |machine| {
        let witness = Witness::new(Machine { interrupts: 100_000, ..machine });
        let mut ended = 0;
        for _ in 0..5_000 {
            witness.world.pass(u128::from(witness.world.random(1_000)) * MICRO);
            witness.read();
            let State { status, error_bound, frequency } = witness.state();
            match status {
                Status::Used => assert!(error_bound >= 30 && frequency.is_some()),
                Status::Stale => assert!(frequency.is_some()),
                _ => assert_eq!(frequency, None, "{status}"),
            }
            ended += u32::from(status == Status::Stale);
        }
        ended > 0
    });
    assert!(ended > 0.5, "a line ended before it was asked for in {ended} of the machines");
}

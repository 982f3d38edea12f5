//! What the clock says of itself: all of one moment, and as the kernel does.

use proptest::prelude::*;

use crate::cases::check;
use crate::life::machine;
use crate::status::{State, Status};
use crate::witness::Witness;
use crate::world::{MICRO, Machine, SECOND};

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

#[test]
fn a_check_is_the_kernels_verdict_and_changes_nothing() {
    let verdicts = [Ok(()), Err(Status::NoCounter), Err(Status::Denied), Err(Status::ClockSource)];
    check(100, &(machine(), prop::sample::select(verdicts.to_vec())), |(machine, verdict)| {
        let witness = Witness::new(Machine { interrupts: 0, ..machine });
        witness.world.verdict.set(verdict);
        assert_eq!(witness.check(), verdict);
        assert_eq!((witness.status(), witness.world.read_at.get()), (Status::Calibrating, 0));
        witness.watch(SECOND / 10);
        assert_eq!(witness.check(), verdict);
        assert_eq!(witness.settled(), verdict.err().unwrap_or(Status::Used));
        true
    });
}

#[test]
fn a_check_of_a_counter_that_was_given_up_says_why() {
    check(50, &machine(), |machine| {
        let hertz = machine.hertz.max(20_000_000);
        let witness = Witness::new(Machine { hertz, stated: Some(hertz * 2), ..machine });
        assert_eq!(witness.check(), Ok(()));
        witness.watch(SECOND / 10);
        assert_eq!((witness.status(), witness.check()), (Status::Frequency, Err(Status::Frequency)));
        true
    });
}

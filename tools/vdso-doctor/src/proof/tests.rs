//! What follows from counts and costs.

use vdso_time::{ClockId, FallbackReason, LocateError};

use super::{Evidence, Examination, Place, Reading, worst_place};
use crate::platform::Supervisor;
use crate::read::Read;

/// Returns the reading that 200 calls would give if they found `found`.
pub(crate) fn reading(read: Read, found: &str) -> Reading {
    let proved = |place, entered| (place, Evidence::Proved, Some(entered), None);
    let seen = |place, evidence| (place, evidence, None, None);
    let routed = |reason| (Place::Kernel, Evidence::Routed, None, Some(reason));
    let (place, evidence, entered, reason) = match found {
        "user space" => proved(Place::UserSpace, 0),
        "kernel" => proved(Place::Kernel, 200),
        "sometimes" => proved(Place::Kernel, 3),
        "refused" => seen(Place::Kernel, Evidence::Refused),
        "libc" => seen(Place::Unknown, Evidence::Libc),
        "unknown" => seen(Place::Unknown, Evidence::None),
        "no vDSO" => routed(FallbackReason::NoVdso(LocateError::Absent)),
        "unmapped vDSO" => routed(FallbackReason::NoVdso(LocateError::Unmapped)),
        "blanked name" => routed(FallbackReason::BlankedNames),
        "no symbol" => routed(FallbackReason::NoSymbol),
        other => panic!("nothing is called {other}"),
    };
    let (reads, error) = (entered.map(|_| 200), Some("EINVAL".into()));
    Reading {
        place,
        evidence,
        reads,
        entered,
        error,
        reason,
        ..Reading::new(read)
    }
}

#[test]
fn one_read_that_entered_the_kernel_is_a_proof_and_none_is_one_if_every_cpu_was_tried() {
    for (entered, is_every_cpu, place, evidence) in [
        (0, true, Place::UserSpace, Evidence::Proved),
        (0, false, Place::Unknown, Evidence::None),
        (3, true, Place::Kernel, Evidence::Proved),
        (3, false, Place::Kernel, Evidence::Proved),
        (200, true, Place::Kernel, Evidence::Proved),
    ] {
        let mut seen = Reading::new(Read::Time);
        seen.prove(200, entered, is_every_cpu);
        assert_eq!(
            (seen.place, seen.evidence),
            (place, evidence),
            "{entered} {is_every_cpu}"
        );
    }
}

#[test]
fn only_what_is_known_counts_and_the_kernel_is_the_worst_place() {
    let [user, kernel, unknown] = [Place::UserSpace, Place::Kernel, Place::Unknown];
    let under = [Supervisor::Emulator, Supervisor::Valgrind].map(Some);
    for (supervisor, found, expected) in [
        (None, &["user space"][..], user),
        (None, &["kernel", "user space"], kernel),
        (None, &["unknown", "no symbol"], kernel),
        (None, &["user space", "unknown"], unknown),
        (None, &["refused"], unknown),
        (Some(Supervisor::GuestKernel), &["kernel"], kernel),
        // A system call there says nothing about the kernel's vDSO.
        (under[0], &["kernel"], unknown),
        (under[1], &["no symbol"], unknown),
        (under[0], &["user space"], user),
        (None, &[], user),
    ] {
        let reads: Vec<_> = (0..)
            .map(ClockId::from_raw)
            .map(Read::ClockGettime)
            .take(found.len())
            .collect();
        let readings: Vec<_> = reads
            .iter()
            .zip(found)
            .map(|(read, found)| reading(*read, found))
            .collect();
        assert_eq!(
            worst_place(&readings, supervisor, &reads),
            expected,
            "{supervisor:?} {found:?}"
        );
    }
    assert_eq!(
        worst_place(&[], None, &[Read::Time]),
        unknown,
        "a read that was not made"
    );
}

#[test]
fn reads_of_both_places_or_a_cheap_system_call_are_of_two_states() {
    for (entered, ns, expected) in [
        (0, 20.0, false),
        (200, 210.0, false),
        // A vDSO that asks the kernel, and a system call that a sandbox made slower.
        (200, 21.0, false),
        (200, 19.0, true),
        (0, 19.0, false),
        (3, 210.0, true),
    ] {
        let mut seen = Reading {
            ns: Some(ns),
            syscall_ns: Some(200.0),
            ..Reading::new(Read::Time)
        };
        seen.prove(200, entered, true);
        let seen = Examination {
            readings: vec![seen],
            ..Examination::default()
        };
        assert_eq!(seen.is_of_two_states(), expected, "{entered} {ns}");
    }
}

//! The conclusions from counts and costs.

use vdso_time::{ClockId, FallbackReason, LocateError};

use super::{Check, Evidence, Location, Measurement, worst_location};
use crate::call::Call;
use crate::count::Count;
use crate::platform::Supervisor;

/// Returns a measurement of 200 calls with this result.
pub(crate) fn measurement(read: Call, found: &str) -> Measurement {
    let proved = |location, entered| (location, Evidence::Proved, Some(entered), None);
    let seen = |location, evidence| (location, evidence, None, None);
    let routed = |reason| (Location::Kernel, Evidence::Routed, None, Some(reason));
    let (location, evidence, entered, reason) = match found {
        "user space" => proved(Location::UserSpace, 0),
        "kernel" => proved(Location::Kernel, 200),
        "sometimes" => proved(Location::Kernel, 3),
        "refused" => seen(Location::Kernel, Evidence::Refused),
        "libc" => seen(Location::Unknown, Evidence::Libc),
        "unknown" => seen(Location::Unknown, Evidence::None),
        "no vDSO" => routed(FallbackReason::NoVdso(LocateError::Absent)),
        "unmapped vDSO" => routed(FallbackReason::NoVdso(LocateError::Unmapped)),
        "blanked name" => routed(FallbackReason::BlankedNames),
        "no symbol" => routed(FallbackReason::NoSymbol),
        other => panic!("nothing is called {other}"),
    };
    let calls = entered.map(|_| 200);
    let error = Some("EINVAL".into());
    Measurement {
        location,
        evidence,
        calls,
        entered,
        error,
        reason,
        ..Measurement::new(read)
    }
}

#[test]
fn one_read_that_entered_the_kernel_is_a_proof_and_none_is_one_if_every_cpu_was_tried() {
    for (entered, is_every_cpu, location, evidence) in [
        (0, true, Location::UserSpace, Evidence::Proved),
        (0, false, Location::Unknown, Evidence::None),
        (3, true, Location::Kernel, Evidence::Proved),
        (3, false, Location::Kernel, Evidence::Proved),
        (200, true, Location::Kernel, Evidence::Proved),
    ] {
        let mut seen = Measurement::new(Call::Time);
        seen.prove(200, entered, is_every_cpu);
        assert_eq!(
            (seen.location, seen.evidence),
            (location, evidence),
            "{entered} {is_every_cpu}"
        );
    }
}

#[test]
fn only_what_is_known_counts_and_the_kernel_is_the_worst_place() {
    let user = Location::UserSpace;
    let kernel = Location::Kernel;
    let unknown = Location::Unknown;
    let under = [Supervisor::Emulator, Supervisor::Valgrind].map(Some);
    for (supervisor, found, expected) in [
        (None, &["user space"][..], user),
        (None, &["kernel", "user space"], kernel),
        (None, &["unknown", "no symbol"], kernel),
        (None, &["user space", "unknown"], unknown),
        (None, &["refused"], unknown),
        (Some(Supervisor::GuestKernel), &["kernel"], kernel),
        // In an emulator and under valgrind, a system call says nothing about the kernel's vDSO.
        (under[0], &["kernel"], unknown),
        (under[1], &["no symbol"], unknown),
        (under[0], &["user space"], user),
        (None, &[], user),
    ] {
        let reads: Vec<_> = (0..)
            .map(ClockId::from_raw)
            .map(Call::ClockGettime)
            .take(found.len())
            .collect();
        let measurements: Vec<_> = reads
            .iter()
            .zip(found)
            .map(|(read, found)| measurement(*read, found))
            .collect();
        assert_eq!(
            worst_location(&measurements, supervisor, &reads),
            expected,
            "{supervisor:?} {found:?}"
        );
    }
    assert_eq!(
        worst_location(&[], None, &[Call::Time]),
        unknown,
        "a read that was not made"
    );
}

#[test]
fn reads_of_both_places_or_a_cheap_system_call_are_of_two_states() {
    for (entered, ns, expected) in [
        (0, 20.0, false),
        (200, 210.0, false),
        // All calls of the vDSO's function enter the kernel, so there is only one state. A call
        // takes little more than a tenth of the time of the system call that was measured for
        // comparison, because a sandbox made that system call slow.
        (200, 21.0, false),
        (200, 19.0, true),
        (0, 19.0, false),
        (3, 210.0, true),
    ] {
        let mut seen = Measurement {
            ns: Some(ns),
            syscall_ns: Some(200.0),
            ..Measurement::new(Call::Time)
        };
        seen.prove(200, entered, true);
        let seen = Check {
            measurements: vec![seen],
            ..Check::default()
        };
        assert_eq!(seen.is_of_two_states(), expected, "{entered} {ns}");
    }
}

#[test]
fn cpus_that_could_not_be_tested_are_named() {
    for (busy, expected) in [
        (&[2][..], "CPU 2 could not be tested"),
        (&[2, 3, 4, 5], "CPUs 2-5 could not be tested"),
    ] {
        let count = Count {
            cpus: vec![0, 1],
            busy: busy.to_vec(),
            ..Count::default()
        };
        let text = super::busy(&count);
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("`taskset -c 0-1 vdso-doctor`"), "{text}");
    }
}

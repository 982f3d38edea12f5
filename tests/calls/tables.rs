//! The table of every architecture is complete and consistent, on any host. The table that this
//! build calls by has libc's numbers.

use vdso_time::__private::{ALL, Abi, Shape, TARGETS};

fn is_64_bit(abi: &Abi) -> bool {
    abi.class == 2
}

#[test]
fn each_architecture_has_its_machine_its_class_and_its_version() {
    // e_machine is from the ELF specification, the version from the kernel's image.
    let expected = [
        ("x86", 3, "32", "LINUX_2.6"),
        ("x86_64", 62, "64", "LINUX_2.6"),
        ("aarch64", 183, "64", "LINUX_2.6.39"),
        ("arm", 40, "32", "LINUX_2.6"),
        ("riscv64", 243, "64", "LINUX_4.15"),
        ("s390x", 22, "64", "LINUX_2.6.29"),
        ("loongarch64", 258, "64", "LINUX_5.10"),
        ("powerpc64", 21, "64", "LINUX_2.6.15"),
    ];
    let width = |abi: &Abi| if is_64_bit(abi) { "64" } else { "32" };
    let found = ALL
        .iter()
        .map(|abi| (abi.name, abi.machine, width(abi), abi.version));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let listed = TARGETS.iter().map(|[name, width, _]| (*name, *width));
    assert_eq!(
        listed.collect::<Vec<_>>(),
        expected.map(|row| (row.0, row.2))
    );
}

#[test]
fn a_function_is_answered_by_calls_of_a_fitting_shape_and_64_bit_times_come_first() {
    for abi in ALL {
        for (name, function) in abi.functions() {
            let candidates = function.candidates.iter().map(|candidate| candidate.shape);
            let all = candidates
                .clone()
                .chain(function.syscalls.iter().map(|call| call.shape));
            for shape in all {
                let fits = match name {
                    "time" => shape != Shape::Getcpu,
                    "gettimeofday" => !matches!(shape, Shape::Time64 | Shape::Getcpu),
                    "getcpu" => shape == Shape::Getcpu,
                    _ => matches!(shape, Shape::Timespec64 | Shape::Timespec32),
                };
                let has_width = match shape {
                    Shape::Timeval64 | Shape::Time64 => is_64_bit(abi),
                    _ => !is_64_bit(abi) || !shape.is_time32(),
                };
                assert!(fits && has_width, "{}: {name}: {shape:?}", abi.name);
            }
            // A shape names a candidate.
            let shapes: Vec<_> = candidates.collect();
            let is_unique = |shape| shapes.iter().filter(|other| **other == shape).count() == 1;
            assert!(
                shapes.iter().all(|shape| is_unique(*shape)),
                "{}: {name}",
                abi.name
            );
            assert!(
                shapes.is_sorted_by_key(|shape| shape.is_time32()),
                "{}: {name}",
                abi.name
            );
            // Android leaves out the first row of 32-bit tables, and no other row has 64-bit times.
            let is_narrow = !is_64_bit(abi) && name != "getcpu";
            let rows = function.syscalls.iter().map(|call| call.shape).enumerate();
            for (row, shape) in rows.chain(shapes.iter().copied().enumerate()) {
                assert_eq!(
                    shape.is_time32(),
                    is_narrow && row != 0,
                    "{}: {name}",
                    abi.name
                );
            }
        }
        // time() can use every symbol that reads a clock.
        for candidate in abi.clock_gettime.candidates {
            let also = abi
                .time
                .candidates
                .iter()
                .any(|other| other.name == candidate.name);
            assert!(also, "{}: time() leaves out {}", abi.name, candidate.name);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
#[cfg_attr(
    miri,
    ignore = "under Miri there is no native table: the crate calls libc"
)]
fn the_native_table_fits_this_build_and_has_libcs_numbers() {
    let Some(abi) = vdso_time::__private::NATIVE else {
        return test_support::not_run_here("no table for this architecture");
    };
    assert!(ALL.iter().any(|other| std::ptr::eq(*other, abi)));
    assert_eq!(
        (abi.name, is_64_bit(abi)),
        (std::env::consts::ARCH, usize::BITS == 64)
    );
    for (name, function) in abi.functions() {
        for call in function.syscalls {
            let is_resolution = name == "clock_getres";
            let expected = match call.shape {
                // libc does not have the 64-bit calls of 32-bit kernels.
                Shape::Timespec64 if !is_64_bit(abi) && is_resolution => 406,
                Shape::Timespec64 if !is_64_bit(abi) => 403,
                Shape::Timespec64 | Shape::Timespec32 if is_resolution => libc::SYS_clock_getres,
                Shape::Timespec64 | Shape::Timespec32 => libc::SYS_clock_gettime,
                Shape::Timeval64 | Shape::Timeval32 => libc::SYS_gettimeofday,
                #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
                Shape::Time64 => libc::SYS_time,
                Shape::Getcpu => libc::SYS_getcpu,
                other => panic!("{name}: {other:?} is not a system call here"),
            };
            assert_eq!(
                u32::try_from(expected),
                Ok(call.number),
                "{name}: {:?}",
                call.shape
            );
        }
    }
    for (ours, libc) in [
        (abi.discovery.prctl, libc::SYS_prctl),
        (abi.discovery.openat, libc::SYS_openat),
        (abi.discovery.read, libc::SYS_read),
        (abi.discovery.close, libc::SYS_close),
        (abi.discovery.rt_sigprocmask, libc::SYS_rt_sigprocmask),
    ] {
        assert_eq!(u32::try_from(libc), Ok(ours));
    }
}

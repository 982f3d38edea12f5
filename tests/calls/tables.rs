//! The table of every architecture is complete and consistent, on any host. The table that this
//! build calls by has libc's numbers.

use std::collections::BTreeSet;

use vdso_time::__private::{ALL, Abi, Function, Shape};

/// Every function of every table.
fn rows() -> impl Iterator<Item = (&'static Abi, &'static str, &'static Function)> {
    ALL.iter().flat_map(|abi| abi.functions().map(|(name, function)| (*abi, name, function)))
}

fn is_64_bit(abi: &Abi) -> bool {
    abi.class == 2
}

#[test]
fn each_architecture_has_its_machine_its_class_and_its_version() {
    // e_machine and EI_CLASS are the ELF specification's. The version is that of the kernel's
    // image.
    let expected = [
        ("x86", 3, 1, "LINUX_2.6"),
        ("x86_64", 62, 2, "LINUX_2.6"),
        ("aarch64", 183, 2, "LINUX_2.6.39"),
        ("arm", 40, 1, "LINUX_2.6"),
        ("riscv64", 243, 2, "LINUX_4.15"),
        ("s390x", 22, 2, "LINUX_2.6.29"),
        ("loongarch64", 258, 2, "LINUX_5.10"),
        ("powerpc64", 21, 2, "LINUX_2.6.15"),
    ];
    let found = ALL.iter().map(|abi| (abi.name, abi.machine, abi.class, abi.version));
    assert_eq!(found.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    assert_eq!(ALL.len(), expected.len());
}

#[test]
fn a_function_is_answered_by_calls_of_a_fitting_shape() {
    for (abi, name, function) in rows() {
        let shapes = function.candidates.iter().map(|candidate| candidate.shape);
        for shape in shapes.chain(function.syscalls_in_order(false).map(|call| call.shape)) {
            let fits = match name {
                "time" => shape != Shape::Getcpu,
                "gettimeofday" => !matches!(shape, Shape::Time64 | Shape::Getcpu),
                "getcpu" => shape == Shape::Getcpu,
                _ => matches!(shape, Shape::Timespec64 | Shape::Timespec32),
            };
            assert!(fits, "{}: {name}: {shape:?}", abi.name);
            let width = if is_64_bit(abi) {
                !shape.is_time32()
            } else {
                ![Shape::Timeval64, Shape::Time64].contains(&shape)
            };
            assert!(width, "{}: {name}: {shape:?}", abi.name);
        }
    }
}

/// The first system call is the one that is left after January 2038.
#[test]
fn on_32_bit_architectures_64_bit_times_come_first() {
    for (abi, name, function) in rows().filter(|(abi, ..)| !is_64_bit(abi)) {
        let shapes = function.candidates.iter().map(|candidate| candidate.shape.is_time32());
        assert!(shapes.is_sorted(), "{}: {name}", abi.name);
        assert!(!function.syscalls[0].shape.is_time32(), "{}: {name}", abi.name);
    }
}

#[test]
fn time_can_use_every_symbol_that_reads_a_clock() {
    for abi in ALL {
        for candidate in abi.clock_gettime.candidates {
            let also = abi.time.candidates.iter().any(|other| other.name == candidate.name);
            assert!(also, "{}: time() leaves out {}", abi.name, candidate.name);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn the_native_table_fits_this_build_and_has_libcs_numbers() {
    let Some(abi) = vdso_time::__private::NATIVE else { return };
    assert!(ALL.iter().any(|other| std::ptr::eq(*other, abi)));
    assert_eq!((abi.name, is_64_bit(abi)), (std::env::consts::ARCH, usize::BITS == 64));
    for (name, function) in abi.functions() {
        for call in function.syscalls_in_order(false) {
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
                other => panic!("{name}: {other:?} is no system call here"),
            };
            assert_eq!(u32::try_from(expected), Ok(call.number), "{name}: {:?}", call.shape);
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

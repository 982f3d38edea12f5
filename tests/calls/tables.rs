//! The table of every architecture is complete and consistent, on any host, and the one that this build calls through has
//! the numbers that libc has.

use vdso_time::arch::{ALL, Abi, Function, NATIVE, Shape, Syscall};

use test_images::sysv_hash;

/// Every function of every table.
fn rows() -> impl Iterator<Item = (&'static Abi, &'static str, &'static Function)> {
    ALL.iter().flat_map(|abi| abi.functions().map(|(name, function)| (*abi, name, function)))
}

/// All system calls of a function.
fn syscalls(function: &'static Function) -> impl Iterator<Item = &'static Syscall> {
    function.syscalls_in_order(false)
}

fn is_64_bit(abi: &Abi) -> bool {
    abi.class == 2
}

/// Whether every shape with 64-bit seconds stands before every one with 32-bit seconds.
fn wide_first(shapes: impl Iterator<Item = Shape>) -> bool {
    shapes.map(Shape::is_time32).is_sorted()
}

#[test]
fn architectures_have_names_and_images_of_their_own() {
    for (index, abi) in ALL.iter().enumerate() {
        assert!(!abi.name.is_empty());
        for other in &ALL[..index] {
            assert_ne!(abi.name, other.name);
            assert_ne!((abi.machine, abi.class), (other.machine, other.class), "{} {}", abi.name, other.name);
        }
    }
    assert_eq!(ALL.len(), 4);
}

#[test]
fn each_architecture_has_its_machine_its_class_and_its_version() {
    // e_machine and EI_CLASS are the ELF specification's; a version, the kernel's in the image's linker script.
    for (name, machine, class, version) in [
        ("x86", 3, 1, "LINUX_2.6"),
        ("x86_64", 62, 2, "LINUX_2.6"),
        ("aarch64", 183, 2, "LINUX_2.6.39"),
        ("arm", 40, 1, "LINUX_2.6"),
    ] {
        let abi = ALL.iter().find(|abi| abi.name == name).unwrap();
        assert_eq!((abi.machine, abi.class, abi.version), (machine, class, version), "{name}");
    }
}

#[test]
fn the_versions_have_the_hashes_that_the_kernel_images_have() {
    for (version, hash) in [("LINUX_2.6", 0x03ae_75f6), ("LINUX_2.6.39", 0x075f_cb89)] {
        assert_eq!(sysv_hash(version), hash, "{version}");
    }
    for abi in ALL {
        assert!(
            [0x03ae_75f6, 0x075f_cb89].contains(&sysv_hash(abi.version)),
            "{}: {}",
            abi.name,
            abi.version
        );
    }
}

#[test]
fn every_function_has_a_system_call() {
    for (abi, name, function) in rows() {
        assert!(!function.syscalls.is_empty(), "{}: {name}", abi.name);
    }
}

#[test]
fn names_are_of_the_image_and_not_repeated() {
    for (abi, what, function) in rows() {
        let names: Vec<_> = function.candidates.iter().map(|candidate| candidate.name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(name.starts_with("__vdso_") || name.starts_with("__kernel_"), "{}: {name}", abi.name);
            assert!(!names[..index].contains(name), "{}: {what}: {name}", abi.name);
        }
        let numbers: Vec<_> = syscalls(function).map(|call| call.number).collect();
        for (index, number) in numbers.iter().enumerate() {
            assert!(!numbers[..index].contains(number), "{}: {what}: {number}", abi.name);
        }
    }
}

#[test]
fn a_name_and_a_number_have_one_shape_wherever_they_stand() {
    for abi in ALL {
        let all = || abi.functions().into_iter().map(|(_, function)| function);
        let symbols: Vec<_> = all().flat_map(|function| function.candidates).collect();
        for one in &symbols {
            for other in symbols.iter().filter(|other| other.name == one.name) {
                assert_eq!(
                    (one.shape, one.unless),
                    (other.shape, other.unless),
                    "{}: {}",
                    abi.name,
                    one.name
                );
            }
        }
        let calls: Vec<_> = all().flat_map(syscalls).collect();
        for one in &calls {
            for other in calls.iter().filter(|other| other.number == one.number) {
                assert_eq!(one.shape, other.shape, "{}: {}", abi.name, one.number);
            }
        }
    }
}

#[test]
fn a_function_is_answered_by_calls_that_can_tell_it() {
    for (abi, name, function) in rows() {
        let shapes = function.candidates.iter().map(|candidate| candidate.shape);
        let shapes = shapes.chain(syscalls(function).map(|call| call.shape));
        for shape in shapes {
            let fit = match name {
                "time" => shape != Shape::Getcpu,
                "gettimeofday" => matches!(shape, Shape::Timeval64 | Shape::Timeval32 | Shape::Timespec64),
                "getcpu" => shape == Shape::Getcpu,
                _ => matches!(shape, Shape::Timespec64 | Shape::Timespec32),
            };
            assert!(fit, "{}: {name}: {shape:?}", abi.name);
        }
    }
}

#[test]
fn no_64_bit_architecture_has_32_bit_times() {
    for (abi, name, function) in rows().filter(|(abi, ..)| is_64_bit(abi)) {
        assert!(
            !function.candidates.iter().any(|candidate| candidate.shape.is_time32()),
            "{}: {name}",
            abi.name
        );
        assert!(!syscalls(function).any(|call| call.shape.is_time32()), "{}: {name}", abi.name);
    }
}

#[test]
fn on_32_bit_architectures_64_bit_times_come_first() {
    for (abi, name, function) in rows().filter(|(abi, ..)| !is_64_bit(abi)) {
        let long_is_64 = [Shape::Timeval64, Shape::Time64];
        let shapes = || function.candidates.iter().map(|candidate| candidate.shape);
        assert!(wide_first(shapes()), "{}: {name}", abi.name);
        assert!(!shapes().any(|shape| long_is_64.contains(&shape)), "{}: {name}", abi.name);
        // After January 2038 there must be one.
        let first = function.syscalls[0].shape;
        assert!(!first.is_time32(), "{}: {name}: {first:?}", abi.name);
    }
}

#[test]
fn time_has_every_symbol_that_reads_a_clock_to_fall_back_on() {
    for abi in ALL {
        for candidate in abi.clock_gettime.candidates {
            let also = abi.time.candidates.iter().any(|other| other.name == candidate.name);
            assert!(also, "{}: time() leaves out {}", abi.name, candidate.name);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod native {
    use super::{Abi, NATIVE, Shape, is_64_bit, syscalls};

    /// libc's number for a function's call of this shape; libc has none for the 64-bit ones of 32-bit kernels.
    fn number(abi: &Abi, function: &str, shape: Shape) -> u32 {
        let resolution = function == "clock_getres";
        let number = match shape {
            Shape::Timespec64 if !is_64_bit(abi) && resolution => 406,
            Shape::Timespec64 if !is_64_bit(abi) => 403,
            Shape::Timespec64 | Shape::Timespec32 if resolution => libc::SYS_clock_getres,
            Shape::Timespec64 | Shape::Timespec32 => libc::SYS_clock_gettime,
            Shape::Timeval64 | Shape::Timeval32 => libc::SYS_gettimeofday,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Shape::Time64 | Shape::Time32 => libc::SYS_time,
            Shape::Getcpu => libc::SYS_getcpu,
            other => panic!("{function}: {other:?} is no system call here"),
        };
        u32::try_from(number).unwrap()
    }

    #[test]
    fn the_numbers_are_those_of_libc() {
        let Some(abi) = NATIVE else { return };
        for (name, function) in abi.functions() {
            for call in syscalls(function) {
                assert_eq!(call.number, number(abi, name, call.shape), "{name}: {:?}", call.shape);
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

    #[test]
    fn the_native_table_is_one_of_all_and_fits_this_build() {
        let Some(abi) = NATIVE else { return };
        assert!(super::ALL.iter().any(|other| std::ptr::eq(*other, abi)));
        assert_eq!(abi.name, std::env::consts::ARCH);
        assert_eq!(is_64_bit(abi), usize::BITS == 64);
    }
}

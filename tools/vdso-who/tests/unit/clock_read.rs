//! Tests of how a system call is recognised, from machine code and from the kernel's half of the
//! call chain.

use super::*;

/// Machine code with the encodings of mov, syscall, int and call from the processor's manual.
#[test]
fn the_number_is_that_of_the_last_move_before_the_system_call() {
    for (code, number) in [
        (&[0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05][..], Number::Is(228)),
        (
            &[
                0xb8, 1, 0, 0, 0, 0xb8, 0x60, 0, 0, 0, 0x89, 0xfb, 0xcd, 0x80,
            ],
            Number::Is(96),
        ),
        (
            &[0xb8, 0x93, 1, 0, 0, 0x65, 0xff, 0x15, 0x10, 0, 0, 0],
            Number::Is(403),
        ),
        (&[0x89, 0xf8, 0x0f, 0x05], Number::Unknown),
        (&[0xb8, 0xe4, 0, 0, 0, 0x90], Number::None),
    ] {
        assert_eq!(number_before(code), number, "{code:x?}");
    }
}

/// The symbols of a kernel with an entry, an interrupt, a system call that reads no clock, and one
/// that reads a clock.
const KALLSYMS: &str = "\
ffffffff81000000 T entry_SYSCALL_64
ffffffff81001000 T asm_sysvec_apic_timer_interrupt
ffffffff81002000 T __x64_sys_getppid
ffffffff81003000 T __x64_sys_clock_gettime
ffffffff81004000 T end
";

const ENTRY: u64 = 0xffff_ffff_8100_0001;
const INTERRUPT: u64 = 0xffff_ffff_8100_1001;
const GETPPID: u64 = 0xffff_ffff_8100_2001;
const CLOCK: u64 = 0xffff_ffff_8100_3001;

fn in_kernel(kernel: u64, pc: u64) -> Sample {
    Sample {
        pid: 1,
        thread: 1,
        in_kernel: true,
        is_64_bit: true,
        registers: crate::perf::Registers {
            pc,
            ..crate::perf::Registers::default()
        },
        number: None,
        first_argument: Some(1),
        stack: vec![],
        callchain: vec![],
        kernel_chain: vec![kernel],
    }
}

/// Samples code that does not contain the numbers of its system calls, at the entry to the kernel
/// and in the calls themselves.
#[test]
fn an_entry_is_that_of_the_calls_which_the_same_code_makes() {
    let mut space = AddressSpace::new((1 << 22) + 1, crate::address_space::Files::default());
    let mut reads = ClockReads {
        kernel: KernelCalls::of(KALLSYMS),
        sites: Sites::default(),
    };
    let mut activity = |kernel, pc| match reads.activity(&mut space, &in_kernel(kernel, pc)) {
        Activity::Reading(read) => (Some(read.is_inferred), read.clock.map(Clock::name)),
        Activity::Other => (Some(false), None),
        Activity::Unknown => (None, None),
    };
    let monotonic = Some("CLOCK_MONOTONIC");
    for (kernel, pc, expected) in [
        (ENTRY, 0x1000, (None, None)),
        (CLOCK, 0x1000, (Some(false), monotonic)),
        (ENTRY, 0x1000, (Some(true), monotonic)),
        // An interrupt may come during any call, so it tells nothing about later samples.
        (INTERRUPT, 0x1000, (Some(false), None)),
        (ENTRY, 0x1000, (Some(true), monotonic)),
        (GETPPID, 0x2000, (Some(false), None)),
        (ENTRY, 0x2000, (Some(false), None)),
        // Now the same code has made both calls, so a sample at the entry is unknown.
        (GETPPID, 0x1000, (Some(false), None)),
        (ENTRY, 0x1000, (None, None)),
    ] {
        assert_eq!(activity(kernel, pc), expected, "{kernel:x} {pc:x}");
    }
}

/// The vDSO of Linux 6.11 and later contains code of getrandom() that has no symbol. The file
/// header of the vDSO takes the place of that code here, because it has no symbol either.
#[test]
fn code_of_the_vdso_without_a_symbol_belongs_to_its_caller() {
    if std::env::var_os("VDSO_TIME_EMULATED").is_some_and(|kind| kind == "user") {
        return crate::common::not_run_here("QEMU has no vDSO of the kernel");
    }
    let pid = std::process::id();
    let mut space = AddressSpace::of(pid, crate::address_space::Files::default()).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(vdso) = crate::mapping::vdso(&maps) else {
        return crate::common::not_run_here("there is no vDSO");
    };
    let Some(symbols) = space.vdso_symbols() else {
        return crate::common::not_run_here("the vDSO cannot be read");
    };
    let header = vdso.start;
    assert_eq!(space.symbol(header), None);
    let mut activity = |callers: &[u64]| {
        let sample = Sample {
            in_kernel: false,
            callchain: [&[header], callers].concat(),
            kernel_chain: vec![],
            ..in_kernel(0, header)
        };
        match ClockReads::default().activity(&mut space, &sample) {
            Activity::Reading(read) => Some(read.function),
            _ => None,
        }
    };
    for (name, address) in symbols {
        let in_function = address + 1;
        let expected = reads_clock(&name);
        // Between the code and the function, there may be more code without a symbol.
        for callers in [&[in_function][..], &[header + 1, in_function]] {
            let function = activity(callers);
            assert_eq!(function.is_some(), expected, "{name}: {function:?}");
            assert_ne!(function, Some(String::new()), "{name}");
        }
    }
    // If the caller is unknown, the code most likely belongs to a clock function.
    let outside = reads_clock as *const () as u64;
    assert_eq!(activity(&[outside]), Some(String::new()));
}

//! Tests of call chains through a vDSO for arm64 in which `clock_gettime` calls a helper.

use gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindContext, UnwindSection as _};

use super::*;

/// The code of `clock_gettime` and of its helper, compiled with gcc 12. The frame of
/// `clock_gettime` has room for two more registers. The last function also calls the helper.
const VDSO: [u32; 39] = [
    0x1000_0002, // helper: adr x2, data
    0x1400_0002, // b
    0xd503_203f, // yield
    0x88df_fc41, // ldar w1, [x2]
    0x3707_ffc1, // tbnz w1, #0
    0xd503_3fdf, // isb
    0xd53b_e044, // mrs x4, cntvct_el0
    0xf940_0443, // ldr x3, [x2, #8]
    0xd343_fc85, // lsr x5, x4, #3
    0x8b04_0063, // add x3, x3, x4
    0xa900_1403, // stp x3, x5, [x0]
    0xd503_39bf, // dmb ishld
    0xb940_0043, // ldr w3, [x2]
    0x6b03_003f, // cmp w1, w3
    0x54ff_fea1, // b.ne
    0x5280_0000, // mov w0, #0
    0xd65f_03c0, // ret
    0x7100_3c1f, // clock_gettime: cmp w0, #15
    0x5400_00ad, // b.le
    0x9340_7c00, // sxtw x0, w0
    0xd280_0e28, // mov x8, #113
    0xd400_0001, // svc #0
    0xd65f_03c0, // ret
    0xa9be_7bfd, // stp x29, x30, [sp, #-32]!
    0xaa01_03e6, // mov x6, x1
    0xaa01_03e0, // mov x0, x1
    0x9100_03fd, // mov x29, sp
    0x97ff_ffe5, // bl helper
    0x3400_0040, // cbz w0
    0xf900_04df, // str xzr, [x6, #8]
    0xa8c2_7bfd, // ldp x29, x30, [sp], #32
    0xd65f_03c0, // ret
    0xa9bf_7bfd, // other: stp x29, x30, [sp, #-16]!
    0x9100_03fd, // mov x29, sp
    0x97ff_ffde, // bl helper
    0xd503_201f, // nop
    0xd503_201f, // nop
    0xa8c1_7bfd, // ldp x29, x30, [sp], #16
    0xd65f_03c0, // ret
];

const HELPER: u64 = 0x1000;
const CLOCK: u64 = HELPER + 0x44;
const FRAME_IS_MADE: u64 = HELPER + 0x60;
const FP_IS_SET: u64 = HELPER + 0x6c;
const AFTER_CALL: u64 = HELPER + 0x70;
const RETURNS: u64 = HELPER + 0x7c;
const OTHER: u64 = HELPER + 0x80;
const OTHER_AFTER_CALL: u64 = HELPER + 0x8c;
const END: u64 = HELPER + 4 * VDSO.len() as u64;

/// The addresses of libc's function and of `main`, and the return addresses of the calls that they
/// make.
const LIBC: u64 = 0x4000;
const IN_LIBC: u64 = LIBC + 0x24;
const MAIN: u64 = 0x5000;
const IN_MAIN: u64 = MAIN + 0x34;

/// The stack pointer at the call of the vDSO, and the lowest address of the stack.
const SP: u64 = 0x7fff_0000;
const LOWEST: u64 = SP - 64;

/// The address of the unwind tables.
const TABLES: u64 = 0x2000;

struct Image {
    has_tables: bool,
}

impl Code for Image {
    fn is_mapped(&self, address: u64) -> bool {
        (HELPER..0x6000).contains(&address)
    }

    fn function(&self, address: u64) -> Option<Function> {
        // A vDSO has symbols only for the functions that it exports.
        let start = (CLOCK..OTHER).contains(&address).then_some(CLOCK);
        let mut row = None;
        if self.has_tables || address >= LIBC {
            row = row_of(address);
        }
        Some(Function { row, start })
    }

    fn code_before(&self, address: u64, code: &mut [u8]) -> Option<()> {
        let start = address - code.len() as u64;
        for (at, byte) in (start..).zip(code) {
            let word = match at & !3 {
                at if (HELPER..END).contains(&at) => VDSO[(at - HELPER) as usize / 4],
                // Both calls are indirect, so their targets are not known.
                at if [IN_LIBC - 4, IN_MAIN - 4].contains(&at) => 0xd63f_0020,
                _ => 0,
            };
            *byte = word.to_le_bytes()[at as usize & 3];
        }
        Some(())
    }
}

/// Returns the unwind tables that gcc writes: a shared part, and an entry for each function. An
/// entry contains the address and the length of the function, and the size of its frame. The
/// function makes the frame after `makes` instructions, and removes it after `removes` more.
fn tables() -> Vec<u8> {
    let mut bytes = vec![
        16, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0,
    ];
    for (start, length, frame, makes, removes) in [
        (HELPER, CLOCK - HELPER, 0, 0, 0),
        (CLOCK, OTHER - CLOCK, 32, 7, 7),
        (OTHER, END - OTHER, 16, 1, 5),
        (LIBC, 0x100, 48, 1, 32),
        (MAIN, 0x100, 16, 1, 32),
    ] {
        let offset = bytes.len() as u32;
        let address = start.wrapping_sub(TABLES + u64::from(offset) + 8) as u32;
        let words = [28, offset + 4, address, length as u32].map(u32::to_le_bytes);
        bytes.extend(words.concat());
        let saved = frame / 8;
        if frame == 0 {
            bytes.extend([0; 16]);
        } else {
            bytes.extend([
                0,
                0x40 + makes,
                0x0e,
                frame,
                0x80 + 29,
                saved,
                0x80 + 30,
                saved - 1,
            ]);
            bytes.extend([0x40 + removes, 0xc0 + 29, 0xc0 + 30, 0x0e, 0, 0, 0, 0]);
        }
    }
    bytes
}

fn row_of(address: u64) -> Option<UnwindTableRow<usize>> {
    let bytes = tables();
    let tables = EhFrame::new(&bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(TABLES);
    let mut context = UnwindContext::new();
    let cie = EhFrame::cie_from_offset;
    let row = tables.unwind_info_for_address(&bases, &mut context, address, cie);
    row.ok().cloned()
}

/// Returns the stack and the registers at an instruction of the vDSO.
fn sample(pc: u64) -> Sample {
    let mut stack = vec![0; 32];
    let mut put = |address: u64, words: [u64; 2]| {
        let at = (address - LOWEST) as usize / 8;
        stack[at..at + 2].copy_from_slice(&words);
    };
    // The frame of libc's function. The frame of `main` contains zeros, which end the chain.
    put(SP, [SP + 48, IN_MAIN]);
    let outside = Registers {
        pc,
        sp: SP,
        fp: SP,
        lr: IN_LIBC,
    };
    let inside = Registers {
        sp: SP - 32,
        fp: SP - 32,
        lr: AFTER_CALL,
        ..outside
    };
    let record = [SP, IN_LIBC];
    let is_in_clock = (CLOCK..OTHER).contains(&pc);
    let registers = if is_in_clock && (pc < FRAME_IS_MADE || pc == RETURNS) {
        outside
    } else if is_in_clock && pc < FP_IS_SET {
        put(SP - 32, record);
        Registers {
            sp: SP - 32,
            ..outside
        }
    } else if pc == OTHER_AFTER_CALL {
        put(SP - 32, record);
        put(SP - 48, [SP - 32, AFTER_CALL]);
        Registers {
            sp: SP - 48,
            fp: SP - 48,
            lr: OTHER_AFTER_CALL,
            ..outside
        }
    } else {
        put(SP - 32, record);
        inside
    };
    let from = (registers.sp - LOWEST) as usize / 8;
    let bytes = stack[from..].iter().flat_map(|word| word.to_ne_bytes());
    Sample {
        pid: 1,
        thread: 1,
        in_kernel: false,
        is_64_bit: true,
        registers,
        number: None,
        first_argument: None,
        stack: bytes.collect(),
        callchain: vec![],
        kernel_chain: vec![],
    }
}

/// Takes a sample at each instruction of a vDSO like Ubuntu's for arm64, in which `clock_gettime`
/// calls a function without a symbol.
#[test]
fn a_vdso_whose_clock_function_calls_another_one_keeps_its_caller() {
    let own = (HELPER..OTHER).step_by(4);
    for has_tables in [true, false] {
        let code = Image { has_tables };
        for pc in own.clone().chain([OTHER_AFTER_CALL]) {
            let abi = Abi::of("aarch64", true);
            let mut chain = Unwinder::default().chain_of(abi, &code, &sample(pc));
            let calls = chain.iter().filter(|address| **address == AFTER_CALL);
            assert!(calls.count() <= 1, "{chain:x?}");
            chain.retain(|address| *address >= LIBC);
            let distance = pc - HELPER;
            assert_eq!(
                chain,
                [IN_LIBC, IN_MAIN],
                "{distance:#x}, tables: {has_tables}"
            );
        }
    }
}

/// Machine code from GNU as and from Go's linker. `cfa` is the distance from the register to the
/// CFA after this code, and `saved` is the offset of the saved frame pointer from the CFA.
#[test]
fn the_frame_of_an_arm64_function_without_a_table_is_in_its_code() {
    for (code, from_fp, cfa, saved) in [
        (&[0xa9be_7bfd, 0x9100_03fd][..], true, 32, -32),
        (
            &[0xd503_233f, 0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd],
            true,
            16,
            -16,
        ),
        (
            &[0xf81f_0ff3, 0xa9be_7bfd, 0xd100_83ff, 0x9100_83fd],
            true,
            48,
            -48,
        ),
        (&[0xa9be_7bfd, 0xaa01_03e6], false, 32, -32),
        (
            &[0xf81c_0ffe, 0xf81f_83fd, 0xd100_23fd, 0xd10f_c3ff],
            true,
            72,
            -72,
        ),
    ] {
        let bytes: Vec<u8> = code
            .iter()
            .flat_map(|code: &u32| code.to_le_bytes())
            .collect();
        let table = aarch64::frame(&bytes).unwrap();
        assert_eq!(
            (table.from_fp, table.cfa, table.fp, table.return_address),
            (from_fp, cfa, Some(saved), Some(saved + 8)),
            "{code:x?}"
        );
    }
    // A function that saves no registers, and no code at all.
    for code in [&[0xff, 0x43, 0, 0xd1][..], &[]] {
        assert!(aarch64::frame(code).is_none());
    }
}

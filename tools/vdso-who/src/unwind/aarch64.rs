//! Machine code of arm64.
//!
//! If a function has no unwind entry, [`frame`] goes through its instructions from the start of the
//! function to the program counter, to find out how far the stack pointer has moved. In this
//! example, the number beside each instruction is the distance, after that instruction, from the
//! stack pointer to its value at the start of the function:
//!
//! ```text
//! sub  sp, sp, #48           48
//! stp  x29, x30, [sp, #32]   48   the caller's registers are 16 bytes below that value
//! add  x29, sp, #32          48   now x29 is 16 bytes below it
//! ```
//!
//! The distance is needed even where the frame pointer gives the return address. The distance gives
//! the caller's stack pointer, and the unwind table of the caller can describe the caller's frame
//! as an offset from that stack pointer. The table of glibc's `clock_gettime` does.

use super::Table;

/// The numbers of the frame pointer, the link register and the stack pointer.
const FP: u32 = 29;
const LR: u32 = 30;
const SP: u32 = 31;

/// The size of a frame record: the caller's frame pointer, and above it the return address.
const RECORD: i64 = 16;

/// Returns how the caller is found once these first instructions of a function have run. Returns
/// `None` if they do not save a frame record.
pub(super) fn frame(prologue: &[u8]) -> Option<Table> {
    let mut size = 0;
    let mut record = None;
    for bytes in prologue.chunks_exact(4) {
        let code = instruction(bytes);
        let is_on_stack = field(code, 5, 5) == SP;
        if !is_on_stack {
            continue;
        }
        let first = field(code, 0, 5);
        let pair = field(code, 10, 5);
        let saves_record = first == FP && pair == LR;
        let mut immediate = i64::from(field(code, 10, 12));
        if field(code, 22, 1) == 1 {
            immediate <<= 12;
        }
        match field(code, 22, 10) {
            // stp first, pair, [sp, #offset]!
            0b10_1010_0110 => {
                size -= pair_offset(code);
                if saves_record {
                    record = Some(size);
                }
            }
            // stp first, pair, [sp, #offset]
            0b10_1010_0100 if saves_record => record = Some(size - pair_offset(code)),
            // str first, [sp, #offset]!
            0b11_1110_0000 if field(code, 10, 2) == 3 => {
                size -= i64::from((code << 11) as i32 >> 23);
            }
            // sub sp, sp, #immediate
            0b11_0100_0100 | 0b11_0100_0101 if first == SP => size += immediate,
            // add x29, sp, #immediate
            0b10_0100_0100 | 0b10_0100_0101 if first == FP => {
                return Some(table(true, size - immediate));
            }
            // Go: sub x29, sp, #8
            0b11_0100_0100 if first == FP => return Some(table(true, size + immediate)),
            _ => {}
        }
    }
    let record = record?;
    let mut table = table(false, record);
    table.cfa = size;
    Some(table)
}

/// Returns the rule for finding the caller of a function whose frame record is `record` bytes below
/// the CFA.
fn table(from_fp: bool, record: i64) -> Table {
    // Go allocates large frames with instructions that `frame` does not recognise, so the `record`
    // that it computes can be too small. The frame record lies between its address and the CFA, so
    // `record` is at least `RECORD`.
    let record = record.max(RECORD);
    Table {
        from_fp,
        cfa: record,
        return_address: Some(8 - record),
        fp: Some(-record),
    }
}

/// Returns a field of an instruction, given its lowest bit and its length.
fn field(code: u32, lowest: u32, bits: u32) -> u32 {
    (code >> lowest) & ((1 << bits) - 1)
}

/// Returns the offset of a load or store of two registers.
fn pair_offset(code: u32) -> i64 {
    i64::from((code << 10) as i32 >> 25) * 8
}

/// Returns whether an instruction is one that a function executes after it has restored all
/// registers: `ret`, `retaa`, `retab`, or the `autiasp` or `autibsp` before a `ret`.
pub(super) fn is_end(code: u32) -> bool {
    const ENDS: [u32; 5] = [
        0xd65f_03c0,
        0xd65f_0bff,
        0xd65f_0fff,
        0xd503_23bf,
        0xd503_23ff,
    ];
    ENDS.contains(&code)
}

/// Returns the target of a call, or 0 if the call is indirect. `call` is the instruction before
/// `address`. Returns `None` if it is not a call.
pub(super) fn call(call: u32, address: u64) -> Option<u64> {
    let is_direct = call & 0xfc00_0000 == 0x9400_0000;
    let is_indirect = call & 0xffff_fc1f == 0xd63f_0000;
    if is_direct {
        let distance = i64::from((call << 6) as i32 >> 4);
        Some(address.wrapping_sub(4).wrapping_add_signed(distance))
    } else if is_indirect {
        Some(0)
    } else {
        None
    }
}

pub(super) fn instruction(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

//! The unwinder, which finds the caller of a frame.
//!
//! A chain begins with the program counter. For each address there is a rule for finding the
//! registers of the caller. The rule comes from the unwind table of the file that is mapped there.
//! If there is no table entry for the address, the rule is to follow the frame pointer if the
//! function has probably set it up, and otherwise to search the stack for a return address. If the
//! copy of the stack ends before the chain does, the call chain that the kernel recorded may
//! contain the other callers.

mod aarch64;

use std::collections::HashMap;
use std::env::consts::ARCH;
use std::ops::RangeInclusive;

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

use crate::perf::{Registers, Sample};

/// The maximum number of return addresses in a chain.
const MOST_FRAMES: usize = 128;

/// The maximum number of rules that are kept.
const MOST_RULES: usize = 1 << 16;

/// How many words above the stack pointer are searched for a return address.
const MOST_WORDS: u64 = 64;

/// The assumed maximum length of a function without a symbol, in bytes.
const LONGEST: u64 = 4096;

/// The number of bytes at the start of a function in which it is expected to set up its frame
/// pointer.
const PROLOGUE: usize = 64;

/// The code of a process.
pub(crate) trait Code {
    /// Returns whether code is mapped at an address.
    fn is_mapped(&self, address: u64) -> bool;

    /// Returns what the file that is mapped at an address tells about the function there. Returns
    /// `None` if there is no file.
    fn function(&self, address: u64) -> Option<Function>;

    /// Fills a buffer with the code before an address.
    fn code_before(&self, address: u64, code: &mut [u8]) -> Option<()>;
}

/// What a file tells about the function at an address.
pub(crate) struct Function {
    /// The row of the unwind table, which tells how the caller's registers are found.
    pub(crate) row: Option<UnwindTableRow<usize>>,
    /// The first address of the function, if it has a symbol.
    pub(crate) start: Option<u64>,
}

/// The registers of an ABI, as DWARF numbers them.
#[derive(Clone, Copy)]
pub(crate) struct Abi {
    word: u64,
    sp: Register,
    fp: Register,
    return_address: Register,
    is_x86: bool,
}

/// How the caller of a frame is found.
#[derive(Clone)]
enum Rule {
    Table(Table),
    /// Search the stack for a return address, preferably one that follows a call of a function that
    /// begins in this range.
    Search(RangeInclusive<u64>),
}

/// A rule from an unwind table. The CFA (canonical frame address) is the sum of a register and an
/// offset. The return address and the frame pointer are at offsets from the CFA, if they are saved.
#[derive(Clone)]
struct Table {
    from_fp: bool,
    cfa: i64,
    return_address: Option<i64>,
    fp: Option<i64>,
}

/// Finds the call chains of a process.
#[derive(Default)]
pub(crate) struct Unwinder {
    /// The rules by program counter.
    rules: HashMap<u64, Rule>,
}

impl Unwinder {
    /// Forgets the rules, because the code has changed.
    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Returns the program counter, and the return addresses from the innermost outward.
    pub(crate) fn chain(&mut self, code: &impl Code, sample: &Sample) -> Vec<u64> {
        self.chain_of(Abi::of(ARCH, sample.is_64_bit), code, sample)
    }

    fn chain_of(&mut self, abi: Option<Abi>, code: &impl Code, sample: &Sample) -> Vec<u64> {
        let mut at = sample.registers;
        let mut chain = vec![at.pc];
        let Some(abi) = abi else {
            if code.is_mapped(at.lr) {
                chain.push(at.lr);
            }
            return chain;
        };
        let mut walk = Walk {
            code,
            sample,
            abi,
            rules: &mut self.rules,
        };
        while chain.len() <= MOST_FRAMES {
            let is_first = chain.len() == 1;
            let Some(next) = walk.caller(at, is_first) else {
                walk.continue_with_the_kernels(&mut chain, at);
                break;
            };
            if next.pc == 0 {
                break;
            }
            chain.push(next.pc);
            at = next;
        }
        chain
    }
}

/// A walk from a sample outward.
struct Walk<'a, C> {
    code: &'a C,
    sample: &'a Sample,
    abi: Abi,
    rules: &'a mut HashMap<u64, Rule>,
}

/// The functions of this block that return [`Registers`] return the registers of the caller. They
/// return `None` if they do not find the caller, for example because the copy of the stack ends
/// before it. If there is no caller, the program counter that they return is 0.
impl<C: Code> Walk<'_, C> {
    /// Reads a word of the stack.
    fn read(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.sample.registers.sp)?;
        let stack = self.sample.stack.get(usize::try_from(offset).ok()?..)?;
        match self.abi.word {
            4 => Some(u32::from_ne_bytes(*stack.first_chunk()?).into()),
            _ => Some(u64::from_ne_bytes(*stack.first_chunk()?)),
        }
    }

    fn caller(&mut self, at: Registers, is_first: bool) -> Option<Registers> {
        let next = match self.rule_at(at, is_first) {
            Rule::Table(table) => self.by_table(at, &table, is_first)?,
            Rule::Search(_) if is_first && at.lr != 0 && self.call(at.lr).is_some() => Registers {
                pc: at.lr,
                lr: 0,
                ..at
            },
            Rule::Search(starts) => self.by_search(at, &starts)?,
        };
        // The caller's frame is above the frame of the function that it called, so the caller's
        // stack pointer must be larger than the stack pointer of that function. The two can be
        // equal only if the function's frame is empty. On x86 a frame contains at least a return
        // address, but on arm64 the frame of a leaf can be empty. Only the first function of a
        // chain can be a leaf.
        let is_outer = next.sp > at.sp || (next.sp == at.sp && is_first);
        if next.pc != 0 && !is_outer {
            return None;
        }
        Some(next)
    }

    fn rule_at(&mut self, at: Registers, is_first: bool) -> Rule {
        let mut pc = at.pc;
        if !is_first {
            // If a function ends with a call, the return address is the first address of the next
            // function. So the address before it is looked up.
            pc = pc.wrapping_sub(1);
        }
        if let Some(rule) = self.rules.get(&pc) {
            return rule.clone();
        }
        let rule = self.rule(pc);
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert(pc, rule.clone());
        rule
    }

    fn rule(&self, pc: u64) -> Rule {
        let frame_pointer = Rule::Table(self.abi.frame_pointer());
        // If no file is known for the program counter, the code was made by a just-in-time
        // compiler, or it cannot be read. Such code probably has a frame pointer.
        let Some(function) = self.code.function(pc) else {
            return frame_pointer;
        };
        if let Some(row) = &function.row {
            if let Some(table) = self.abi.table(row) {
                return Rule::Table(table);
            }
        }
        // In a stripped musl program, functions have neither tables nor symbols, so the start of
        // the function is not known.
        let Some(start) = function.start else {
            return Rule::Search(pc.saturating_sub(LONGEST)..=pc);
        };
        let table = if self.abi.is_x86 {
            self.frame_on_x86(start, pc)
        } else {
            self.frame_on_aarch64(start, pc)
        };
        match table {
            Some(table) => Rule::Table(table),
            None => Rule::Search(start..=start),
        }
    }

    /// Returns the rule of a function that sets up the frame pointer. Returns `None` for another
    /// function, and at the first instruction, which runs before the frame pointer is set up.
    fn frame_on_x86(&self, start: u64, pc: u64) -> Option<Table> {
        let mut prologue = [0; PROLOGUE];
        let end = start.wrapping_add(PROLOGUE as u64);
        self.code.code_before(end, &mut prologue)?;
        if start == pc || !self.abi.sets_frame_pointer(&prologue) {
            return None;
        }
        Some(self.abi.frame_pointer())
    }

    /// Returns the rule at an instruction. Returns `None` unless the function has saved the frame
    /// pointer before that instruction, or has restored all registers and is about to return.
    fn frame_on_aarch64(&self, start: u64, pc: u64) -> Option<Table> {
        let pc = pc & !3;
        let mut last = [0; 4];
        self.code.code_before(pc.wrapping_add(4), &mut last)?;
        if aarch64::is_end(aarch64::instruction(&last)) {
            return Some(Table {
                from_fp: false,
                cfa: 0,
                return_address: None,
                fp: None,
            });
        }
        let length = pc.saturating_sub(start).min(PROLOGUE as u64);
        let mut prologue = vec![0; length as usize];
        self.code
            .code_before(start.wrapping_add(length), &mut prologue)?;
        aarch64::frame(&prologue)
    }

    fn by_table(&self, at: Registers, table: &Table, is_first: bool) -> Option<Registers> {
        let base = if table.from_fp { at.fp } else { at.sp };
        let cfa = base.wrapping_add_signed(table.cfa);
        let saved = |offset: i64| self.read(cfa.wrapping_add_signed(offset));
        let mut pc = match table.return_address {
            Some(offset) => saved(offset)?,
            // The return address is not saved. It can still be in the link register, but only in a
            // leaf.
            None if is_first => at.lr,
            None => 0,
        };
        let fp = match table.fp {
            Some(offset) => saved(offset)?,
            None => at.fp,
        };
        if !self.abi.is_x86 {
            // arm64 can sign a return address. The signature is in the bits above those of a user
            // address, so these bits are cleared.
            pc &= (1 << 48) - 1;
        }
        if pc != 0 && !self.code.is_mapped(pc) {
            return None;
        }
        Some(Registers {
            pc,
            sp: cfa,
            fp,
            lr: 0,
        })
    }

    /// Searches the stack for a return address. Prefers the first one that follows a direct call of
    /// the function. If there is none, takes the first one that follows any call.
    fn by_search(&self, at: Registers, starts: &RangeInclusive<u64>) -> Option<Registers> {
        let mut any = None;
        let mut sp = at.sp;
        let mut below = at.fp;
        for _ in 0..MOST_WORDS {
            let Some(pc) = self.read(sp) else { break };
            let mut fp = at.fp;
            // The frame pointer points to the word that contains the caller's frame pointer, and
            // the next word contains the return address. So if `sp` is the address of this next
            // word, the word below `sp` is the caller's frame pointer.
            if sp == at.fp.wrapping_add(self.abi.word) {
                fp = below;
            }
            below = pc;
            sp = sp.wrapping_add(self.abi.word);
            let Some(target) = self.call(pc) else {
                continue;
            };
            let found = Registers { pc, sp, fp, ..at };
            if starts.contains(&target) {
                return Some(found);
            }
            any.get_or_insert(found);
        }
        any
    }

    /// Returns the target of the call before a return address, or 0 if the target is in a register
    /// or in memory. Returns `None` if there is no call.
    fn call(&self, address: u64) -> Option<u64> {
        let mut code = [0; 8];
        self.code.code_before(address, &mut code)?;
        self.abi.call(code, address)
    }

    /// Appends the outer callers that the kernel found.
    fn continue_with_the_kernels(&self, chain: &mut Vec<u64>, at: Registers) {
        let kernels = &self.sample.callchain;
        let last = chain[chain.len() - 1];
        let rest = match kernels.iter().rposition(|address| *address == last) {
            Some(last) => &kernels[last + 1..],
            None if at.fp == self.sample.registers.fp => kernels,
            None => return,
        };
        for address in rest {
            if chain.len() > MOST_FRAMES {
                break;
            }
            if self.code.is_mapped(*address) {
                chain.push(*address);
            }
        }
    }
}

impl Abi {
    /// Returns the ABI of a program. Returns `None` for 32-bit arm programs, whose stacks are not
    /// unwound: only the caller in the link register is known.
    pub(crate) fn of(arch: &str, is_64_bit: bool) -> Option<Self> {
        let (word, registers, is_x86) = match (arch, is_64_bit) {
            ("x86_64", true) => (8, [7, 6, 16], true),
            ("x86_64", false) => (4, [4, 5, 8], true),
            ("aarch64", true) => (8, [31, 29, 30], false),
            _ => return None,
        };
        let [sp, fp, return_address] = registers.map(Register);
        Some(Self {
            word,
            sp,
            fp,
            return_address,
            is_x86,
        })
    }

    /// Returns the rule of a row of an unwind table, if the CFA is the sum of a known register and
    /// an offset.
    fn table(self, row: &UnwindTableRow<usize>) -> Option<Table> {
        let CfaRule::RegisterAndOffset {
            register,
            offset: cfa,
        } = *row.cfa()
        else {
            return None;
        };
        if register != self.fp && register != self.sp {
            return None;
        }
        let saved = |register| match row.register(register) {
            RegisterRule::Offset(offset) => Some(offset),
            _ => None,
        };
        Some(Table {
            from_fp: register == self.fp,
            cfa,
            return_address: saved(self.return_address),
            fp: saved(self.fp),
        })
    }

    /// Returns the rule of code with a frame pointer. The frame pointer points to the word that
    /// contains the caller's frame pointer, and the word above contains the return address.
    fn frame_pointer(self) -> Table {
        let word = self.word as i64;
        Table {
            from_fp: true,
            cfa: 2 * word,
            return_address: Some(-word),
            fp: Some(-2 * word),
        }
    }

    /// Returns whether x86 code sets the frame pointer to the address at which the caller's frame
    /// pointer is saved.
    pub(crate) fn sets_frame_pointer(self, code: &[u8]) -> bool {
        match self.word {
            // push; mov. Before Go 1.21: lea number(%rsp), %rbp
            8 => code.windows(4).any(|bytes| {
                matches!(
                    bytes,
                    [0x55, 0x48, 0x89, 0xe5] | [0x48, 0x8d, 0x6c | 0xac, 0x24]
                )
            }),
            _ => code.windows(3).any(|bytes| bytes == [0x55, 0x89, 0xe5]),
        }
    }

    /// Returns the target of the call at the end of this code, or 0 if the call is indirect. The
    /// code ends before `address`.
    fn call(self, code: [u8; 8], address: u64) -> Option<u64> {
        if !self.is_x86 {
            return aarch64::call(aarch64::instruction(&code[4..]), address);
        }
        if let [_, _, _, 0xe8, a, b, c, d] = code {
            let distance = i32::from_le_bytes([a, b, c, d]);
            let target = address.wrapping_add_signed(distance.into());
            return Some(if self.word == 4 {
                target & 0xffff_ffff
            } else {
                target
            });
        }
        for length in [2, 3, 4, 6, 7] {
            // ff /2, with operands of different lengths.
            let opcode = code[8 - length];
            let operands = code[9 - length];
            if opcode == 0xff && operands & 0x38 == 0x10 {
                return Some(0);
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "../tests/unit/unwind.rs"]
mod tests;

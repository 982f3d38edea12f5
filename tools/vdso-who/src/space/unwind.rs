//! From a frame to its caller's.

use std::env::consts::ARCH;
use std::ops::RangeInclusive;

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

use super::{Space, Taken};
use crate::perf::Registers;

const MOST_FRAMES: usize = 128;

/// The rules that are kept.
const MOST_RULES: usize = 1 << 16;

/// How far from the stack pointer a return address is searched for.
const MOST_WORDS: u64 = 64;

/// The length of a function without a symbol.
const LONGEST: u64 = 4096;

/// How far from its start a function may set its frame pointer up.
const PROLOGUE: usize = 64;

/// The registers of an ABI, by DWARF's numbers.
#[derive(Clone, Copy)]
pub(super) struct Abi {
    word: u64,
    sp: Register,
    fp: Register,
    return_address: Register,
    is_x86: bool,
}

impl Abi {
    /// Returns what the ABI says; none where only the link register is known.
    pub(super) fn of(arch: &str, is_64_bit: bool) -> Option<Self> {
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
}

/// How the caller of a frame is found.
#[derive(Clone)]
pub(super) enum Rule {
    Table(Table),
    /// By a return address on the stack, best after a call of a function that begins in here.
    Search(RangeInclusive<u64>),
}

/// The CFA is a register and an offset. The others are offsets from the CFA, if saved there.
#[derive(Clone)]
pub(super) struct Table {
    from_fp: bool,
    cfa: i64,
    return_address: Option<i64>,
    fp: Option<i64>,
}

struct Walk<'a> {
    space: &'a mut Space,
    sample: &'a Taken,
    abi: Abi,
}

/// Returns the program counter, and the return addresses.
pub(super) fn chain(space: &mut Space, sample: &Taken) -> Vec<u64> {
    let mut registers = sample.registers;
    let mut chain = vec![registers.pc];
    let Some(abi) = Abi::of(ARCH, sample.is_64_bit) else {
        chain.extend(Some(registers.lr).filter(|lr| space.mapping(*lr).is_some()));
        return chain;
    };
    let mut walk = Walk { space, sample, abi };
    while chain.len() <= MOST_FRAMES {
        let is_first = chain.len() == 1;
        match walk.caller(registers, is_first) {
            Some(next) if next.pc == 0 => break,
            // A frame has at least a return address on x86, and may have none in a leaf elsewhere.
            Some(next) if next.sp > registers.sp || (next.sp == registers.sp && is_first) => {
                chain.push(next.pc);
                registers = next;
            }
            _ => {
                walk.continue_with_the_kernels(&mut chain, registers);
                break;
            }
        }
    }
    chain
}

/// A function below that returns registers returns none if it does not find the caller, for example
/// because the copy of the stack ends before. If there is no caller, the program counter is 0.
impl Walk<'_> {
    fn read(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.sample.registers.sp)?).ok()?;
        let stack = self.sample.stack.get(offset..)?;
        match self.abi.word {
            4 => Some(u32::from_ne_bytes(*stack.first_chunk()?).into()),
            _ => Some(u64::from_ne_bytes(*stack.first_chunk()?)),
        }
    }

    fn caller(&mut self, at: Registers, is_first: bool) -> Option<Registers> {
        // A return address may be that of the next function.
        let pc = if is_first {
            at.pc
        } else {
            at.pc.wrapping_sub(1)
        };
        let rule = self
            .space
            .rules
            .get(&pc)
            .cloned()
            .unwrap_or_else(|| self.rule(pc));
        if self.space.rules.len() >= MOST_RULES {
            self.space.rules.clear();
        }
        self.space.rules.insert(pc, rule.clone());
        match rule {
            Rule::Table(table) => self.by_table(at, &table, is_first),
            Rule::Search(_) if is_first && at.lr != 0 && self.call(at.lr).is_some() => {
                Some(Registers {
                    pc: at.lr,
                    lr: 0,
                    ..at
                })
            }
            Rule::Search(starts) => self.by_search(at, &starts),
        }
    }

    fn rule(&mut self, pc: u64) -> Rule {
        let frame_pointer = Rule::Table(self.abi.frame_pointer());
        // Just-in-time compiled code, or nothing that can be read.
        let Some((module, address)) = self.space.module(pc) else {
            return frame_pointer;
        };
        if let Some(table) = module.unwind_row(address).and_then(|row| self.table(&row)) {
            return Rule::Table(table);
        }
        // In a stripped musl program, functions have neither tables nor symbols.
        let Some(symbol) = module.symbol(address) else {
            return Rule::Search(pc.saturating_sub(LONGEST)..=pc);
        };
        let start = pc.wrapping_sub(address).wrapping_add(symbol.range.start);
        let prologue = self
            .space
            .code_before::<PROLOGUE>(start.wrapping_add(PROLOGUE as u64));
        if start != pc && prologue.is_some_and(|code| self.abi.sets_frame_pointer(&code)) {
            return frame_pointer;
        }
        Rule::Search(start..=start)
    }

    fn table(&self, row: &UnwindTableRow<usize>) -> Option<Table> {
        let CfaRule::RegisterAndOffset {
            register,
            offset: cfa,
        } = *row.cfa()
        else {
            return None;
        };
        let saved = |register| match row.register(register) {
            RegisterRule::Offset(offset) => Some(offset),
            _ => None,
        };
        let from_fp = register == self.abi.fp;
        let (return_address, fp) = (saved(self.abi.return_address), saved(self.abi.fp));
        (from_fp || register == self.abi.sp).then_some(Table {
            from_fp,
            cfa,
            return_address,
            fp,
        })
    }

    fn by_table(&self, at: Registers, table: &Table, is_first: bool) -> Option<Registers> {
        let cfa = (if table.from_fp { at.fp } else { at.sp }).wrapping_add_signed(table.cfa);
        let saved = |offset: i64| self.read(cfa.wrapping_add_signed(offset));
        let pc = match table.return_address {
            Some(offset) => saved(offset)?,
            // Only a leaf may have it in a register.
            None if is_first => at.lr,
            None => 0,
        };
        self.checked(Registers {
            pc,
            sp: cfa,
            fp: table.fp.map_or(Some(at.fp), saved)?,
            lr: 0,
        })
    }

    /// Searches the stack for an address after a direct call of the function, or else after any
    /// call.
    fn by_search(&mut self, at: Registers, starts: &RangeInclusive<u64>) -> Option<Registers> {
        let (mut any, mut sp) = (None, at.sp);
        for _ in 0..MOST_WORDS {
            let Some(pc) = self.read(sp) else { break };
            sp = sp.wrapping_add(self.abi.word);
            let found = Registers { pc, sp, ..at };
            match self.call(pc) {
                Some(target) if starts.contains(&target) => return Some(found),
                Some(_) => any = any.or(Some(found)),
                None => {}
            }
        }
        any
    }

    /// Returns the target of the call before a return address; 0 if a register or memory has it.
    fn call(&mut self, address: u64) -> Option<u64> {
        self.abi.call(self.space.code_before(address)?, address)
    }

    fn checked(&self, to: Registers) -> Option<Registers> {
        // arm64 signs return addresses in the bits above a user's address.
        let pc = if self.abi.is_x86 {
            to.pc
        } else {
            to.pc & ((1 << 48) - 1)
        };
        (pc == 0 || self.space.mapping(pc).is_some()).then_some(Registers { pc, ..to })
    }

    /// Appends what the kernel found further out.
    fn continue_with_the_kernels(&self, chain: &mut Vec<u64>, at: Registers) {
        let callchain = &self.sample.callchain[..];
        let last = chain
            .last()
            .and_then(|last| callchain.iter().rposition(|address| address == last));
        let rest = match last {
            Some(last) => &callchain[last + 1..],
            None if at.fp == self.sample.registers.fp => callchain,
            None => &[],
        };
        let room = (MOST_FRAMES + 1).saturating_sub(chain.len());
        chain.extend(
            rest.iter()
                .filter(|address| self.space.mapping(**address).is_some())
                .take(room),
        );
    }
}

impl Abi {
    /// Returns the caller's registers: the saved frame pointer, and the return address above it.
    fn frame_pointer(self) -> Table {
        let word = self.word as i64;
        Table {
            from_fp: true,
            cfa: 2 * word,
            return_address: Some(-word),
            fp: Some(-2 * word),
        }
    }

    /// Returns whether code sets the frame pointer to the place of the saved one.
    pub(super) fn sets_frame_pointer(self, code: &[u8]) -> bool {
        match (self.is_x86, self.word) {
            // push; mov. Before Go 1.21: lea number(%rsp), %rbp
            (true, 8) => code.windows(4).any(|bytes| {
                matches!(
                    bytes,
                    [0x55, 0x48, 0x89, 0xe5] | [0x48, 0x8d, 0x6c | 0xac, 0x24]
                )
            }),
            (true, _) => code.windows(3).any(|bytes| bytes == [0x55, 0x89, 0xe5]),
            // add or sub x29, sp, number
            _ => code
                .chunks_exact(4)
                .any(|bytes| instruction(bytes) & 0xbf80_03ff == 0x9100_03fd),
        }
    }

    /// Returns the target of the call at the end of the code before an address; 0 if it is
    /// indirect.
    fn call(self, code: [u8; 8], address: u64) -> Option<u64> {
        if !self.is_x86 {
            let last = instruction(&code[4..]);
            let distance = i64::from((last << 6) as i32 >> 4);
            let is_direct = last & 0xfc00_0000 == 0x9400_0000;
            let is_indirect = last & 0xffff_fc1f == 0xd63f_0000;
            let target = address.wrapping_sub(4).wrapping_add_signed(distance);
            return if is_direct {
                Some(target)
            } else {
                is_indirect.then_some(0)
            };
        }
        if let [_, _, _, 0xe8, a, b, c, d] = code {
            let target = address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
            return Some(if self.word == 4 {
                target & 0xffff_ffff
            } else {
                target
            });
        }
        // ff /2, by the lengths of its operands.
        let is_call = |length: &usize| code[8 - length] == 0xff && code[9 - length] & 0x38 == 0x10;
        [2, 3, 4, 6, 7].iter().any(is_call).then_some(0)
    }
}

fn instruction(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

//! From a frame to its caller's.

use std::env::consts::ARCH;

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

use super::{Space, Taken};
use crate::perf::Registers;

const MOST_FRAMES: usize = 128;

/// The rules that are kept.
const MOST_RULES: usize = 1 << 16;

/// How far from the stack pointer a return address is searched for.
const MOST_WORDS: u64 = 64;

/// How far from its start a function may set its frame pointer up.
const PROLOGUE: usize = 64;

/// What the ABI says. The numbers are DWARF's.
#[derive(Clone, Copy)]
struct Abi {
    word: u64,
    sp: Register,
    fp: Register,
    return_address: Register,
    is_x86: bool,
}

impl Abi {
    /// None where only the link register is known.
    fn of(sample: &Taken) -> Option<Self> {
        let new = |word, [sp, fp, return_address]: [u16; 3], is_x86| Self {
            word,
            sp: Register(sp),
            fp: Register(fp),
            return_address: Register(return_address),
            is_x86,
        };
        match (ARCH, sample.is_64_bit) {
            ("x86_64", true) => Some(new(8, [7, 6, 16], true)),
            ("x86" | "x86_64", false) => Some(new(4, [4, 5, 8], true)),
            ("aarch64", true) => Some(new(8, [31, 29, 30], false)),
            _ => None,
        }
    }
}

/// How the caller of a frame is found.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// The CFA is a register and an offset. The others are offsets from the CFA, if saved there.
    Table {
        from_fp: bool,
        cfa: i64,
        return_address: Option<i64>,
        fp: Option<i64>,
    },
    /// The program counter is at the first instruction of a function without a table.
    Entry,
    FramePointer,
    /// By a return address on the stack, best after a call of this function.
    Search {
        function: u64,
    },
    /// There is no caller.
    End,
}

/// Why no caller is found.
enum Stop {
    /// There is none.
    End,
    /// The stack was not copied that far, or it is another one.
    Lost,
}

enum Call {
    Of(u64),
    Indirect,
}

struct Walk<'a> {
    space: &'a mut Space,
    sample: &'a Taken,
    abi: Abi,
}

/// The program counter, and the return addresses.
pub(super) fn chain(space: &mut Space, sample: &Taken) -> Vec<u64> {
    let mut registers = sample.registers;
    let mut chain = vec![registers.pc];
    let Some(abi) = Abi::of(sample) else {
        chain.extend(Some(registers.lr).filter(|lr| space.mapping(*lr).is_some()));
        return chain;
    };
    let mut walk = Walk { space, sample, abi };
    while chain.len() <= MOST_FRAMES {
        match walk.caller(registers, chain.len() == 1) {
            // A frame has at least a return address on x86, and may have none in a leaf elsewhere.
            Ok(next) if next.sp > registers.sp || (next.sp == registers.sp && chain.len() == 1) => {
                chain.push(next.pc);
                registers = next;
            }
            Err(Stop::End) => break,
            Ok(_) | Err(Stop::Lost) => {
                walk.continue_with_the_kernels(&mut chain, registers);
                break;
            }
        }
    }
    chain
}

impl Walk<'_> {
    fn read(&self, address: u64) -> Result<u64, Stop> {
        let word = self.abi.word as usize;
        let offset = address.checked_sub(self.sample.registers.sp).ok_or(Stop::Lost)?;
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.sample.stack.get(offset..));
        match bytes.and_then(|bytes| bytes.get(..word)).ok_or(Stop::Lost)? {
            &[a, b, c, d] => Ok(u32::from_ne_bytes([a, b, c, d]).into()),
            bytes => Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| Stop::Lost)?)),
        }
    }

    fn caller(&mut self, at: Registers, is_first: bool) -> Result<Registers, Stop> {
        // A return address may be that of the next function.
        let pc = if is_first { at.pc } else { at.pc.wrapping_sub(1) };
        if self.space.rules.len() >= MOST_RULES {
            self.space.rules.clear();
        }
        let known = self.space.rules.get(&pc).copied();
        let rule = known.unwrap_or_else(|| self.rule(pc));
        self.space.rules.insert(pc, rule);
        match rule {
            Rule::End => Err(Stop::End),
            Rule::Table { .. } => self.by_table(at, rule, is_first),
            Rule::Entry if is_first => self.at_entry(at),
            Rule::Entry | Rule::FramePointer => self.by_frame_pointer(at),
            Rule::Search { .. } if is_first && at.lr != 0 && self.call(at.lr).is_some() => {
                Ok(Registers { pc: at.lr, lr: 0, ..at })
            }
            Rule::Search { function } => self.by_search(at, function),
        }
    }

    fn rule(&mut self, pc: u64) -> Rule {
        // Just-in-time compiled code, or nothing that can be read.
        let Some((module, address)) = self.space.module(pc) else { return Rule::FramePointer };
        if let Some(rule) = module.unwind_row(address, |row| self.table(row)).flatten() {
            return rule;
        }
        let Some(symbol) = module.symbol(address) else { return Rule::FramePointer };
        let start = symbol.range.start;
        if start == address {
            Rule::Entry
        } else if self.abi.sets_frame_pointer(module.code(start, PROLOGUE)) {
            Rule::FramePointer
        } else {
            Rule::Search { function: pc.wrapping_sub(address).wrapping_add(start) }
        }
    }

    fn table(&self, row: &UnwindTableRow<usize>) -> Option<Rule> {
        let CfaRule::RegisterAndOffset { register, offset: cfa } = *row.cfa() else { return None };
        let from_fp = register == self.abi.fp;
        if !from_fp && register != self.abi.sp {
            return None;
        }
        let saved = |register| match row.register(register) {
            RegisterRule::Offset(offset) => Some(offset),
            _ => None,
        };
        let return_address = saved(self.abi.return_address);
        if self.abi.is_x86 && return_address.is_none() {
            return Some(Rule::End);
        }
        Some(Rule::Table { from_fp, cfa, return_address, fp: saved(self.abi.fp) })
    }

    fn by_table(&self, at: Registers, rule: Rule, is_first: bool) -> Result<Registers, Stop> {
        let Rule::Table { from_fp, cfa, return_address, fp } = rule else { return Err(Stop::End) };
        let cfa = (if from_fp { at.fp } else { at.sp }).wrapping_add_signed(cfa);
        let saved = |offset: Option<i64>, unsaved| match offset {
            Some(offset) => self.read(cfa.wrapping_add_signed(offset)),
            None => Ok(unsaved),
        };
        if return_address.is_none() && !is_first {
            return Err(Stop::End);
        }
        let pc = saved(return_address, at.lr)?;
        self.checked(Registers { pc, sp: cfa, fp: saved(fp, at.fp)?, lr: 0 })
    }

    fn by_frame_pointer(&self, at: Registers) -> Result<Registers, Stop> {
        let word = self.abi.word;
        let sp = at.fp.checked_add(2 * word).ok_or(Stop::Lost)?;
        self.checked(Registers { pc: self.read(at.fp + word)?, sp, fp: self.read(at.fp)?, lr: 0 })
    }

    /// At the first instruction of a function.
    fn at_entry(&self, at: Registers) -> Result<Registers, Stop> {
        if self.abi.is_x86 {
            self.checked(Registers { pc: self.read(at.sp)?, sp: at.sp + self.abi.word, ..at })
        } else {
            self.checked(Registers { pc: at.lr, lr: 0, ..at })
        }
    }

    /// The first word of the stack after a direct call of the function, or else after any call.
    fn by_search(&mut self, at: Registers, function: u64) -> Result<Registers, Stop> {
        let word = self.abi.word;
        let mut any = None;
        for sp in (0..MOST_WORDS).map_while(|index| at.sp.checked_add(index * word)) {
            let Ok(pc) = self.read(sp) else { break };
            let found = Registers { pc, sp: sp.wrapping_add(word), ..at };
            match self.call(pc) {
                Some(Call::Of(target)) if target == function => return Ok(found),
                Some(_) => any = any.or(Some(found)),
                None => {}
            }
        }
        any.ok_or(Stop::Lost)
    }

    /// The call before a return address.
    fn call(&mut self, address: u64) -> Option<Call> {
        let (module, start) = self.space.module(address.checked_sub(8)?)?;
        let code = module.code(start, 8)?;
        self.abi.call(code.try_into().ok()?, address)
    }

    fn checked(&self, to: Registers) -> Result<Registers, Stop> {
        // arm64 signs return addresses in the bits above a user's address.
        let pc = if self.abi.is_x86 { to.pc } else { to.pc & ((1 << 48) - 1) };
        match pc {
            0 => Err(Stop::End),
            pc if self.space.mapping(pc).is_none() => Err(Stop::Lost),
            pc => Ok(Registers { pc, ..to }),
        }
    }

    /// Appends what the kernel found further out.
    fn continue_with_the_kernels(&self, chain: &mut Vec<u64>, at: Registers) {
        let callchain = &self.sample.callchain[..];
        let last = chain.last().and_then(|last| callchain.iter().rposition(|address| address == last));
        let rest = match last {
            Some(last) => &callchain[last + 1..],
            None if at.fp == self.sample.registers.fp => callchain,
            None => &[],
        };
        let room = (MOST_FRAMES + 1).saturating_sub(chain.len());
        chain.extend(rest.iter().filter(|address| self.space.mapping(**address).is_some()).take(room));
    }
}

impl Abi {
    /// Whether code copies the stack pointer to the frame pointer.
    fn sets_frame_pointer(self, code: Option<&[u8]>) -> bool {
        let code = code.unwrap_or_default();
        match (self.is_x86, self.word) {
            // push; mov
            (true, 8) => code.windows(4).any(|bytes| bytes == [0x55, 0x48, 0x89, 0xe5]),
            (true, _) => code.windows(3).any(|bytes| bytes == [0x55, 0x89, 0xe5]),
            // add or sub x29, sp, number
            _ => code.chunks_exact(4).any(|bytes| instruction(bytes) & 0xbf80_03ff == 0x9100_03fd),
        }
    }

    /// The call at the end of the code before an address.
    fn call(self, code: [u8; 8], address: u64) -> Option<Call> {
        if !self.is_x86 {
            let last = instruction(&code[4..]);
            let distance = i64::from((last << 6) as i32 >> 4);
            let is_direct = last & 0xfc00_0000 == 0x9400_0000;
            let is_indirect = last & 0xffff_fc1f == 0xd63f_0000;
            let target = address.wrapping_sub(4).wrapping_add_signed(distance);
            return if is_direct { Some(Call::Of(target)) } else { is_indirect.then_some(Call::Indirect) };
        }
        if let [_, _, _, 0xe8, a, b, c, d] = code {
            let target = address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
            return Some(Call::Of(if self.word == 4 { target & 0xffff_ffff } else { target }));
        }
        // ff /2, from 2 to 7 bytes long.
        let is_indirect = (0..7).any(|index| {
            code[index] == 0xff
                && code[index + 1] & 0x38 == 0x10
                && length(code[index + 1], code.get(index + 2).copied()) == 8 - index
        });
        is_indirect.then_some(Call::Indirect)
    }
}

/// The length of an x86 call through a register or memory, from the bytes after the first.
fn length(mod_rm: u8, sib: Option<u8>) -> usize {
    let has_sib = mod_rm & 7 == 4 && mod_rm >> 6 != 3;
    let displacement = match (mod_rm >> 6, mod_rm & 7) {
        (0, 5) | (2, _) => 4,
        (0, 4) if sib.is_some_and(|sib| sib & 7 == 5) => 4,
        (1, _) => 1,
        _ => 0,
    };
    2 + usize::from(has_sib) + displacement
}

fn instruction(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

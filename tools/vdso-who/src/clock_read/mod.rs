//! Decides whether a thread was in a clock read.
//!
//! A thread is in a clock read if its program counter is in the vDSO, but not in a function that
//! reads no clock, such as `getcpu`. Code of the vDSO without a symbol belongs to the function that
//! called it: since Linux 6.11, `getrandom` calls `__arch_chacha20_blocks_nostack`, which has no
//! symbol. A thread in the kernel is also in a clock read if it entered the kernel through a system
//! call that reads a clock. The system call is identified from these sources, in this order:
//!
//! 1. The kernel's half of the call chain: [`kernel`].
//! 2. The number of the system call. On aarch64, the sample contains the register of the number. On
//!    x86, no record contains the number, so it is read from the code before the program counter:
//!    `mov $NUMBER, %eax`, then `syscall` or `int $0x80`. libc, Go and the vDSO contain such code.
//!    i386 programs enter the kernel in the vDSO's `__kernel_vsyscall`, which does not contain the
//!    number, because its caller sets it. The return address to the caller is on the stack, above
//!    three saved registers. The system call is a clock read if the caller is in the vDSO, or if
//!    the code before the return address contains the number of a system call that reads a clock.
//! 3. The earlier calls of the same code: [`sites`].
//!
//! If none of these sources identifies the system call, the thread might still be in a clock read.
//! The sample is then neither [`Activity::Reading`] nor [`Activity::Other`], but
//! [`Activity::Unknown`].

mod clock;
mod kernel;
mod sites;

use crate::address_space::AddressSpace;
use crate::perf::Sample;
pub(crate) use clock::Clock;
use kernel::{Call, Function, KernelCalls};
use sites::Sites;

/// Parts of the names of the vDSO functions that read no clock.
const OTHERS: [&str; 5] = ["getcpu", "getrandom", "sigreturn", "sgx", "vsyscall"];

/// How many bytes of code before the program counter are searched for the number of the system
/// call.
const CODE: usize = 32;

/// The name of a clock read through a system call.
pub(crate) const SYSTEM_CALL: &str = "[system call]";

/// A clock read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockRead {
    /// The function of the vDSO, or [`SYSTEM_CALL`].
    pub(crate) function: String,
    /// Whether the thread was in a system call, even if the vDSO made it.
    pub(crate) is_call: bool,
    /// The clock of a system call or of a counted read, if the sample shows it.
    pub(crate) clock: Option<Clock>,
    /// Whether only earlier calls of the same code show that this is a clock read.
    pub(crate) is_inferred: bool,
}

impl ClockRead {
    /// Returns the innermost frames of a call chain: the function of the vDSO, if the read went
    /// through one, and the system call, if there is one. If the clock is known, the name of the
    /// last frame includes it.
    pub(crate) fn frames(&self) -> Vec<String> {
        let mut frames = vec![self.function.clone()];
        if self.is_call && self.function != SYSTEM_CALL {
            frames.push(SYSTEM_CALL.into());
        }
        if let (Some(clock), Some(last)) = (self.clock, frames.last_mut()) {
            *last = format!("{last} ({})", clock.name());
        }
        frames
    }
}

/// What a thread was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Reading(ClockRead),
    Other,
    /// The thread was in an unknown system call, or in a process that cannot be read.
    Unknown,
}

/// Decides which samples are in clock reads.
#[derive(Default)]
pub(crate) struct ClockReads {
    kernel: KernelCalls,
    sites: Sites,
}

impl ClockReads {
    /// Forgets the earlier calls.
    pub(crate) fn forget(&mut self) {
        self.sites = Sites::default();
    }

    /// Returns what the thread of a sample was doing.
    pub(crate) fn activity(&mut self, space: &mut AddressSpace, sample: &Sample) -> Activity {
        let pc = sample.registers.pc;
        if space.is_vdso(pc) {
            return self.activity_in_vdso(space, sample);
        }
        if sample.is_of_kernel_thread() {
            return Activity::Other;
        }
        if sample.in_kernel {
            return self.activity_in_kernel(space, sample);
        }
        if space.is_hidden {
            Activity::Unknown
        } else {
            Activity::Other
        }
    }

    /// Returns the read that hit a breakpoint. A breakpoint is at the first instruction of a vDSO
    /// function.
    pub(crate) fn counted(space: &mut AddressSpace, sample: &Sample) -> ClockRead {
        let pc = sample.registers.pc;
        let mut read = ClockRead::default();
        if !space.is_vdso(pc) {
            return read;
        }
        if let Some(name) = space.symbol(pc) {
            read.clock = clock_of(function_in_vdso(&name), sample);
            read.function = name;
        }
        read
    }

    fn activity_in_vdso(&self, space: &mut AddressSpace, sample: &Sample) -> Activity {
        // Code without a symbol, whose callers in the vDSO are not known, counts as a clock read.
        // Most such code is a helper of the clock functions that the compiler did not inline, and
        // in most kernels the vDSO has no other code without a symbol.
        let name = space.vdso_function(sample).unwrap_or_default();
        let call = self.kernel.call(&sample.kernel_chain);
        let is_clock = if name.contains("vsyscall") && sample.in_kernel {
            match call {
                Some(call) => matches!(call, Call::Clock(_)),
                None => is_called_by_clock(space, sample),
            }
        } else {
            reads_clock(&name)
        };
        if !is_clock {
            return Activity::Other;
        }
        let is_call = sample.in_kernel && !matches!(call, Some(Call::Other | Call::Exception));
        let mut clock = None;
        if is_call {
            clock = clock_of(function_in_vdso(&name), sample);
        }
        Activity::Reading(ClockRead {
            function: name,
            is_call,
            clock,
            is_inferred: false,
        })
    }

    fn activity_in_kernel(&mut self, space: &mut AddressSpace, sample: &Sample) -> Activity {
        let mut call = self.system_call(space, sample);
        let is_inferred = call.is_none();
        if is_inferred {
            call = self.sites.call(space, sample);
        }
        match call {
            Some(Call::Clock(function)) => Activity::Reading(ClockRead {
                function: SYSTEM_CALL.into(),
                is_call: true,
                clock: clock_of(function, sample),
                is_inferred,
            }),
            Some(Call::Other | Call::Exception) => Activity::Other,
            None => Activity::Unknown,
        }
    }

    /// Returns the system call, if the sample shows it. If only the kernel's half of the call chain
    /// shows the system call, because the number was not found in the code, records the system call
    /// for later samples of the same code.
    fn system_call(&mut self, space: &mut AddressSpace, sample: &Sample) -> Option<Call> {
        let seen = self.kernel.call(&sample.kernel_chain);
        let number = number(space, sample);
        if let Number::Is(number) = number {
            let own = call_of(number, sample);
            return Some(seen.unwrap_or(own));
        }
        if number == Number::None {
            return Some(seen.unwrap_or(Call::Exception));
        }
        if let Some(call) = seen {
            self.sites.learn(space, sample, call);
        }
        seen
    }
}

/// The number of the system call in which a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Is(u64),
    /// The code cannot be read, or it does not contain the number, because the number is an
    /// argument of the function that makes the call.
    Unknown,
    /// The thread made no call.
    None,
}

fn number(space: &AddressSpace, sample: &Sample) -> Number {
    if let Some(number) = sample.number {
        return Number::Is(number);
    }
    let mut code = [0; CODE];
    if space.code_before(sample.registers.pc, &mut code).is_none() {
        return Number::Unknown;
    }
    number_before(&code)
}

/// Returns the call for the number of a system call.
fn call_of(number: u64, sample: &Sample) -> Call {
    // Only a sample from aarch64 contains the number.
    let arch = match (sample.number.is_some(), sample.is_64_bit) {
        (true, true) => "aarch64",
        (true, false) => "arm",
        (false, true) => "x86_64",
        (false, false) => "i386",
    };
    let function = match (arch, number) {
        ("x86_64", 228 | 229)
        | ("aarch64", 113 | 114)
        | ("i386", 265 | 266 | 403 | 406)
        | ("arm", 263 | 264 | 403 | 406) => Function::WithId,
        ("x86_64", 96) | ("aarch64", 169) | ("i386" | "arm", 78) => Function::Gettimeofday,
        ("x86_64", 201) | ("i386", 13) => Function::Time,
        _ => return Call::Other,
    };
    Call::Clock(function)
}

/// Returns the system call that does the same as a function of the vDSO.
fn function_in_vdso(name: &str) -> Function {
    if name.contains("gettimeofday") {
        Function::Gettimeofday
    } else if name == "time" || name.ends_with("_time") {
        Function::Time
    } else {
        Function::WithId
    }
}

/// Returns the clock of a call. On `x86_64`, the register of the first argument still contains the
/// clock's id, both in the kernel and at the first instruction of a function.
fn clock_of(function: Function, sample: &Sample) -> Option<Clock> {
    match function {
        Function::WithId => Clock::of_id(sample.first_argument? as i32),
        Function::Gettimeofday => Some(Clock::GETTIMEOFDAY),
        Function::Time => Some(Clock::TIME),
    }
}

/// Returns whether a function of the vDSO reads a clock.
pub(crate) fn reads_clock(name: &str) -> bool {
    !OTHERS.iter().any(|other| name.contains(other))
}

/// Returns whether the caller of `__kernel_vsyscall` is a function that reads a clock. The return
/// address is above the three registers that `__kernel_vsyscall` has saved.
fn is_called_by_clock(space: &mut AddressSpace, sample: &Sample) -> bool {
    let caller = match sample.stack.get(12..) {
        Some([a, b, c, d, ..]) => u64::from(u32::from_ne_bytes([*a, *b, *c, *d])),
        _ => return false,
    };
    let mut code = [0; CODE];
    if space.is_vdso(caller) {
        return true;
    }
    if space.code_before(caller, &mut code).is_none() {
        return false;
    }
    matches!(number_before(&code), Number::Is(number) if call_of(number, sample) != Call::Other)
}

/// Returns the number of the system call at the end of this code. The code can also end with a call
/// of `__kernel_vsyscall`, which then makes the system call.
fn number_before(code: &[u8]) -> Number {
    const ENTERS: [&[u8]; 4] = [
        &[0x0f, 0x05],
        &[0x0f, 0x34],
        &[0xcd, 0x80],
        &[0x65, 0xff, 0x15, 0x10, 0, 0, 0],
    ];
    let Some(enter) = ENTERS.iter().find(|enter| code.ends_with(enter)) else {
        return Number::None;
    };
    let before = &code[..code.len() - enter.len()];
    for window in before.windows(5).rev() {
        // mov $NUMBER, %eax. The upper two bytes are 0, because numbers are below 65536.
        if let [0xb8, low, high, 0, 0] = *window {
            return Number::Is(u64::from(u16::from_le_bytes([low, high])));
        }
    }
    Number::Unknown
}

#[cfg(test)]
#[path = "../../tests/unit/clock_read.rs"]
mod tests;

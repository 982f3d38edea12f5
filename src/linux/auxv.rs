//! `AT_SYSINFO_EHDR`, the auxiliary vector's entry that says where the vDSO is: from the program itself, from
//! libc, or, where the crate is built without libc, from the kernel.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::process;

/// The tag of the entry, on every architecture (include/uapi/linux/auxvec.h).
const AT_SYSINFO_EHDR: usize = 33;

/// What [`give`] was told, if that came before the first look. Neither constant is the address of a page.
static GIVEN: AtomicUsize = AtomicUsize::new(OPEN);
/// Nothing was given yet.
const OPEN: usize = usize::MAX;
/// Nothing was given before the first look, and nothing will be taken.
const CLOSED: usize = usize::MAX - 1;

/// An address at which an image may be.
#[derive(Clone, Copy)]
pub(crate) struct Ehdr {
    pub(crate) address: usize,
    /// The address comes from `getauxval`, which valgrind and the like correct. What the kernel says may be of a
    /// mapping that is gone.
    pub(crate) trusted: bool,
}

/// Takes the program's first word on `AT_SYSINFO_EHDR`, unless somebody has looked already; 0 says that there is no such
/// entry. Nothing else is published with it, so `Relaxed` is enough.
pub(crate) fn give(address: usize) {
    let _ = GIVEN.compare_exchange(OPEN, address, Ordering::Relaxed, Ordering::Relaxed);
}

/// The value of `AT_SYSINFO_EHDR`; none if it is missing or 0 (arm and aarch64 kernels without a vDSO say 0).
pub(crate) fn sysinfo_ehdr() -> Option<Ehdr> {
    give(CLOSED);
    let found = match GIVEN.load(Ordering::Relaxed) {
        CLOSED => look_up(),
        address => Ehdr { address, trusted: false },
    };
    (found.address != 0).then_some(found)
}

#[cfg(any(feature = "libc", vdso_time_libc_fallback))]
fn look_up() -> Ehdr {
    Ehdr { address: process::getauxval(AT_SYSINFO_EHDR), trusted: true }
}

/// Linux before 6.4 has no `PR_GET_AUXV`; a process that is not dumpable, or has no /proc, cannot read the file.
#[cfg(not(any(feature = "libc", vdso_time_libc_fallback)))]
#[inline(never)] // in the frame of a caller, the buffer makes each access to that longer
fn look_up() -> Ehdr {
    // The kernel's own buffer has room for some 30 entries (AT_VECTOR_SIZE), of which the architecture's, and this is one,
    // are the first. What is not filled in is AT_NULL.
    let mut vector = [[0; 2]; 64];
    if process::get_auxv(&mut vector).is_err() {
        let _ = process::read_file(c"/proc/self/auxv", &mut vector);
    }
    let entry = vector.iter().find(|[tag, _]| *tag == AT_SYSINFO_EHDR);
    Ehdr { address: entry.map_or(0, |[_, address]| *address), trusted: false }
}

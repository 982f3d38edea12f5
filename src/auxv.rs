//! `AT_SYSINFO_EHDR`, the auxiliary vector's entry that says where the vDSO is: from the program itself, from
//! libc, or, where the crate is built without libc, from the kernel.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

/// The tag of the entry, on every architecture (include/uapi/linux/auxvec.h).
const AT_SYSINFO_EHDR: usize = 33;

/// What [`give`] was told; `NOT_GIVEN` before, which is no address of a page.
static GIVEN: AtomicUsize = AtomicUsize::new(NOT_GIVEN);
const NOT_GIVEN: usize = usize::MAX;

/// An address at which an image may be.
#[derive(Clone, Copy)]
pub(crate) struct Ehdr {
    pub(crate) address: usize,
    /// The address comes from `getauxval`, which valgrind and the like correct. What the kernel says may be of a
    /// mapping that is gone.
    pub(crate) trusted: bool,
}

/// Takes the program's word on `AT_SYSINFO_EHDR`; 0 says that there is no such entry. Nothing else is published
/// with it, so `Relaxed` is enough.
pub(crate) fn give(address: usize) {
    GIVEN.store(address, Ordering::Relaxed);
}

/// The value of `AT_SYSINFO_EHDR`; none if it is missing or 0 (arm and aarch64 kernels without a vDSO say 0).
pub(crate) fn sysinfo_ehdr() -> Option<Ehdr> {
    let found = match GIVEN.load(Ordering::Relaxed) {
        NOT_GIVEN => look_up(),
        address => Ehdr { address, trusted: false },
    };
    (found.address != 0).then_some(found)
}

#[cfg(any(feature = "libc", vdso_time_absent))]
fn look_up() -> Ehdr {
    Ehdr { address: sys::getauxval(AT_SYSINFO_EHDR), trusted: true }
}

/// Linux before 6.4 has no `PR_GET_AUXV`; a process that is not dumpable, or has no /proc, cannot read the file.
#[cfg(not(any(feature = "libc", vdso_time_absent)))]
fn look_up() -> Ehdr {
    let mut words = [0; 64];
    let found = match sys::auxv::get(&mut words) {
        Ok(vector) => find(vector),
        Err(_) => sys::auxv::open().map_or(None, |file| {
            // Some 30 entries are known, a buffer's worth; the bound is for what is not.
            let mut parts = (0..8).map_while(|_| match sys::auxv::read(file, &mut words) {
                Ok(part) if !part.is_empty() => Some(find(part)),
                _ => None,
            });
            let found = parts.find_map(|found| found);
            sys::auxv::close(file);
            found
        }),
    };
    Ehdr { address: found.unwrap_or(0), trusted: false }
}

/// The value of the entry in a piece of the vector: pairs of a tag and a value.
#[cfg(not(any(feature = "libc", vdso_time_absent)))]
fn find(words: &[usize]) -> Option<usize> {
    words.chunks_exact(2).find_map(|entry| match *entry {
        [AT_SYSINFO_EHDR, value] => Some(value),
        _ => None,
    })
}

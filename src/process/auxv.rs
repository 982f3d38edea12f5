//! `AT_SYSINFO_EHDR`, the entry of the auxiliary vector that contains the vDSO's address.
//!
//! If the program has set the address ([`set`]), this crate uses that address. Otherwise the
//! address comes from libc's getauxval or, without the feature `libc`, from the kernel.

use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(any(feature = "libc", vdso_time_libc_fallback)))]
use {super::kernel, crate::arch::native};

/// The tag of the entry, on every architecture (include/uapi/linux/auxvec.h).
const AT_SYSINFO_EHDR: usize = 33;

/// The address that the program set, or one of the two constants below. No vDSO begins at either of
/// them, because neither is the start of a page.
static ADDRESS: AtomicUsize = AtomicUsize::new(UNSET);
/// The program has not set the address yet.
const UNSET: usize = usize::MAX;
/// The address was looked up before the program set it, so the program can no longer set it.
const LOOKED_UP: usize = usize::MAX - 1;

/// The value of `AT_SYSINFO_EHDR`.
#[derive(Clone, Copy)]
pub(crate) struct VdsoAddress {
    pub(crate) address: usize,
    /// Whether the address comes from getauxval. Such an address is the vDSO's, unless the program
    /// itself removed the vDSO: tools that unmap the vDSO, such as valgrind, also remove the entry
    /// that getauxval reads. They do not remove the entry in the kernel's own copy of the vector,
    /// so an address from the kernel is not trusted.
    pub(crate) is_trusted: bool,
}

/// Sets the address and returns true, or returns false if it was already set or looked up. An
/// `address` of 0 means that the auxiliary vector has no entry for the vDSO.
///
/// `Relaxed` is enough, because no other data is published with the address.
pub(crate) fn set(address: usize) -> bool {
    ADDRESS
        .compare_exchange(UNSET, address, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

/// Returns the address, or `None` if the entry is missing or 0. On arm and aarch64, among others, a
/// kernel without a vDSO passes 0.
pub(crate) fn vdso_address() -> Option<VdsoAddress> {
    // From now on, `set` fails. If the program has already set the address, this call of `set`
    // fails as well, and the address does not change.
    set(LOOKED_UP);
    let found = match ADDRESS.load(Ordering::Relaxed) {
        LOOKED_UP => VdsoAddress {
            address: value(AT_SYSINFO_EHDR),
            is_trusted: cfg!(any(feature = "libc", vdso_time_libc_fallback)),
        },
        address => VdsoAddress {
            address,
            is_trusted: false,
        },
    };
    (found.address != 0).then_some(found)
}

/// Returns a value of the auxiliary vector, or 0 if the entry is missing. `errno` does not change.
///
/// If the entry is missing, as under valgrind, getauxval sets `errno`, and the previous value would
/// be lost. So this function reads `errno` before the call, and restores it afterwards. `errno` is
/// in thread-local storage. docs/NO_LIBC.md names the programs that might not have such storage
/// yet.
#[cfg(any(feature = "libc", vdso_time_libc_fallback))]
#[must_use]
pub fn value(tag: usize) -> usize {
    if cfg!(miri) {
        return 0; // Miri has no auxiliary vector
    }
    // SAFETY: getauxval(3) accepts any tag.
    let getauxval = || unsafe { libc::getauxval(tag as libc::c_ulong) };
    let (value, _) = crate::arch::libc_errno::preserved(getauxval);
    value as usize
}

/// Returns a value of the auxiliary vector, or 0 if the entry is missing.
///
/// This function asks the kernel for the vector: with prctl(2), which has returned it since Linux
/// 6.4, or, if prctl(2) fails, by reading /proc/self/auxv. A process that is not dumpable cannot
/// read that file.
#[cfg(not(any(feature = "libc", vdso_time_libc_fallback)))]
#[inline(never)] // keeps the buffer out of the caller's stack frame
#[must_use]
pub fn value(tag: usize) -> usize {
    const PR_GET_AUXV: usize = 0x4155_5856;
    // The kernel's vector has about 30 entries (AT_VECTOR_SIZE), pairs of a tag and a value.
    // Entries that the kernel does not write stay 0, which is AT_NULL.
    let mut vector = [[0; 2]; 64];
    let args = [
        PR_GET_AUXV,
        vector.as_mut_ptr().expose_provenance(),
        size_of_val(&vector),
        0,
        0,
    ];
    // SAFETY: the kernel writes at most `size_of_val(&vector)` bytes to `vector`.
    if unsafe { native::checked(native::DISCOVERY.prctl, args) }.is_err() {
        let _ = kernel::read_file(c"/proc/self/auxv", vector.as_flattened_mut());
    }
    vector
        .iter()
        .find(|[entry, _]| *entry == tag)
        .map_or(0, |[_, value]| *value)
}

//! The VM clock device, by which a hypervisor says that the virtual machine was moved or restored
//! (include/uapi/linux/vmclock-abi.h; Linux 6.13, QEMU 10).
//!
//! libc maps its page, because mmap(2) has six arguments and `syscall` takes five. The page stays
//! mapped for the process's life, also in a forked child.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering, fence};

use vdso_time::__private::{preserving_errno, read_file};

use crate::engine::latch::Word;

/// `struct vmclock_abi`, as far as it is used.
#[repr(C)]
struct Page {
    /// `magic`, `size`, `version`, two bytes about the time, and `seq_count`.
    head: [Word; 2],
    disruption_marker: Word,
}

static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());

/// Maps the device's page, if there is one and this process may read it.
pub(super) fn open() {
    // Read as a file first: a mapped page beyond the end of a short file is a SIGBUS.
    let mut head = [0; size_of::<Page>() / size_of::<usize>()];
    if PAGE.load(Ordering::Acquire).is_null() {
        let _ = read_file(c"/dev/vmclock0", &mut head, |file, read| {
            let is_device = read.first().is_some_and(|first| first.to_ne_bytes().starts_with(b"VCLK"));
            if is_device && size_of_val(read) >= size_of::<Page>() {
                map(file);
            }
        });
    }
}

fn map(file: usize) {
    const SIZE: usize = size_of::<Page>();
    let (page, _) = preserving_errno(|| {
        // SAFETY: it maps a new page and changes no other memory.
        unsafe { libc::mmap(ptr::null_mut(), SIZE, libc::PROT_READ, libc::MAP_SHARED, file as i32, 0) }
    });
    // If another thread was faster, its page stays mapped and unused.
    if page != libc::MAP_FAILED {
        PAGE.store(page.cast(), Ordering::Release);
    }
}

/// Returns the device's `disruption_marker`: 0 without a device.
pub(super) fn marker() -> u64 {
    // SAFETY: `map` stores only pages that it mapped, and never unmaps them. They are read-only, so
    // only `Relaxed` loads of a `usize` are allowed (std, "Atomic accesses to read-only memory").
    let Some(page) = (unsafe { PAGE.load(Ordering::Acquire).as_ref() }) else { return 0 };
    // It is only compared, so its byte order does not matter. On a 32-bit machine it can be torn.
    // Then it is the old one, or shows one disruption more, so `seq_count` is not needed.
    let marker = page.disruption_marker.load();
    fence(Ordering::Acquire);
    marker
}

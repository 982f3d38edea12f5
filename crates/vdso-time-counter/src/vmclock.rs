//! The VM clock device, by which a hypervisor says that the virtual machine was moved or restored
//! (include/uapi/linux/vmclock-abi.h; Linux 6.13, QEMU 10).

#![allow(unsafe_code, reason = "a mapping")]

pub(crate) use device::{marker, open};

/// The page stays mapped for the rest of the process's life. A forked child has it too.
#[cfg(all(feature = "libc", target_has_atomic = "64"))]
mod device {
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

    use vdso_time::__private::{preserving_errno, read_file};

    /// `struct vmclock_abi`, as far as it is used.
    #[repr(C)]
    struct Page {
        /// `magic`, `size`, `version`, two bytes about the time, and `seq_count`.
        head: [AtomicU64; 2],
        disruption_marker: AtomicU64,
    }

    const MAGIC: &[u8] = b"VCLK";

    static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());

    /// Maps the device's page, if there is one and this process may read it.
    pub(crate) fn open() {
        if !PAGE.load(Ordering::Acquire).is_null() {
            return;
        }
        let Some(page) = map() else { return };
        if PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            unmap(page); // another thread was faster
        }
    }

    /// Returns the device's `disruption_marker`, which changes when the machine was disrupted: 0
    /// without a device.
    pub(crate) fn marker() -> u64 {
        // SAFETY: `open` stores only pages that it mapped, and never unmaps them.
        let Some(page) = (unsafe { PAGE.load(Ordering::Acquire).as_ref() }) else { return 0 };
        // A single load is never torn, so `seq_count` is not needed.
        u64::from_le(page.disruption_marker.load(Ordering::Acquire))
    }

    fn map() -> Option<*mut Page> {
        // Reads the head as a file first: a mapped page beyond the end of a short file is a SIGBUS.
        let mut head = [0; 8];
        read_file(c"/dev/vmclock0", &mut head, |file, head| {
            let is_device = head.first().is_some_and(|first| first.to_ne_bytes().starts_with(MAGIC))
                && size_of_val(head) >= size_of::<Page>();
            is_device.then(|| map_file(file)).filter(|page| *page != libc::MAP_FAILED)
        })
        .ok()?
        .map(<*mut libc::c_void>::cast)
    }

    fn map_file(file: usize) -> *mut libc::c_void {
        let (page, _) = preserving_errno(|| {
            // SAFETY: it maps a new page and changes no other memory.
            unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    size_of::<Page>(),
                    libc::PROT_READ,
                    libc::MAP_SHARED,
                    file as i32,
                    0,
                )
            }
        });
        page
    }

    fn unmap(page: *mut Page) {
        // SAFETY: `map` mapped this page, and nothing else knows its address.
        let _ = preserving_errno(|| unsafe { libc::munmap(page.cast(), size_of::<Page>()) });
    }
}

/// libc is needed, because mmap(2) has six arguments and `syscall` takes five.
#[cfg(not(all(feature = "libc", target_has_atomic = "64")))]
mod device {
    pub(crate) fn open() {}

    pub(crate) fn marker() -> u64 {
        0
    }
}

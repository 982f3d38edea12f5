//! The VM clock device, by which a hypervisor says that the CPU's counter was disrupted: the
//! virtual machine was moved or restored (include/uapi/linux/vmclock-abi.h; Linux 6.13, QEMU 10).

pub(crate) use device::{disruption, open};

/// The page stays mapped for the rest of the process's life. A forked child has it too.
#[cfg(all(feature = "libc", target_has_atomic = "64"))]
mod device {
    use core::ptr;
    use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

    use super::super::native::{self, ABI};
    use super::super::syscall::check;
    use crate::arch::libc_errno;
    use crate::errno::Errno;

    /// `struct vmclock_abi`, as far as it is used.
    #[repr(C)]
    struct Page {
        magic: AtomicU32,
        size: AtomicU32,
        version: AtomicU16,
        counter_and_time: AtomicU16,
        /// Odd while the hypervisor writes.
        sequence: AtomicU32,
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

    /// Returns a number that changes when the counter was disrupted: 0 without a device.
    pub(crate) fn disruption() -> u32 {
        // SAFETY: `open` stores only pages that it mapped, and never unmaps them.
        let Some(page) = (unsafe { PAGE.load(Ordering::Acquire).as_ref() }) else { return 0 };
        let before = page.sequence.load(Ordering::Acquire);
        let marker = u64::from_le(page.disruption_marker.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let is_whole = page.sequence.load(Ordering::Relaxed) == before && u32::from_le(before) & 1 == 0;
        // The hypervisor writes while something happens to the machine, so that is a disruption
        // too.
        let marker = if is_whole { marker } else { !marker };
        (marker ^ (marker >> 32)) as u32
    }

    fn map() -> Option<*mut Page> {
        let file = open_device().ok()?;
        // A page that a file does not fill cannot be read from memory, so it is read as a file.
        let mut head = [0_u8; size_of::<Page>()];
        let args = [file, head.as_mut_ptr().expose_provenance(), head.len(), 0, 0];
        // SAFETY: the kernel writes at most the bytes of `head`.
        let size = check(unsafe { native::syscall(ABI.discovery.read, args) });
        let is_device = size == Ok(head.len()) && head.starts_with(MAGIC);
        let page = if is_device { map_file(file) } else { libc::MAP_FAILED };
        // SAFETY: `open_device` opened the file, and nothing else knows its number.
        let _ = check(unsafe { native::syscall(ABI.discovery.close, [file, 0, 0, 0, 0]) });
        (page != libc::MAP_FAILED).then(|| page.cast())
    }

    fn map_file(file: usize) -> *mut libc::c_void {
        let (page, _) = libc_errno::preserved(|| {
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

    /// Opens the device, or what is in its place. It does not wait for the writer of a pipe.
    fn open_device() -> Result<usize, Errno> {
        let args = [
            libc::AT_FDCWD as usize,
            c"/dev/vmclock0".as_ptr().expose_provenance(),
            (libc::O_CLOEXEC | libc::O_NONBLOCK) as usize,
            0,
            0,
        ];
        // SAFETY: the path ends with a NUL, and the kernel only reads it.
        check(unsafe { native::syscall(ABI.discovery.openat, args) })
    }

    fn unmap(page: *mut Page) {
        // SAFETY: `map` mapped this page, and nothing else knows its address.
        let _ = libc_errno::preserved(|| unsafe { libc::munmap(page.cast(), size_of::<Page>()) });
    }
}

/// libc is needed, because mmap(2) has six arguments and `native::syscall` takes five.
#[cfg(not(all(feature = "libc", target_has_atomic = "64")))]
mod device {
    pub(crate) fn open() {}

    pub(crate) fn disruption() -> u32 {
        0
    }
}

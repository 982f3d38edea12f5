//! Memory between two unreadable pages, until the process ends.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::page_size;

pub struct Pages {
    pub base: NonNull<c_void>,
    pub size: usize,
}

impl Pages {
    /// Pages that cannot be read yet.
    pub fn new(count: usize) -> Self {
        let all = NonZeroUsize::new((count + 2) * page_size()).unwrap();
        // SAFETY: the kernel chooses a free place.
        let guard =
            unsafe { mmap_anonymous(None, all, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE) };
        let guard = guard.unwrap();
        let base = guard.map_addr(|guard| guard.checked_add(page_size()).unwrap());
        Self {
            base,
            size: count * page_size(),
        }
    }

    /// Copies bytes to the start, and makes all of it readable.
    pub fn fill(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        // SAFETY: the pages are writable, large enough by the assertion, and not borrowed.
        unsafe {
            self.base
                .cast()
                .copy_from_nonoverlapping((&bytes[0]).into(), bytes.len());
        }
        self.protect(ProtFlags::PROT_READ);
    }

    pub fn protect(&self, protection: ProtFlags) {
        // SAFETY: `new` mapped these pages, and nothing borrows them.
        unsafe { mprotect(self.base, self.size, protection) }.unwrap();
    }

    pub fn unmap(&self) {
        // SAFETY: the same.
        unsafe { munmap(self.base, self.size) }.unwrap();
    }

    pub fn addr(&self) -> usize {
        self.base.as_ptr().expose_provenance()
    }
}

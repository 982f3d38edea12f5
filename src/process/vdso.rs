//! The vDSO of this process: its address and its symbols.

use core::iter::FusedIterator;
use core::ptr;

pub use super::functions::{Functions, VdsoFn};
use super::{auxv, kernel, mapping};
use crate::choice::LocateError;
use crate::elf::{Image, ParseError, Symbol};
use crate::errno::Errno;

/// An image that is mapped into this process.
///
/// # Examples
///
/// ```
/// use vdso_time::vdso::Vdso;
///
/// if let Ok(vdso) = Vdso::locate() {
///     println!("{} bytes at {:p}", vdso.size(), vdso.base());
///     for (symbol, address) in vdso.symbols() {
///         println!("{address:p} {:?}", symbol.name());
///     }
///     println!("{:?}", vdso.symbol_address("__vdso_time", Some("LINUX_2.6")));
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Vdso<'a> {
    pub(crate) image: Image<'a>,
}

impl Vdso<'static> {
    /// Finds the vDSO that the kernel mapped, and parses it.
    ///
    /// `locate` allocates nothing, takes no lock and does not change `errno`, so a signal handler
    /// may call it. Before it reads a page, it makes a system call of 0.1 us to check that the page
    /// is readable. Each call checks and parses the image again; only the clock functions keep what
    /// they found.
    ///
    /// `locate` is a safe function, because only unsafe code can remove the vDSO (with `munmap` or
    /// `mremap`). Code that removes the vDSO must remove all of it, and must do so before the first
    /// use of this crate. If a sandbox denies `rt_sigprocmask`, code must not remove the vDSO at
    /// all, because `locate` then uses the address from getauxval(3) without a check. If other
    /// memory is mapped where the vDSO was, that memory must not change later.
    ///
    /// # Errors
    ///
    /// [`LocateError`] says why the process has no usable vDSO. The clock functions still work.
    #[inline]
    pub fn locate() -> Result<Self, LocateError> {
        let vdso = auxv::vdso_address().ok_or(LocateError::Absent)?;
        let probe = |page| match kernel::probe(page) {
            Ok(()) => Ok(()),
            Err(Errno::EFAULT) => Err(LocateError::Unmapped),
            Err(_) if vdso.is_trusted => Ok(()),
            Err(_) => Err(LocateError::Unchecked),
        };
        let base = ptr::with_exposed_provenance(vdso.address);
        // SAFETY: `probe` accepts a page if the kernel says that it is readable, or if a sandbox
        // denies the check and the address comes from getauxval. The address is then the vDSO's
        // (`VdsoAddress`), because the documentation of this function forbids the removal of the
        // vDSO in such a sandbox. The vDSO is read-only, and the documentation forbids its removal
        // after this call.
        let image = unsafe { mapping::image(base, probe) }?;
        Ok(Self { image })
    }
}

impl<'a> Vdso<'a> {
    /// Parses the image at `base`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the bytes are not an image.
    ///
    /// # Safety
    ///
    /// `base` must be the start of a page. These bytes must be readable and initialized, and must
    /// belong to one allocation, such as a mapping, that can be read through `base`:
    ///
    /// - the 4096 bytes from `base`, whatever they contain;
    /// - if they begin an image, all of it: [`Image::extent`] bytes, at most 1 MiB.
    ///
    /// During `'a` the bytes must not be written or unmapped, neither by this process nor, in
    /// shared memory, by another one.
    pub unsafe fn from_ptr(base: *const u8) -> Result<Self, ParseError> {
        // SAFETY: `image` reads the first page and, if it begins an image, `extent` bytes. The
        // caller promises that both can be read and do not change.
        let image = unsafe { mapping::image(base, |_| Ok(())) };
        image.map(|image| Self { image })
    }

    /// Returns the address of the image's first byte.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.image.base()
    }

    /// Returns the size of the image in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.image.size()
    }

    /// Returns the parsed image.
    #[must_use]
    pub const fn image(&self) -> Image<'a> {
        self.image
    }

    /// Returns the address of the symbol that [`Image::symbol`] finds.
    ///
    /// For a function that vdso(7) documents, the address can be cast to a pointer with the
    /// documented signature. Some other symbols, such as `__kernel_rt_sigreturn`, are not functions
    /// that C can call. On arm, bit 0 of the address is set for Thumb code.
    #[must_use]
    pub fn symbol_address(&self, name: &str, version: Option<&str>) -> Option<*const ()> {
        let value = self.image.value_of(name, version)?;
        Some(self.address_of(value))
    }

    /// Returns the symbols of the image that can be called, each with its address.
    ///
    /// The iterator yields the same symbols as [`Image::symbols`], so it includes each symbol whose
    /// address [`symbol_address`](Self::symbol_address) returns.
    #[must_use]
    pub fn symbols(self) -> impl FusedIterator<Item = (Symbol<'a>, *const ())> + Clone {
        self.image
            .symbols()
            .map(move |symbol| (symbol, self.address_of(symbol.value())))
    }

    fn address_of(&self, value: u64) -> *const () {
        let base = self.base().expose_provenance();
        ptr::with_exposed_provenance(self.image.address(value, base))
    }

    /// Returns the functions of the image that this crate calls, as typed pointers.
    ///
    /// A call through one of the returned pointers omits two steps that this crate's own functions
    /// take. Before they call the vDSO, they load the pointer from memory. After the call, all of
    /// them except [`time`](crate::time()) test whether the vDSO failed and, if so, ask the kernel.
    ///
    /// No function is found in an image of another architecture, or where this crate calls libc
    /// ([`ARCH`](crate::ARCH) is `None`).
    ///
    /// # Examples
    ///
    /// ```
    /// use vdso_time::vdso::{Vdso, VdsoFn};
    /// use vdso_time::{ClockId, Timespec};
    ///
    /// # if let Ok(vdso) = Vdso::locate() {
    /// if let Some(VdsoFn::Timespec64(clock_gettime)) = vdso.functions().clock_gettime {
    ///     let mut now = Timespec::default();
    ///     // SAFETY: the vDSO stays mapped, and `now` is valid for writes.
    ///     let result = unsafe { clock_gettime(ClockId::MONOTONIC, &raw mut now) };
    ///     assert!(result == 0 && now.tv_sec >= 0);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn functions(&self) -> Functions {
        Functions::of(&self.image)
    }

    /// Returns the symbol whose code contains a program counter, for profilers and unwinders.
    ///
    /// If the program counter is in the code of a global symbol and of its weak alias, returns
    /// the global symbol.
    #[must_use]
    pub fn symbol_at(&self, pc: usize) -> Option<Symbol<'a>> {
        let offset = pc.wrapping_sub(self.base().addr());
        if offset >= self.size() {
            return None;
        }
        let address = self.image.origin().wrapping_add(offset as u64);
        self.image.symbol_at(address)
    }
}

/// Sets the address of the vDSO, for a program with its own `_start`.
///
/// A program with its own `_start` finds the auxiliary vector on its stack (docs/NO_LIBC.md).
/// `ehdr` is the value of `AT_SYSINFO_EHDR` in this vector, or null if the vector has no such
/// entry.
///
/// # Errors
///
/// `EBUSY`: the address was set before, or an earlier call of another function of this crate has
/// already looked the address up. In both cases, this call changes nothing.
///
/// # Safety
///
/// `ehdr` must be null, or the value of this process's `AT_SYSINFO_EHDR`.
///
/// # Examples
///
/// ```no_run
/// use vdso_time::{Errno, vdso};
///
/// fn start(ehdr: *const u8) -> Result<i64, Errno> {
///     // SAFETY: the caller found the value on this process's stack.
///     unsafe { vdso::set_address(ehdr) }?;
///     vdso_time::try_time()
/// }
/// # let _ = start;
/// ```
pub unsafe fn set_address(ehdr: *const u8) -> Result<(), Errno> {
    if auxv::set(ehdr.expose_provenance()) {
        Ok(())
    } else {
        Err(Errno::EBUSY)
    }
}

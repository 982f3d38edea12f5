//! The functions of the kernel's tools/testing/selftests/vDSO/parse_vdso.c, for programs that were
//! written for that file. The functions have the same names and arguments as the kernel's, and
//! nearly the same rules for symbols and versions.
//!
//! Four things differ from the kernel's code: a null version matches any version, an address of 0
//! means that the process has no vDSO, symbols without a type count as functions, and a malformed
//! image has no functions. The programs get the declarations from the kernel's parse_vdso.h.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use vdso_time::vdso::Vdso;

use crate::symbol;

/// The address of the image, or 0. No other data is published with it, so `Relaxed` is enough.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Sets the address of the image: the value of AT_SYSINFO_EHDR.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_init_from_sysinfo_ehdr(base: usize) {
    BASE.store(base, Ordering::Relaxed);
}

/// Takes the address of the image from an auxiliary vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_init_from_auxv(auxv: *mut c_void) {
    const AT_SYSINFO_EHDR: usize = 33;
    let mut entry = auxv.cast::<[usize; 2]>();
    let base = loop {
        // SAFETY: the vector ends with AT_NULL, and no entry before this one was AT_NULL.
        match unsafe { entry.read() } {
            [0, _] => break 0,
            [AT_SYSINFO_EHDR, base] => break base,
            // SAFETY: this entry was not AT_NULL, so another one follows.
            _ => entry = unsafe { entry.add(1) },
        }
    };
    BASE.store(base, Ordering::Relaxed);
}

/// Returns the address of a function of the image, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vdso_sym(version: *const c_char, name: *const c_char) -> *mut c_void {
    let base = BASE.load(Ordering::Relaxed);
    if base == 0 {
        return ptr::null_mut();
    }
    // SAFETY: the caller of the functions above passed the address of this process's vDSO.
    let vdso = unsafe { Vdso::from_ptr(ptr::with_exposed_provenance(base)) };
    match vdso {
        // SAFETY: the caller passes null or strings.
        Ok(vdso) => unsafe { symbol(&vdso, name, version) },
        Err(_) => ptr::null_mut(),
    }
}

//! A walk in the manner of the kernel's own example (tools/testing/selftests/vDSO/parse_vdso.c): raw pointers and the SysV hash table, no
//! bound checked, everything that the image says believed.

#![allow(
    unsafe_code,
    clippy::cast_ptr_alignment,
    reason = "that is its manner: the linker aligned the tables"
)]

use std::ffi::{CStr, c_char};
use std::ptr;

use goblin::elf64::dynamic::{self, Dyn};
use goblin::elf64::header::Header;
use goblin::elf64::program_header::{PT_DYNAMIC, PT_LOAD, ProgramHeader};
use goblin::elf64::sym::Sym;

/// An image's tables.
#[derive(Clone, Copy)]
pub struct Walk {
    bias: usize,
    names: *const c_char,
    symbols: *const Sym,
    hash: *const u32,
    versions: *const u16,
    definitions: *const u8,
}

fn sysv_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(0_u32, |hash, &byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let top = hash & 0xf000_0000;
        (hash ^ top >> 24) & !top
    })
}

impl Walk {
    /// The tables of the image at an address.
    ///
    /// # Safety
    /// There must be a well-formed image.
    pub unsafe fn new(base: *const u8) -> Option<Self> {
        let at = |address: usize| ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: here and below: an image begins there, and what it says of itself is so.
        let header = unsafe { &*base.cast::<Header>() };
        let (mut bias, mut dynamic) = (None, None);
        for number in 0..usize::from(header.e_phnum) {
            // SAFETY: see above.
            let segment = unsafe {
                &*base.wrapping_add(header.e_phoff as usize).cast::<ProgramHeader>().wrapping_add(number)
            };
            if segment.p_type == PT_LOAD && bias.is_none() {
                bias = Some((base.addr() + segment.p_offset as usize).wrapping_sub(segment.p_vaddr as usize));
            } else if segment.p_type == PT_DYNAMIC {
                dynamic = Some(base.wrapping_add(segment.p_offset as usize).cast::<Dyn>());
            }
        }
        let (bias, mut entry) = (bias?, dynamic?);
        let mut walk = Self {
            bias,
            names: ptr::null(),
            symbols: ptr::null(),
            hash: ptr::null(),
            versions: ptr::null(),
            definitions: ptr::null(),
        };
        loop {
            // SAFETY: see above.
            let Dyn { d_tag, d_val } = unsafe { *entry };
            let table = at(bias.wrapping_add(d_val as usize));
            match d_tag {
                dynamic::DT_NULL => break,
                dynamic::DT_STRTAB => walk.names = table.cast(),
                dynamic::DT_SYMTAB => walk.symbols = table.cast(),
                dynamic::DT_HASH => walk.hash = table.cast(),
                dynamic::DT_VERSYM => walk.versions = table.cast(),
                dynamic::DT_VERDEF => walk.definitions = table,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        let is_whole = !walk.names.is_null() && !walk.symbols.is_null() && !walk.hash.is_null();
        is_whole.then_some(walk)
    }

    /// Where a function is.
    ///
    /// # Safety
    /// As [`new`](Self::new); the image must still be there.
    pub unsafe fn symbol(&self, version: &CStr, name: &CStr) -> Option<usize> {
        let version_hash = sysv_hash(version);
        // SAFETY: as in `new`.
        let [buckets, _] = unsafe { *self.hash.cast::<[u32; 2]>() };
        let bucket = self.hash.wrapping_add(2);
        let chain = bucket.wrapping_add(buckets as usize);
        // SAFETY: as in `new`.
        let mut number = unsafe { *bucket.wrapping_add((sysv_hash(name) % buckets) as usize) } as usize;
        while number != 0 {
            // SAFETY: as in `new`.
            let symbol = unsafe { &*self.symbols.wrapping_add(number) };
            let is_function = symbol.st_info & 15 == 2 && symbol.st_info >> 4 != 0 && symbol.st_shndx != 0;
            // SAFETY: as in `new`.
            if is_function && unsafe { self.is_called(symbol, name) } {
                // SAFETY: as in `new`.
                if unsafe { self.has_version(number, version, version_hash) } {
                    return Some(self.bias.wrapping_add(symbol.st_value as usize));
                }
            }
            // SAFETY: as in `new`.
            number = unsafe { *chain.wrapping_add(number) } as usize;
        }
        None
    }

    unsafe fn is_called(&self, symbol: &Sym, name: &CStr) -> bool {
        // SAFETY: as in `new`.
        (unsafe { CStr::from_ptr(self.names.wrapping_add(symbol.st_name as usize)) }) == name
    }

    unsafe fn has_version(&self, number: usize, name: &CStr, hash: u32) -> bool {
        if self.versions.is_null() || self.definitions.is_null() {
            return true;
        }
        // SAFETY: as in `new`.
        let wanted = unsafe { *self.versions.wrapping_add(number) } & 0x7fff;
        let mut at = self.definitions;
        // vd_version, vd_flags, vd_ndx, vd_cnt; vd_hash, vd_aux, vd_next.
        loop {
            // SAFETY: as in `new`.
            let [_, flags, index, _] = unsafe { *at.cast::<[u16; 4]>() };
            // SAFETY: as in `new`.
            let [its_hash, aux, next] = unsafe { *at.wrapping_add(8).cast::<[u32; 3]>() };
            if flags & 1 == 0 && index & 0x7fff == wanted {
                if its_hash != hash {
                    return false;
                }
                // SAFETY: as in `new`.
                let its_name = unsafe { *at.wrapping_add(aux as usize).cast::<u32>() };
                // SAFETY: as in `new`.
                return (unsafe { CStr::from_ptr(self.names.wrapping_add(its_name as usize)) }) == name;
            }
            if next == 0 {
                return false;
            }
            at = at.wrapping_add(next as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdso_time::vdso::Vdso;

    #[test]
    fn it_finds_what_the_crate_finds() {
        let vdso = Vdso::locate().expect("a vDSO");
        // SAFETY: it is the kernel's image.
        let walk = unsafe { Walk::new(vdso.base()) }.expect("an image with a SysV hash table");
        let mut found = 0;
        for symbol in vdso.symbols() {
            let version = symbol.version().expect("the kernel's symbols have one");
            // SAFETY: as above.
            let address = unsafe { walk.symbol(version, symbol.name()) };
            let name = symbol.name().to_str().expect("ASCII");
            assert_eq!(address, vdso.symbol(name, None).map(<*const ()>::addr), "{name}");
            // SAFETY: as above.
            assert_eq!(unsafe { walk.symbol(c"LINUX_0.0", symbol.name()) }, None, "{name}");
            found += 1;
        }
        assert!(found >= 3, "{found}");
        // SAFETY: as above.
        assert_eq!(unsafe { walk.symbol(c"LINUX_2.6", c"__vdso_nothing") }, None);
    }
}

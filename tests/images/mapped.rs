//! Images in memory: nothing outside is read, and symbols have the addresses of the mapping.
#![allow(unsafe_code, reason = "the tests map memory and parse it as an image")]

use std::ptr;

use test_images::kinds::{PRELINKED, aliased, arm, described, kinds, seen, x86_64};
use test_images::{Part, Spec, Sym, Value, WEAK};
use vdso_time::elf::Image;
use vdso_time::vdso::{ParseError, Vdso};

const V: &str = "LINUX_2.6";

/// Pages of memory that can be read, between two that cannot.
struct Mapping {
    guard: *mut u8,
    page: usize,
    size: usize,
}

impl Mapping {
    /// Maps `size` bytes, whole pages of them.
    fn new(size: usize) -> Self {
        let page = page_size();
        assert_eq!(size % page, 0);
        let (all, none) = (size + 2 * page, libc::PROT_NONE);
        // SAFETY: the kernel chooses a place where nothing is.
        let guard =
            unsafe { libc::mmap(ptr::null_mut(), all, none, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(guard, libc::MAP_FAILED);
        let mapping = Self { guard: guard.cast(), page, size };
        mapping.protect(libc::PROT_READ | libc::PROT_WRITE);
        mapping
    }

    fn base(&self) -> *mut u8 {
        self.guard.wrapping_add(self.page)
    }

    fn protect(&self, protection: i32) {
        // SAFETY: the pages are this mapping's own.
        let result = unsafe { libc::mprotect(self.base().cast(), self.size, protection) };
        assert_eq!(result, 0);
    }

    /// Puts an image, or what is left of one, at the start.
    fn fill(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        self.protect(libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the pages can be written, nobody borrows them, and they have the room.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base(), bytes.len()) };
        self.protect(libc::PROT_READ);
    }

    fn vdso(&self) -> Result<Vdso<'_>, ParseError> {
        // SAFETY: the pages can be read, and `fill` is not called while the result is used; an image that says that it
        // has more than these pages is not put there.
        unsafe { Vdso::from_ptr(self.base()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nobody borrows it any more.
        let result = unsafe { libc::munmap(self.guard.cast(), self.size + 2 * self.page) };
        assert_eq!(result, 0);
    }
}

fn page_size() -> usize {
    // SAFETY: it has no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// The kinds whose addresses this machine can express, each with its last part at the end of its last page.
fn kinds_of_whole_pages() -> impl Iterator<Item = (&'static str, Spec<'static>)> {
    let fits = |spec: &Spec<'_>| usize::try_from(spec.p_vaddr).is_ok();
    let whole = |spec| Spec { extent: 2 * page_size(), ..spec };
    kinds().into_iter().filter(move |(_, spec)| fits(spec)).map(move |(kind, spec)| (kind, whole(spec)))
}

#[test]
fn nothing_is_read_outside_the_image_whatever_part_is_last() {
    let mapping = Mapping::new(2 * page_size());
    for turns in 0..Part::ALL.len() {
        let mut order = Part::ALL.to_vec();
        order.rotate_left(turns);
        for (kind, spec) in kinds_of_whole_pages().filter(|(_, spec)| spec.sysv_hash || spec.gnu_hash) {
            let order = order.clone();
            let spec = Spec { order, p_vaddr: spec.p_vaddr.max(spec.p_offset as u64), ..spec };
            let built = spec.build();
            assert_eq!(built.bytes.len(), mapping.size);
            mapping.fill(&built.bytes);
            let vdso = mapping.vdso().unwrap_or_else(|error| panic!("{kind}, {turns}: {error}"));
            assert_eq!((vdso.base(), vdso.size()), (mapping.base().cast_const(), mapping.size), "{kind}");
            assert_eq!(seen(vdso.symbols()), described(&spec, &built), "{kind}, {turns}");
        }
    }
}

#[test]
fn nothing_is_read_outside_the_image_whatever_it_says() {
    let mapping = Mapping::new(page_size());
    for (kind, spec) in [("x86_64", x86_64()), ("arm", arm())] {
        for part in Part::ALL {
            let mut order = Part::ALL.to_vec();
            order.retain(|other| *other != part);
            order.push(part);
            let built = Spec { order, extent: page_size(), ..spec.clone() }.build();
            // How far it goes is for the caller of `from_ptr` to know.
            let fields = built.fields.iter().filter(|field| !field.name.starts_with("PT_LOAD.p_"));
            for field in fields {
                for value in [0, 1, mapping.size as u64 - 1, mapping.size as u64, 0xffff_fff0, u64::MAX] {
                    let mut spoilt = built.clone();
                    mapping.fill(&spoilt.set(&field.name, value).bytes);
                    let seen = mapping.vdso().map(|vdso| vdso.symbols().count());
                    let parsed = Image::parse(&spoilt.bytes).map(|image| image.symbols().count());
                    assert_eq!(seen, parsed, "{kind}: {} is {value:#x}", field.name);
                }
            }
        }
    }
}

#[test]
fn a_symbol_is_at_the_base_plus_its_value_less_the_load_address() {
    let mapping = Mapping::new(2 * page_size());
    for (kind, spec) in kinds_of_whole_pages() {
        let built = spec.build();
        mapping.fill(&built.bytes);
        let vdso = mapping.vdso().unwrap();
        for symbol in vdso.symbols() {
            let inside = (symbol.value().wrapping_sub(spec.p_vaddr) + spec.p_offset as u64) as usize;
            let address = vdso.address(&symbol).addr();
            assert_eq!(address, mapping.base().addr() + inside, "{kind}: {symbol:?}");
            assert!(vdso.contains(address), "{kind}: {symbol:?}");
        }
    }
}

#[test]
fn a_prelinked_image_is_where_it_is_mapped() {
    let (wide, p_vaddr) = (usize::BITS == 64, PRELINKED as usize as u64);
    let spec = Spec { wide, p_vaddr, extent: page_size(), ..x86_64() };
    let mapping = Mapping::new(page_size());
    let built = spec.build();
    mapping.fill(&built.bytes);
    let time = mapping.vdso().unwrap().symbol("__vdso_time", Some(V)).unwrap();
    let symbol = built.symbols.iter().find(|symbol| symbol.name == "__vdso_time").unwrap();
    assert_eq!(time.addr() - mapping.base().addr(), symbol.st_value().wrapping_sub(p_vaddr) as usize);
}

#[test]
fn the_values_of_a_relocated_image_are_addresses() {
    let mapping = Mapping::new(page_size());
    let p_vaddr = mapping.base().addr() as u64;
    let wide = usize::BITS == 64;
    let spec = Spec { wide, p_vaddr, relocated: true, extent: page_size(), ..x86_64() };
    let built = spec.build();
    mapping.fill(&built.bytes);
    let vdso = mapping.vdso().unwrap();
    assert!(vdso.symbols().count() == 6);
    for symbol in vdso.symbols() {
        assert_eq!(vdso.address(&symbol).addr() as u64, symbol.value());
    }
}

#[test]
fn a_program_counter_finds_its_symbol() {
    let mapping = Mapping::new(2 * page_size());
    for (kind, spec) in kinds_of_whole_pages() {
        let built = spec.build();
        mapping.fill(&built.bytes);
        let vdso = mapping.vdso().unwrap();
        for symbol in vdso.symbols().filter(|symbol| symbol.size() > 0 && !symbol.is_weak()) {
            let start = vdso.address(&symbol).addr() & !usize::from(spec.thumb);
            for pc in [start, start + 1, start + symbol.size() as usize - 1] {
                assert_eq!(vdso.symbol_at(pc), Some(symbol), "{kind}: {pc:#x}");
            }
            let before = vdso.symbol_at(start - 1);
            assert_ne!(before, Some(symbol), "{kind}");
            assert_ne!(vdso.symbol_at(start + symbol.size() as usize), Some(symbol), "{kind}");
        }
        assert_eq!(vdso.symbol_at(mapping.base().addr()), None, "{kind}: the headers are no code");
    }
}

#[test]
fn bit_0_says_thumb_on_arm_alone() {
    let mapping = Mapping::new(page_size());
    for (machine, thumb) in [(40, true), (3, false)] {
        let spec = Spec { machine, thumb: true, extent: page_size(), ..arm() };
        mapping.fill(&spec.build().bytes);
        let vdso = mapping.vdso().unwrap();
        let clock = vdso.symbols().next().unwrap();
        let address = vdso.address(&clock).addr();
        assert_eq!(address & 1, 1, "the call needs it");
        assert_eq!(vdso.symbol_at(address), Some(clock));
        assert_eq!(vdso.symbol_at(address - 1) == Some(clock), thumb, "machine {machine}");
    }
}

#[test]
fn a_symbol_without_a_size_is_at_its_own_address_alone() {
    let mapping = Mapping::new(page_size());
    let symbols = vec![Sym { size: 0, ..Sym::func("clock", V) }];
    mapping.fill(&Spec { symbols, extent: page_size(), ..x86_64() }.build().bytes);
    let vdso = mapping.vdso().unwrap();
    let start = vdso.symbol("clock", None).unwrap().addr();
    assert_eq!(vdso.symbol_at(start).map(|symbol| symbol.name()), Some(c"clock"));
    assert_eq!((vdso.symbol_at(start + 1), vdso.symbol_at(start - 1)), (None, None));
}

#[test]
fn thumb_code_without_a_size_is_found_by_the_address_that_is_called() {
    let mapping = Mapping::new(page_size());
    let symbols = vec![Sym { size: 0, ..Sym::func("clock", V) }];
    mapping.fill(&Spec { symbols, thumb: true, extent: page_size(), ..arm() }.build().bytes);
    let vdso = mapping.vdso().unwrap();
    let address = vdso.symbol("clock", None).unwrap().addr();
    assert_eq!(vdso.symbol_at(address - 1).map(|symbol| symbol.name()), Some(c"clock"));
    assert_eq!(vdso.symbol_at(address).map(|symbol| symbol.name()), Some(c"clock"));
}

#[test]
fn of_two_names_for_the_same_code_the_global_one_is_found() {
    let mapping = Mapping::new(page_size());
    let [global, alias] = aliased("__vdso_time");
    let first = Sym { value: Value::Next, ..alias };
    let second = Sym { value: Value::Alias, ..global };
    for symbols in [vec![global, alias], vec![first, second]] {
        // Without DT_GNU_HASH, the table keeps this order.
        mapping.fill(&Spec { symbols, gnu_hash: false, extent: page_size(), ..x86_64() }.build().bytes);
        let vdso = mapping.vdso().unwrap();
        let pc = vdso.symbol("time", None).unwrap().addr();
        assert_eq!(vdso.symbol_at(pc).unwrap().name(), c"__vdso_time");
    }
    let symbols = vec![Sym { bind: WEAK, ..global }];
    mapping.fill(&Spec { symbols, extent: page_size(), ..x86_64() }.build().bytes);
    let vdso = mapping.vdso().unwrap();
    let pc = vdso.symbol("__vdso_time", None).unwrap().addr();
    assert!(vdso.symbol_at(pc).is_some_and(|symbol| symbol.is_weak()));
}

#[test]
fn contains_the_bytes_of_the_image_and_no_other() {
    let mapping = Mapping::new(page_size());
    let built = Spec { extent: 0, ..x86_64() }.build();
    mapping.fill(&built.bytes);
    let vdso = mapping.vdso().unwrap();
    let (base, size) = (mapping.base().addr(), built.bytes.len());
    assert_eq!(vdso.size(), size);
    for (pc, inside) in [(base, true), (base + size - 1, true), (base - 1, false), (base + size, false)] {
        assert_eq!(vdso.contains(pc), inside, "{:#x}", pc.wrapping_sub(base));
        assert!(inside || vdso.symbol_at(pc).is_none());
    }
    assert!(!vdso.contains(0) && !vdso.contains(usize::MAX));
}

#[test]
fn code_that_claims_to_have_no_end_ends_with_the_image() {
    let mapping = Mapping::new(page_size());
    let symbols = vec![Sym { size: u64::MAX, ..Sym::func("clock", V) }];
    let built = Spec { symbols, ..x86_64() }.build();
    mapping.fill(&built.bytes);
    let vdso = mapping.vdso().unwrap();
    let end = mapping.base().addr() + built.bytes.len();
    assert_eq!(vdso.symbol_at(end - 1).map(|symbol| symbol.name()), Some(c"clock"));
    assert_eq!((vdso.symbol_at(end), vdso.symbol_at(usize::MAX)), (None, None));
}

#[test]
fn what_is_no_image_is_refused_without_reading_behind_its_first_page() {
    let mapping = Mapping::new(page_size());
    for (bytes, reason) in [
        (&b"\0"[..], ParseError::NotElf),
        (b"\x7fELF\x07", ParseError::Class),
        (b"\x7fELF\x02\x07", ParseError::ByteOrder),
        (b"\x7fELF\x02\x01", ParseError::ProgramHeaders),
    ] {
        mapping.fill(&[bytes, &[0; 64]].concat());
        assert_eq!(mapping.vdso().map(|_| ()), Err(reason));
    }
    let mut built = x86_64().build();
    built.set("PT_LOAD.p_filesz", 1 << 30).set("PT_LOAD.p_memsz", 1 << 30);
    mapping.fill(&built.bytes);
    assert_eq!(mapping.vdso().map(|_| ()), Err(ParseError::TooLarge));
}

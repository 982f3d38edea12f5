//! Tests of names, and of files and memory whose content a hostile process may have chosen.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, chown};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{process, thread};

use addr2line::Context;
use gimli::{BaseAddresses, EhFrame, EndianReader, NativeEndian, Reader as _, SectionId};
use nix::sys::signal::{Signal, kill};
use object::{Object as _, ObjectSection as _};

#[path = "../program/compiled.rs"]
mod compiled;

use compiled::{address_of, compiled};

use super::bounded::{Bounded, Limits, memory};
use super::clock_function::role;
use super::file::{self, Image};
use super::frame::{Frame, KnownFunctions, MOST_NAMES};
use super::module::{Module, context, debug_frames, tables};
use super::names::{self, demangled};
use super::perf_map::Opened;
use super::{AddressSpace, Files, debug_file, perf_map};
use crate::common::{child, not_run_here, target_tmpdir};
use crate::mapping::{FileId, Mapping, parsed as mapping, vdso};
use crate::perf::{Registers, Sample};
use crate::unwind::Abi;

/// In /tmp, any user can write a map for another user's process. A map can also belong to an
/// earlier process that had the same id.
#[test]
fn the_perf_map_of_another_user_or_process_is_not_read() {
    let path = format!("/tmp/perf-{}.map", process::id());
    fs::write(&path, "1000 8 name\n").unwrap();
    let opened = || perf_map::open(process::id(), process::id());
    let is_opened = || matches!(opened(), Opened::Map(_));
    let own = is_opened();
    let given = chown(&path, Some(65_534), None);
    let others = is_opened();
    let _ = chown(&path, Some(0), None);
    let a_day = Duration::from_secs(24 * 60 * 60);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - a_day).unwrap();
    let is_stale = matches!(opened(), Opened::Stale);
    let _ = fs::remove_file(&path);
    assert!(own);
    assert!(is_stale);
    match given {
        Ok(()) => assert!(!others),
        Err(error) => not_run_here(error),
    }
}

#[test]
fn the_functions_of_a_process_that_ended_have_names_until_others_take_their_place() {
    let child = child::fork(|| {
        loop {
            thread::park();
        }
    });
    let mut space = AddressSpace::of(child.as_raw() as u32, Files::default()).unwrap();
    kill(child, Signal::SIGKILL).unwrap();
    child::wait(child);
    let function = libc::getppid as *const () as u64;
    if space.mapped.mapping(function).is_none() {
        return not_run_here("/proc shows the mappings of an emulator");
    }
    assert!(space.functions(function + 1)[0].ends_with("getppid"));
    // Another process may have this id now. It has no file at this address.
    let page = function & !0xfff;
    let (path, file) = ("".into(), FileId::default());
    space.map(Mapping {
        range: page..page + 0x1000,
        offset: 0,
        path,
        file,
        seen: SystemTime::now(),
    });
    assert!(!space.functions(function + 1)[0].ends_with("getppid"));
}

/// A process can set the `mtime` of its file to any time, and then remove the file.
#[test]
fn a_removed_file_can_have_any_time_of_modification() {
    let now = SystemTime::now();
    let path = format!("/dev/shm/vdso-who-{}", process::id());
    let Ok(file) = fs::File::create(&path) else {
        return not_run_here("/dev/shm is missing");
    };
    fs::remove_file(&path).unwrap();
    let most = Duration::from_secs(i64::MAX as u64);
    let second = Duration::from_secs(1);
    let first_time = SystemTime::UNIX_EPOCH - most - second;
    let last_time = SystemTime::UNIX_EPOCH + most;
    for (time, expected) in [
        (first_time, false),
        (SystemTime::UNIX_EPOCH - second, false),
        (now - second, false),
        (now + second, true),
        (last_time, true),
    ] {
        file.set_modified(time).unwrap();
        let image = Image::of(file.try_clone().unwrap()).unwrap();
        let version = image.version().unwrap();
        assert_eq!(version.is_changed_after(now), expected, "{time:?}");
    }
}

/// The process can map another file between the moment at which a mapping is reported and the
/// moment at which its file is opened. Here the program of this process takes the place of a file
/// with other content.
#[test]
fn a_file_that_is_not_the_mapped_one_is_not_opened() {
    let path = target_tmpdir().join(format!("who-mapped-{}", process::id()));
    fs::write(&path, "12345678").unwrap();
    let metadata = fs::metadata(&path).unwrap();
    let device = metadata.dev();
    let file = FileId {
        device: (libc::major(device), libc::minor(device)),
        inode: metadata.ino(),
    };
    let program = fs::metadata("/proc/self/exe").unwrap();
    let space = AddressSpace::of(process::id(), Files::default()).unwrap();
    let function = mapping as *const () as u64;
    let reported = space.mapped.mapping(function).cloned();
    let Some(reported) = reported else {
        return not_run_here("/proc shows the mappings of an emulator");
    };
    let start = reported.range.start;
    let content = |path: &str| {
        let mut space = AddressSpace::new(process::id(), Files::default());
        space.map(Mapping {
            path: path.into(),
            offset: 0,
            file,
            ..reported.clone()
        });
        let mut code = [0; 8];
        space.code_before(start + 8, &mut code)?;
        Some(code)
    };
    // The path of the program makes `exe` a candidate, even without the capability for `map_files`.
    let in_exe = content(&reported.path);
    let in_file = content(path.to_str().unwrap());
    fs::remove_file(&path).unwrap();
    if program.dev() != device {
        return not_run_here("the program is on another file system than its tmp directory");
    }
    assert_eq!(in_exe, None);
    assert_eq!(in_file, Some(*b"12345678"));
}

/// The first process has ended, and the path is not in this program's root directory. The second
/// process has the same file under a path that leads to it.
#[test]
fn a_file_that_one_process_cannot_open_is_opened_for_another() {
    let path = target_tmpdir().join(format!("who-opened-{}", process::id()));
    fs::write(&path, "12345678").unwrap();
    let file = FileId {
        device: (0, 0),
        inode: fs::metadata(&path).unwrap().ino(),
    };
    let files = Files::default();
    let content = |pid: u32, path: &str| {
        let mut space = AddressSpace::new(pid, files.clone());
        space.map(Mapping {
            range: 0x1000..0x2000,
            offset: 0,
            path: path.into(),
            file,
            seen: SystemTime::now(),
        });
        let mut code = [0; 8];
        space.code_before(0x1008, &mut code)?;
        Some(code)
    };
    let of_ended = content((1 << 22) + 1, "/in/a/container");
    let of_running = content(process::id(), path.to_str().unwrap());
    fs::remove_file(&path).unwrap();
    assert_eq!(of_ended, None);
    assert_eq!(of_running, Some(*b"12345678"));
}

/// Fills the stack and the registers with random numbers. Most of them are addresses of code or of
/// the stack.
#[test]
fn the_chain_of_any_registers_and_stack_ends() {
    let mut space = AddressSpace::of(process::id(), Files::default()).unwrap();
    let code = space.mapped.mappings[0].range.start;
    let mut random = Random(1);
    let mut longest = 0;
    for _ in 0..2000 {
        let sp = 0x7fff_0000_0000;
        let mut word = || match random.next() % 4 {
            0 => code + random.next() % 4096,
            1 | 2 => sp + random.next() % 4096,
            _ => random.next() << (random.next() % 64),
        };
        let registers = Registers {
            pc: word(),
            sp: if word() % 8 == 0 { word() } else { sp },
            fp: word(),
            lr: word(),
        };
        let callchain: Vec<_> = (0..256).map(|_| word()).collect();
        let stack = callchain
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let (is_64_bit, pid, number) = (word() % 4 != 0, 0, None);
        let taken = Sample {
            pid,
            thread: pid,
            in_kernel: false,
            is_64_bit,
            registers,
            number,
            first_argument: None,
            stack,
            callchain,
            kernel_chain: vec![],
        };
        let chain = space.chain(&taken);
        longest = longest.max(chain.len());
        space.caller(&chain, 2);
    }
    assert!((10..=129).contains(&longest), "{longest}");
}

#[test]
fn a_file_of_any_bytes_is_read_without_a_panic() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Some(vdso) = vdso(&maps) else { return };
    let mut image = vec![0; (vdso.end - vdso.start) as usize];
    fs::File::open("/proc/self/mem")
        .unwrap()
        .read_exact_at(&mut image, vdso.start)
        .unwrap();
    let mut random = Random(2);
    let mut parsed = 0;
    for round in 0..3000 {
        let mut bytes = image.clone();
        for _ in 0..=round % 16 {
            let size = [64, 4096, bytes.len() as u64][random.next() as usize % 3];
            let at = random.next() % size;
            bytes[at as usize] = random.next() as u8;
        }
        bytes.truncate(if round % 4 == 0 {
            random.next() as usize % bytes.len()
        } else {
            bytes.len()
        });
        let Some(module) = Module::parse(Image::Bytes(bytes.into()), "", |_| None, None) else {
            continue;
        };
        parsed += 1;
        for _ in 0..50 {
            let address = module
                .address(random.next() % 8192)
                .unwrap_or(random.next());
            module.frames(address, "vdso");
            module
                .unwind_row(address)
                .map(|row| row.registers().count());
        }
    }
    assert!(parsed > 100, "{parsed}");
}

/// Parses the debug information of a unit with these abbreviations, entries and ranges. Returns
/// `None` if it is ignored.
fn debug(
    abbreviations: &[u8],
    entries: &[u8],
    ranges: &[u8],
    limits: Limits,
) -> Option<Context<Bounded>> {
    // The header of the unit: DWARF 4, abbreviations at offset 0, addresses of 8 bytes.
    let unit = [&[4, 0, 0, 0, 0, 0, 8], entries].concat();
    let info = [&(unit.len() as u32).to_le_bytes(), &unit[..]].concat();
    let sections = |id| {
        let bytes = match id {
            SectionId::DebugInfo => &info,
            SectionId::DebugAbbrev => abbreviations,
            SectionId::DebugRanges => ranges,
            _ => &[],
        };
        EndianReader::new(bytes.into(), NativeEndian)
    };
    context(sections, limits)
}

/// Gives all functions one long list of ranges. addr2line keeps a copy of it for each function. The
/// limit on memory is tested in a child process, because other tests free memory meanwhile.
#[test]
fn debug_information_that_takes_too_much_memory_or_time_is_ignored() {
    // Abbreviation 1 is a compile unit with its addresses, abbreviation 2 is a function with a name
    // and ranges.
    let abbreviations = [
        1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 0, 3, 8, 0x55, 0x17, 0, 0, 0,
    ];
    let unit = [
        &[1][..],
        &0x1000_u64.to_le_bytes(),
        &0x1000_u32.to_le_bytes(),
    ]
    .concat();
    let entries = [unit, [2, b'f', 0, 0, 0, 0, 0].repeat(128), vec![0]].concat();
    let range = [0, 0x1000_u64].map(u64::to_le_bytes).concat();
    let ranges = [range.repeat(1 << 14), vec![0; 16]].concat();
    child::forked(|| {
        let little_memory = Limits {
            memory: memory() + (8 << 20),
            ..Limits::default()
        };
        let little_time = Limits {
            left: (1 << 20).into(),
            ..Limits::default()
        };
        for (limits, expected) in [
            (Limits::default(), Some("f")),
            (little_memory, None),
            (little_time, None),
        ] {
            let context = debug(&abbreviations, &entries, &ranges, limits);
            let frames = context.and_then(|context| debug_frames(&context, 0x1400, ""));
            assert_eq!(frames.as_ref().map(|frames| &*frames[0].function), expected);
        }
    });
}

#[test]
fn a_search_without_a_result_counts_as_reading() {
    let limits = Rc::new(Limits {
        left: 0.into(),
        ..Limits::default()
    });
    let bytes = EndianReader::new([1; 100][..].into(), NativeEndian);
    let reader = Bounded::new(bytes, limits.clone());
    let before = limits.left.get();
    assert!(reader.find(2).is_err());
    assert_eq!(limits.left.get(), before - 101);
}

/// Builds a section `.eh_frame`. An entry begins with its length. The next word is 0 in a CIE, and
/// in an FDE it is the distance to the start of the function's CIE.
#[test]
fn unwind_entries_are_limited_in_number_and_size() {
    fn cie(padding: usize) -> Vec<u8> {
        // The version, no augmentation, the alignments of code and data, and the register of the
        // return address.
        let content = [
            &[0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0][..],
            &vec![0; padding],
        ]
        .concat();
        [&(content.len() as u32).to_ne_bytes(), &content[..]].concat()
    }
    fn fde(to_cie: usize, function: u64, padding: usize) -> Vec<u8> {
        let content = [
            &(to_cie as u32 + 4).to_ne_bytes(),
            &function.to_ne_bytes()[..],
            &16_u64.to_ne_bytes(),
            &vec![0; padding],
        ]
        .concat();
        [&(content.len() as u32).to_ne_bytes(), &content[..]].concat()
    }
    let mut bytes = cie(0);
    for (function, padding) in [(0x3000, 0), (0x1000, 1000), (0x2000, 1 << 16)] {
        bytes.extend(fde(bytes.len(), function, padding));
    }
    let long_cie = cie(1 << 10);
    bytes.extend(&long_cie);
    bytes.extend(fde(long_cie.len(), 0x4000, 0));
    bytes.extend(fde(bytes.len(), 0x5000, 0));
    let mut frames = EhFrame::from(EndianReader::new(bytes.into(), NativeEndian));
    frames.set_address_size(8);
    let bases = BaseAddresses::default();
    let section = (frames, bases);
    let functions = |most| {
        let tables = tables(&section, most);
        let starts = tables.iter().map(|(range, _)| range.start);
        starts.collect::<Vec<_>>()
    };
    assert_eq!(functions(5), [0x1000, 0x3000, 0x5000]);
    assert_eq!(functions(2), [0x1000, 0x3000]);
    assert_eq!(functions(1), [0x3000]);
}

/// addr2line recurses into nested entries, so they must not be too deep. Also tries the short name
/// of a C++ function whose demangled text would be extremely long.
#[test]
fn deep_debug_information_and_endless_names_are_ignored() {
    for (depth, is_used) in [(100, true), (100_000, false)] {
        // Abbreviation 1 is a compile unit (0x11), abbreviation 2 is an inlined subroutine (0x1d).
        // Both have children.
        let abbreviations = [1, 0x11, 1, 0, 0, 2, 0x1d, 1, 0, 0, 0];
        let entries = [vec![1], vec![2; depth], vec![0; depth + 1]].concat();
        assert_eq!(
            debug(&abbreviations, &entries, &[], Limits::default()).is_some(),
            is_used,
            "{depth}"
        );
    }
    // The function f(P<int, int>, P<S0_, S0_>, P<S1_, S1_>, ...), in which each argument repeats
    // the one before it twice.
    let digits: Vec<_> = (b'0'..=b'9').chain(b'A'..=b'Z').map(char::from).collect();
    let pairs: Vec<_> = digits[..30]
        .iter()
        .map(|digit| format!("S_IS{digit}_S{digit}_E"))
        .collect();
    let endless = format!("_Z1f1PIiiE{}", pairs.concat());
    for (name, expected) in [("_ZN1a1bEv", "a::b()"), ("a", "a"), (&endless, &endless)] {
        assert_eq!(demangled(name.as_bytes()), expected);
    }
}

/// Machine code from GNU as and from Go's linker: of C, of Go 1.20, of Go 1.19 with a large frame,
/// and of i386.
#[test]
fn functions_that_set_their_frame_pointer_are_recognised() {
    for (arch, is_64_bit, code, expected) in [
        (
            "x86_64",
            true,
            &[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5][..],
            true,
        ),
        (
            "x86_64",
            true,
            &[
                0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10,
            ],
            true,
        ),
        (
            "x86_64",
            true,
            &[0x48, 0x8d, 0xac, 0x24, 0xb0, 0, 0, 0],
            true,
        ),
        (
            "x86_64",
            true,
            &[0x55, 0x53, 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xfb],
            false,
        ),
        ("x86_64", false, &[0x55, 0x89, 0xe5], true),
        ("x86_64", false, &[0x55, 0x48, 0x89, 0xe5], false),
    ] {
        let abi = Abi::of(arch, is_64_bit).unwrap();
        assert_eq!(abi.sets_frame_pointer(code), expected, "{arch} {code:x?}");
    }
}

/// Passes the build id to the linker, so that the name of the debug file is known.
#[test]
fn a_debug_file_is_that_of_the_build_id() {
    const DEBUG: &str =
        r#"objcopy --only-keep-debug "$P" "$P.debug"; nm "$P" >"$P.nm"; strip "$P""#;
    let [own, other] = [
        ("own build id", "-O2 -g -Wl,--build-id=0x0123456789abcdef"),
        (
            "another build id",
            "-O2 -g -Wl,--build-id=0x0123456789abcdee",
        ),
    ]
    .map(|(name, flags)| compiled((name, "gcc", flags, "reads.c", DEBUG)));
    let (Some(own), Some(other)) = (own, other) else {
        return;
    };
    let [debug, other] = [&own, &other].map(|path| path.with_extension("debug"));
    for (path, file, expected) in [
        ("/p", &debug, Some("often")),
        ("/p", &other, None),
        ("/p", &"none".into(), None),
        // The functions of libc are skipped.
        ("/lib/libc.so.6", &debug, None),
    ] {
        let find = |path: &Path| {
            let is_it = path == Path::new("/usr/lib/debug/.build-id/01/23456789abcdef.debug");
            fs::File::open(file)
                .ok()
                .filter(|_| is_it)
                .map(|file| Image::of(file).unwrap())
        };
        let image = Image::of(fs::File::open(&own).unwrap()).unwrap();
        let module = Module::parse(image, path, find, None).unwrap();
        let frames = module.frames(address_of(&own, "often") + 4, "p");
        assert_eq!(
            frames.first().map(|frame| &*frame.function),
            expected,
            "{path} {file:?}"
        );
        let source = frames
            .first()
            .and_then(|frame| frame.file.as_deref())
            .unwrap_or_default();
        assert_eq!(
            source.ends_with("reads.c"),
            expected.is_some(),
            "{path} {file:?}: {source}"
        );
    }
}

/// Makes a file with 1000 section headers that all name the same 4 MB of notes. Reading the notes
/// once for each header would mean to parse 4 GB.
#[test]
fn any_number_of_notes_is_searched_for_a_build_id_at_once() {
    let (notes, headers) = (4_000_000_u64, 1000_u16);
    let mut bytes = fs::read("/proc/self/exe").unwrap();
    bytes.truncate(64);
    bytes[0x28..0x30].copy_from_slice(&(64 + notes).to_ne_bytes()); // e_shoff
    bytes[0x3c..0x40].copy_from_slice(&[headers, 1].map(u16::to_ne_bytes).concat()); // e_shnum, e_shstrndx
    // A note without a description, of type 1, which is not a build id.
    let note = [4_u32, 0, 1, u32::from_ne_bytes(*b"GNU\0")]
        .map(u32::to_ne_bytes)
        .concat();
    bytes.extend(note.iter().cycle().take(notes as usize));
    for header in 0..headers {
        // SHT_STRTAB or SHT_NOTE, sh_offset, sh_size and sh_addralign.
        let words = [
            if header == 1 { 3 } else { 7 } << 32,
            0,
            0,
            64,
            notes,
            0,
            4,
            0,
        ];
        bytes.extend(words.iter().flat_map(|word: &u64| word.to_ne_bytes()));
    }
    let image = Image::Bytes(bytes.into());
    let ranges = image.ranges();
    let file = file::elf(&ranges).unwrap();
    assert_eq!(file.sections().count(), usize::from(headers) - 1);
    assert!(debug_file::of(&file, Path::new("/p"), |_| None, None).is_none());
}

/// Makes files whose file header refers to the section header at index 0 for the numbers of
/// headers. Section 1, the table of the sections' names, is empty.
#[test]
fn a_file_with_very_many_headers_is_not_parsed() {
    for (sections, segments, expected) in [
        (1024, 1, true),
        (1025, 1, false),
        (1 << 20, 1, false),
        (2, 1024, true),
        (2, 1025, false),
        (2, 1 << 20, false),
    ] {
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        bytes.truncate(64);
        let (of_section, of_segment) = (64, 56);
        let first_segment = 64 + sections * of_section;
        bytes.resize(first_segment + segments * of_segment, 0);
        bytes[0x20..0x28].copy_from_slice(&(first_segment as u64).to_ne_bytes()); // e_phoff
        bytes[0x28..0x30].copy_from_slice(&64_u64.to_ne_bytes()); // e_shoff
        bytes[0x38..0x3a].copy_from_slice(&u16::MAX.to_ne_bytes()); // e_phnum
        bytes[0x3c..0x40].copy_from_slice(&[0, 1].map(u16::to_ne_bytes).concat()); // e_shnum, e_shstrndx
        bytes[64 + 0x20..64 + 0x28].copy_from_slice(&(sections as u64).to_ne_bytes()); // sh_size
        bytes[64 + 0x2c..64 + 0x30].copy_from_slice(&(segments as u32).to_ne_bytes()); // sh_info
        bytes[128 + 4] = 3; // sh_type: SHT_STRTAB
        let module = Module::parse(Image::Bytes(bytes.into()), "", |_| None, None);
        assert_eq!(module.is_some(), expected, "{sections} {segments}");
    }
}

/// Keeps the functions of 2000 addresses, each with a name of 16 KiB.
#[test]
fn the_names_of_a_process_are_limited_in_size() {
    let mut known = KnownFunctions::default();
    let mut largest = 0;
    for address in 0..2000 {
        let frame = Frame::named("f".repeat(1 << 14), "");
        known.insert(address, [(role(&frame), Arc::new(frame))].into());
        assert!(known.get(address).is_some());
        largest = largest.max(known.size);
    }
    assert!(largest > MOST_NAMES / 2, "{largest}");
    assert!(largest <= MOST_NAMES, "{largest}");
    assert!(known.get(0).is_none());
}

/// Tries 15 KB of xz data that decompress to 100 MB, and compressed sections whose header claims a
/// size of 1 TB.
#[test]
fn sections_that_become_too_large_are_ignored() {
    const XZ: &str = r#"for size in 1 100; do
        head -c ${size}M /dev/zero | xz >"$P.xz"
        objcopy --add-section .gnu_debugdata="$P.xz" "$P" "$P.$size"
    done"#;
    if let Some(path) = compiled(("large xz", "gcc", "-O2 -s", "reads.c", XZ)) {
        for (file, size) in [("1", Some(1 << 20)), ("100", None)] {
            let image = Image::of(fs::File::open(path.with_extension(file)).unwrap()).unwrap();
            let ranges = image.ranges();
            let parsed = file::elf(&ranges).unwrap();
            let found = debug_file::of(&parsed, Path::new("/p"), |_| None, None);
            assert_eq!(found.map(|found| found.len()), size, "{file}");
        }
    }
    for (format, compress) in [
        (
            "large zlib",
            r#"nm "$P" >"$P.nm"; objcopy --compress-debug-sections=zlib "$P""#,
        ),
        (
            "large zstd",
            r#"nm "$P" >"$P.nm"; objcopy --compress-debug-sections=zstd "$P""#,
        ),
    ] {
        let Some(path) = compiled((format, "gcc", "-O2 -g", "reads.c", compress)) else {
            continue;
        };
        let (mut bytes, often) = (fs::read(&path).unwrap(), address_of(&path, "often"));
        let line = |bytes: &[u8]| {
            Module::parse(Image::Bytes(bytes.into()), "/p", |_| None, None)?.frames(often + 4, "p")
                [0]
            .line
        };
        assert!(line(&bytes).is_some(), "{format}");
        let (start, _) = object::File::parse(&*bytes)
            .unwrap()
            .section_by_name(".debug_info")
            .unwrap()
            .file_range()
            .unwrap();
        // `ch_size`, the second word of `Elf64_Chdr`.
        bytes[start as usize + 8..][..8].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        assert_eq!(line(&bytes), None, "{format}");
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Uses the names that the kernel's records and /proc/PID/maps give to memory.
#[test]
fn memory_without_a_file_has_one_name() {
    for (path, expected) in [
        ("", "[anon]"),
        ("//anon", "[anon]"),
        ("[anon:v8]", "[anon]"),
        ("[vdso]", "[vdso]"),
        ("/a/b (deleted)", "b"),
    ] {
        assert_eq!(names::of_module(path), expected, "{path}");
    }
}

/// Reads code in a file of 1 TB, and nothing else of that file.
#[test]
fn the_code_before_an_address_costs_no_memory() {
    let path = target_tmpdir().join("who-large");
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(b"12345678", 1 << 30).unwrap();
    if file.set_len(1 << 40).is_err() {
        return not_run_here("the file system has no sparse files");
    }
    let mut space = AddressSpace::new(process::id(), Files::default());
    let (path, id) = (
        path.to_str().unwrap().into(),
        fs::metadata(&path).unwrap().ino(),
    );
    let file = FileId {
        device: (0, 0),
        inode: id,
    };
    space.map(Mapping {
        range: 0x1000..0x3000,
        offset: 1 << 30,
        path,
        file,
        seen: SystemTime::now(),
    });
    let before = memory();
    let mut code = [0; 8];
    assert_eq!(space.code_before(0x1008, &mut code), Some(()));
    assert_eq!(code, *b"12345678");
    assert_eq!(space.code_before(0x1007, &mut code), None);
    // It is not an ELF file, so its functions have no names.
    assert!(space.functions(0x1008)[0].starts_with("who-large+0x"));
    assert!(memory() < before + (64 << 20), "{before} {}", memory());
}

#[test]
fn lines_of_maps_are_executable_mappings_or_nothing() {
    let line = "7f00-8000 r-xp 00001000 fe:01 77 /a b (deleted)";
    let found = mapping(line).unwrap();
    assert_eq!(
        (
            found.range,
            found.offset,
            found.file.device,
            found.file.inode,
            &*found.path
        ),
        (0x7f00..0x8000, 0x1000, (0xfe, 1), 77, "/a b (deleted)")
    );
    for line in [
        "7f00-8000 rw-p 0 0:0 0 ",
        "7f00 r-xp 0 0:0 0",
        "",
        "x-y r-xp 0 0:0 0",
    ] {
        assert!(mapping(line).is_none(), "{line}");
    }
}

/// Compares the result with a simple implementation that looks at every mapping.
#[test]
fn a_mapping_takes_the_place_of_those_that_it_overlaps() {
    let mut space = AddressSpace::new(0, Files::default());
    let (mut oracle, mut random) = (Vec::<Range<u64>>::new(), Random(3));
    for _ in 0..2000 {
        let start = random.next() % 64;
        let range = start..start + 1 + random.next() % 8;
        space.map(Mapping {
            range: range.clone(),
            offset: 0,
            path: "".into(),
            file: FileId::default(),
            seen: SystemTime::now(),
        });
        oracle.retain(|old| old.end <= range.start || range.end <= old.start);
        oracle.push(range);
        oracle.sort_by_key(|range| range.start);
        assert!(
            space
                .mapped
                .mappings
                .iter()
                .map(|mapping| &mapping.range)
                .eq(&oracle),
            "{oracle:?}"
        );
    }
}

/// This would take minutes if each new mapping were compared with all others.
#[test]
fn a_process_can_have_many_mappings() {
    let mut space = AddressSpace::new(0, Files::default());
    for start in 0..1 << 18 {
        let (path, file) = (Arc::from(""), FileId::default());
        space.map(Mapping {
            range: start..start + 1,
            offset: 0,
            path,
            file,
            seen: SystemTime::now(),
        });
    }
    assert_eq!(
        space
            .mapped
            .mapping(1 << 17)
            .map(|mapping| mapping.range.start),
        Some(1 << 17)
    );
}

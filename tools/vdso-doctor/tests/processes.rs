//! The vDSO of child processes.

use std::env::consts::ARCH;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, id};
use std::ptr::NonNull;
use std::thread;

use goblin::elf::{
    Elf,
    note::NT_GNU_BUILD_ID,
    program_header::{PT_GNU_EH_FRAME, PT_LOAD},
};
use nix::sched::{CloneFlags, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{Pid, Uid, chroot, getppid, pause, setuid};
use test_images::{Spec, Sym};
use test_support::not_run::target_tmpdir;
use test_support::{child, command, has_proc, maps, nix, not_run_here, oracle, vector};
use vdso_doctor::{Call, Cause, Location, ProcessDiagnosis, ProcessError, ProcessVdso, check};
use vdso_time::vdso::Vdso;

/// A child that sleeps. It is killed when this is dropped.
struct Sleeper(Pid);

impl Sleeper {
    /// Forks this process, and lets the child do some work. Returns `None` if the child could not
    /// do the work, because this machine lacks something.
    fn after(work: impl FnOnce() -> io::Result<()>) -> Option<Self> {
        let (mut reader, mut writer) = UnixStream::pair().unwrap();
        // The parent drops this closure and with it the writing end, so if the child dies, the
        // parent reads an end of file.
        let child = Self(child::fork(move || {
            let said = work().map_or_else(|error| error.to_string(), |()| "ready".into());
            writer.write_all(said.as_bytes()).unwrap();
            loop {
                pause();
            }
        }));
        let mut said = [0; 200];
        let length = reader.read(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said[..length]);
        if said != "ready" {
            not_run_here(said);
            return None;
        }
        Some(child)
    }

    fn id(&self) -> u32 {
        self.0.as_raw() as u32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Returns whether a child's vDSO is this process's. In an emulator, /proc shows the emulator's.
fn is_testable() -> bool {
    if !has_proc() {
        return false;
    }
    if oracle::sysinfo_ehdr() != 0 && maps::named("self", "[vdso]").unwrap().is_empty() {
        not_run_here("this kernel is gVisor, whose /proc/self/maps has no [vdso]");
        return false;
    }
    if check(&Call::USUAL).is_err_and(|finding| finding.cause == Cause::Emulated) {
        not_run_here("an emulator");
        return false;
    }
    if oracle::sysinfo_ehdr() == 0 {
        assert_eq!(ProcessVdso::read(id()).unwrap_err(), ProcessError::NoVdso);
        not_run_here("there is no vDSO");
        return false;
    }
    true
}

#[test]
fn a_childs_vdso_has_this_processs_bytes_and_addresses() {
    if !is_testable() {
        return;
    }
    let Some(child) = Sleeper::after(|| Ok(())) else {
        return;
    };
    let seen = ProcessVdso::read(child.id()).unwrap();
    let here = maps::named("self", "[vdso]").unwrap();
    assert_eq!(seen.range, here.start as u64..here.end as u64);
    let mut bytes = vec![0; here.len()];
    let memory = File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, here.start as u64).unwrap();
    assert!(seen.bytes == bytes, "the copy differs");

    let vdso = Vdso::locate().unwrap();
    let mut expected = Vec::new();
    for (symbol, address) in vdso.symbols() {
        // Bit 0 is not part of the address: it is set for Thumb code.
        let start = (address.addr() & !1) as u64;
        expected.push(start..start + symbol.size());
    }
    let ranges: Vec<_> = seen
        .symbols
        .iter()
        .map(|symbol| symbol.range.clone())
        .collect();
    assert_eq!(ranges, expected);
    let long = ranges.iter().find(|range| !range.is_empty()).unwrap();
    let found = seen.symbol_at(long.end - 1).unwrap();
    assert_eq!(found.range, *long);

    let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
    assert!(diagnosis.is_own_image, "{diagnosis}");
    let is_in_user_space = diagnosis.location == Location::UserSpace;
    assert_eq!(is_in_user_space, check(&Call::USUAL).is_ok(), "{diagnosis}");
}

#[test]
fn a_vdsos_build_id_and_its_frames_are_those_that_goblin_finds() {
    if !is_testable() {
        return;
    }
    let Some(child) = Sleeper::after(|| Ok(())) else {
        return;
    };
    let seen = ProcessVdso::read(child.id()).unwrap();
    let elf = Elf::parse(&seen.bytes).unwrap();
    let mut build_id = None;
    for note in elf.iter_note_headers(&seen.bytes).unwrap() {
        let note = note.unwrap();
        if note.n_type == NT_GNU_BUILD_ID {
            let digits = note.desc.iter().map(|byte| format!("{byte:02x}"));
            build_id = Some(digits.collect::<String>());
        }
    }
    assert_eq!(seen.build_id, build_id);

    let mut headers = elf
        .program_headers
        .iter()
        .filter(|header| header.p_memsz > 0);
    let load = headers
        .clone()
        .find(|header| header.p_type == PT_LOAD)
        .unwrap();
    let frames = headers.find(|header| header.p_type == PT_GNU_EH_FRAME);
    let frames = frames.map(|header| {
        let start = seen.range.start + (header.p_vaddr - load.p_vaddr);
        start..start + header.p_memsz
    });
    assert_eq!(seen.eh_frame_hdr, frames);
}

/// Maps a file whose name is not UTF-8, and gives the process such a name as well.
#[allow(unsafe_code, reason = "a file is mapped")]
fn take_names_that_are_no_text() -> io::Result<()> {
    let path = target_tmpdir().join(OsStr::from_bytes(b"mapped-\xff"));
    fs::write(&path, "content")?;
    let file = File::open(path)?;
    let size = NonZero::new(7).unwrap();
    // SAFETY: the kernel chooses a free address, and nothing uses the mapping.
    unsafe {
        mmap(
            None,
            size,
            ProtFlags::PROT_READ,
            MapFlags::MAP_PRIVATE,
            file,
            0,
        )
    }?;
    fs::write("/proc/self/comm", b"a\x1b[31m\xff")
}

/// Looks for control characters, which a terminal would obey.
#[test]
fn names_that_are_not_utf_8_do_not_hide_the_vdso_and_control_characters_are_escaped() {
    if !is_testable() {
        return;
    }
    let Some(child) = Sleeper::after(take_names_that_are_no_text) else {
        return;
    };
    let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
    assert!(
        diagnosis.is_own_image && diagnosis.name == "a\x1b[31m\u{fffd}",
        "{diagnosis}"
    );
    let report = diagnosis.to_string();
    assert!(
        report.contains("(a\\u{1b}[31m\u{fffd})") && !report.contains('\x1b'),
        "{report}"
    );
}

#[test]
fn a_process_without_a_vdso_is_an_error() {
    if !is_testable() {
        return;
    }
    for (tag, value, expected) in [
        // Nothing is mapped in the first page. The vDSO itself stays: an i386 libc makes its system
        // calls there.
        (libc::AT_SYSINFO_EHDR, Some(4096), ProcessError::Unmapped),
        (libc::AT_SYSINFO_EHDR, None, ProcessError::NoVdso),
        // Without this entry the width of the vector's words is unknown, and so is the address.
        (libc::AT_PHENT, None, ProcessError::Unmapped),
    ] {
        let Some(child) = Sleeper::after(|| vector::change(tag as usize, value)) else {
            return;
        };
        assert_eq!(
            ProcessVdso::read(child.id()).unwrap_err(),
            expected,
            "{tag}: {value:?}"
        );
    }
}

/// Maps a file with the name of a gVisor sandbox's memory, as each process in such a sandbox does.
#[allow(unsafe_code, reason = "a file is mapped")]
fn map_the_memory_of_gvisor() -> io::Result<()> {
    let file = memfd_create(c"runsc-memory", MFdFlags::empty())?;
    let size = NonZero::new(4096).unwrap();
    let access = ProtFlags::PROT_READ;
    // SAFETY: the kernel chooses a free address, and nothing uses the mapping.
    unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, file, 0) }?;
    Ok(())
}

#[test]
fn a_process_in_gvisor_did_not_remove_its_vdso() {
    if !is_testable() {
        return;
    }
    let sandboxed = Sleeper::after(|| {
        map_the_memory_of_gvisor()?;
        vector::change(libc::AT_SYSINFO_EHDR as usize, Some(4096))
    });
    if let Some(child) = sandboxed {
        let seen = ProcessVdso::read(child.id()).unwrap_err();
        assert_eq!(seen, ProcessError::Sandboxed);
    }
    // gVisor's own process maps that file as well, but it has the vDSO of the host's kernel.
    if let Some(child) = Sleeper::after(map_the_memory_of_gvisor) {
        let seen = ProcessVdso::read(child.id()).map(|_| "a vDSO");
        assert_eq!(seen, Ok("a vDSO"));
    }
}

/// Starts a process in whose auxiliary vector this image is the vDSO.
fn process_with(image: &[u8]) -> Option<Sleeper> {
    #[allow(unsafe_code, reason = "memory is mapped")]
    let map = || {
        let size = NonZero::new(image.len()).unwrap();
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a free address.
        let mapping = unsafe { mmap_anonymous(None, size, access, MapFlags::MAP_PRIVATE) }?;
        // SAFETY: the mapping is new and has this size.
        unsafe {
            mapping
                .cast()
                .copy_from_nonoverlapping(NonNull::from(image).cast::<u8>(), image.len());
        };
        vector::change(libc::AT_SYSINFO_EHDR as usize, Some(mapping.addr().get()))
    };
    if is_testable() {
        Sleeper::after(map)
    } else {
        None
    }
}

/// Makes a 64-bit image that is followed by `content`, the names of sections, and the section
/// headers. Each element of `sections` is the offset of a name, a type, an address and a size. The
/// name at offset 1 is `.eh_frame_hdr`.
fn with_sections(content: &[u8], sections: &[[u64; 4]]) -> Vec<u8> {
    const NAMES: [u8; 16] = *b"\0.eh_frame_hdr\0\0";
    let symbols = vec![Sym {
        size: !0,
        ..Sym::func("__vdso_time", "LINUX_2.6")
    }];
    let image = Spec {
        symbols,
        extent: EXTENT,
        ..Spec::default()
    }
    .build()
    .bytes;
    let mut image = [&image, content, &NAMES].concat();
    let count = sections.len() as u16 + 2;
    let at = image.len() as u64;
    image[40..48].copy_from_slice(&at.to_ne_bytes());
    // e_shentsize, e_shnum and e_shstrndx.
    for (at, value) in [(58, 64), (60, count), (62, 1)] {
        image[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
    let names = [0, 3, at - NAMES.len() as u64, NAMES.len() as u64];
    for section in [[0; 4], names].iter().chain(sections) {
        image.extend(section_header(*section));
    }
    image
}

fn section_header([name, kind, at, size]: [u64; 4]) -> Vec<u8> {
    let mut header = Vec::new();
    for half in [name as u32, kind as u32] {
        header.extend(half.to_ne_bytes());
    }
    for word in [0, at, at, size, 0, 4, 0] {
        header.extend(word.to_ne_bytes());
    }
    header
}

/// Where the content of [`with_sections`] begins.
const EXTENT: usize = 4096;

#[test]
fn what_claims_to_be_larger_than_the_image_ends_with_it() {
    let Some(child) = process_with(&with_sections(&[], &[[1, 1, 64, !0]])) else {
        return;
    };
    let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
    let ProcessVdso {
        symbols,
        range,
        eh_frame_hdr,
        ..
    } = &diagnosis.vdso;
    assert!(range.contains(&symbols[0].range.start), "{symbols:?}");
    assert_eq!(symbols[0].range.end, range.end);
    assert_eq!(eh_frame_hdr.clone(), Some(range.start + 64..range.end));
    assert!(diagnosis.to_string().contains("__vdso_time"), "{diagnosis}");
    let Some(child) = process_with(&with_sections(&[], &[[1, 1, 1 << 40, 8]])) else {
        return;
    };
    assert_eq!(ProcessVdso::read(child.id()).unwrap().eh_frame_hdr, None);
}

#[test]
fn a_build_id_is_not_searched_in_thousands_of_sections() {
    // Empty notes, and one with the id.
    let mut notes = [0; 12 * 1000].to_vec();
    for word in [4_u32, 3, 3] {
        notes.extend(word.to_ne_bytes());
    }
    notes.extend(b"GNU\0\x01\xab\xff\0");
    let at = EXTENT as u64;
    let empty = [0, 7, at, 12 * 1000];
    let id = [0, 7, at + 12 * 1000, 20];
    for (count, expected) in [(20, Some("01abff")), (10_000, None)] {
        let sections = [vec![empty; count], vec![id]].concat();
        let Some(child) = process_with(&with_sections(&notes, &sections)) else {
            return;
        };
        assert_eq!(
            ProcessVdso::read(child.id()).unwrap().build_id.as_deref(),
            expected
        );
    }
}

#[test]
fn a_process_that_ended_is_an_error() {
    if !has_proc() {
        return;
    }
    let Some(child) = Sleeper::after(|| Ok(())) else {
        return;
    };
    let pid = child.0;
    let number = child.id();
    kill(pid, Signal::SIGKILL).unwrap();
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
    assert_eq!(
        ProcessVdso::read(number).unwrap_err(),
        ProcessError::Ended,
        "a zombie"
    );
    drop(child);
    assert_eq!(
        ProcessVdso::read(number).unwrap_err(),
        ProcessError::Ended,
        "no process"
    );
}

#[test]
fn a_process_whose_main_thread_ended_has_a_vdso() {
    if !is_testable() {
        return;
    }
    let child = Sleeper(child::fork(|| {
        thread::spawn(pause);
        child::leave_thread()
    }));
    child::wait_for_main_thread(child.0);
    let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
    assert!(diagnosis.is_own_image, "{diagnosis}");
}

#[test]
fn another_users_process_is_denied() {
    if !is_testable() {
        return;
    }
    if !Uid::effective().is_root() {
        return not_run_here("only root can become another user");
    }
    child::forked(|| {
        setuid(Uid::from_raw(65534)).unwrap();
        let parent = getppid().as_raw() as u32;
        assert_eq!(ProcessVdso::read(parent).unwrap_err(), ProcessError::Denied);
    });
}

/// Reads processes without memory, whose files in /proc belong to root, as a user who is not root.
#[test]
fn a_zombie_and_a_kernel_thread_are_not_denied_but_ended() {
    if !is_testable() {
        return;
    }
    child::forked(|| {
        if Uid::effective().is_root() {
            setuid(Uid::from_raw(65534)).unwrap();
        }
        let zombie = child::fork(|| true);
        waitid(Id::Pid(zombie), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        let seen = ProcessVdso::read(zombie.as_raw() as u32).map(|_| "a vDSO");
        assert_eq!(seen, Err(ProcessError::Ended), "a zombie");
        // In an inner PID namespace, process 2 is a process like any other.
        match fs::read_to_string("/proc/2/comm") {
            Ok(name) if name == "kthreadd\n" => {
                let seen = ProcessVdso::read(2).map(|_| "a vDSO");
                assert_eq!(seen, Err(ProcessError::Ended), "a kernel thread");
            }
            _ => not_run_here("this PID namespace has no threads of the kernel"),
        }
    });
}

#[test]
fn a_process_in_another_time_namespace_has_a_vdso() {
    if !is_testable() {
        return;
    }
    child::forked(|| {
        if !child::has_time_namespace("monotonic 100000 0\n") {
            return;
        }
        let Some(child) = Sleeper::after(|| Ok(())) else {
            return;
        };
        let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
        assert!(diagnosis.is_own_image, "{diagnosis}");
    });
}

/// Runs in a PID namespace in which this process and its children have other IDs than in /proc.
#[test]
fn a_doctor_in_an_inner_pid_namespace_knows_its_own_image() {
    if !is_testable() {
        return;
    }
    let Some(child) = Sleeper::after(|| Ok(())) else {
        return;
    };
    child::forked(|| match unshare(CloneFlags::CLONE_NEWPID) {
        Err(error) => not_run_here(format!("unshare: {error}")),
        // The process after the first one has the ID 2, which outside belongs to a kernel thread.
        Ok(()) => child::forked(|| {
            child::forked(|| {
                let diagnosis = ProcessDiagnosis::of(child.id()).unwrap();
                assert!(diagnosis.is_own_image, "{diagnosis}");
            });
        }),
    });
}

#[test]
fn a_missing_proc_is_not_taken_for_a_missing_process() {
    child::forked(|| match chroot("/dev") {
        Err(error) => not_run_here(error),
        Ok(()) => assert_eq!(ProcessVdso::read(id()).unwrap_err(), ProcessError::NoProc),
    });
}

/// Starts a static ELF32 program for i386. `name` is the name of its file. `code` gets the address
/// of the file's path in the program, and returns the program's code.
fn program_of_32_bits(name: &str, code: impl FnOnce(u32) -> Vec<u8>) -> Option<Sleeper> {
    const BASE: u32 = 0x0804_8000;
    if ARCH != "x86_64" {
        not_run_here("the child is a program for i386");
        return None;
    }
    if !is_testable() {
        return None;
    }
    let file = target_tmpdir().join(name);
    let path = [file.as_os_str().as_bytes(), &[0]].concat();
    let code = [&path, &*code(BASE + 84)].concat();
    let start = BASE + 84 + path.len() as u32;
    let size = 84 + code.len() as u32;
    let ident = [0x464c_457f, 0x0001_0101, 0, 0];
    let header = [0x3_0002, 1, start, 52, 0, 0, 0x20_0034, 0x28_0001, 0];
    let segment = [1, 0, BASE, BASE, size, size, 5, 0x1000];
    let words = ident.into_iter().chain(header).chain(segment);
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).chain(code).collect();
    if let Err(error) = command::write(&file, bytes) {
        not_run_here(error);
        return None;
    }
    let child = match Command::new(&file).spawn() {
        Ok(child) => Sleeper(Pid::from_raw(child.id() as i32)),
        Err(error) => {
            not_run_here(format!("the kernel runs no 32-bit programs: {error}"));
            return None;
        }
    };
    // The parent can continue before the kernel has replaced the child's memory.
    let file = fs::canonicalize(file).unwrap();
    while fs::read_link(format!("/proc/{}/exe", child.id())).unwrap() != file {
        thread::yield_now();
    }
    Some(child)
}

#[test]
fn a_process_that_executes_programs_is_read_as_one_of_them() {
    // mov eax, 11; mov ebx, path; xor ecx, ecx; xor edx, edx; int 0x80
    let execve = |path: u32| {
        [
            &[0xb8, 11, 0, 0, 0, 0xbb],
            &path.to_le_bytes()[..],
            &[0x31, 0xc9, 0x31, 0xd2, 0xcd, 0x80],
        ]
        .concat()
    };
    let Some(child) = program_of_32_bits("program-that-executes-itself", execve) else {
        return;
    };
    for _ in 0..100 {
        match ProcessVdso::read(child.id()) {
            Err(ProcessError::NoVdso) => return not_run_here("32-bit programs have no vDSO here"),
            vdso => assert_eq!(vdso.unwrap().range.end % 4096, 0),
        }
    }
}

#[test]
fn a_32_bit_childs_vdso_is_read() {
    // mov eax, 29; int 0x80; jmp back: pause(2)
    let code = |_| vec![0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let Some(child) = program_of_32_bits("program-of-32-bits", code) else {
        return;
    };
    let diagnosis = match ProcessDiagnosis::of(child.id()) {
        Err(ProcessError::NoVdso) => return not_run_here("32-bit programs have no vDSO here"),
        other => other.unwrap(),
    };
    let vdso = &diagnosis.vdso;
    let here = maps::named(&child.id().to_string(), "[vdso]").unwrap();
    assert_eq!(vdso.range, here.start as u64..here.end as u64);
    assert_eq!((vdso.image().class(), vdso.image().machine()), (1, 3));
    let symbol = vdso
        .symbols
        .iter()
        .find(|symbol| symbol.name == "__vdso_clock_gettime")
        .unwrap();
    assert!(
        here.contains(&(symbol.range.start as usize)) && !symbol.range.is_empty(),
        "{symbol:?}"
    );
    assert!(!diagnosis.is_own_image, "{diagnosis}");
    assert_eq!(
        diagnosis.verdict.contains("probably stay in user space"),
        check(&Call::USUAL).is_ok()
    );
}

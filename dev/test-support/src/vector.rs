//! Changes the auxiliary vector that the kernel has of this process.

use std::fs;
use std::io;

const AT_IGNORE: usize = 1;

/// An entry: a tag and a value.
type Entry = [usize; 2];

/// Changes the value of a tag; `None` removes the entry. The error says what is missing here.
///
/// The copy on the stack, which libc reads, stays as it is.
pub fn change(changed: usize, value: Option<usize>) -> io::Result<()> {
    let file = fs::read("/proc/self/auxv")?;
    let mut vector = Vec::new();
    for entry in file.chunks_exact(size_of::<Entry>()) {
        let (tag, value) = entry.split_at(size_of::<usize>());
        vector.push([word(tag), word(value)]);
    }
    for entry in &mut vector {
        if entry[0] == changed {
            *entry = match value {
                Some(value) => [changed, value],
                None => [AT_IGNORE, 0],
            };
            return change_the_kernels(&vector);
        }
    }
    Err(io::Error::other(format!(
        "the vector has no entry {changed}"
    )))
}

fn word(bytes: &[u8]) -> usize {
    usize::from_ne_bytes(bytes.try_into().unwrap())
}

/// Changes the vector in /proc and of PR_GET_AUXV. Without a privilege, every field must be written
/// again.
fn change_the_kernels(vector: &[Entry]) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(") ").expect("the name");
    let fields: Vec<&str> = after_name.split(' ').collect();
    // As proc_pid_stat(5) counts.
    let field = |number: usize| -> u64 { fields[number - 3].trim().parse().unwrap_or(0) };
    // SAFETY: 0 changes nothing.
    let brk = unsafe { libc::sbrk(0) }.addr() as u64;
    let map = MemoryMap {
        code: [field(26), field(27)],
        data: [field(45), field(46)],
        brk: [field(47), brk],
        stack: field(28),
        arguments: [field(48), field(49)],
        environment: [field(50), field(51)],
        auxv: vector.as_ptr(),
        auxv_size: size_of_val(vector) as u32,
        exe_fd: u32::MAX,
    };
    // SAFETY: the kernel reads the map, and the vector.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_MM,
            PR_SET_MM_MAP,
            &raw const map,
            size_of_val(&map),
            0,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

const PR_SET_MM_MAP: libc::c_int = 14;

/// `prctl_mm_map` of include/uapi/linux/prctl.h.
#[repr(C)]
struct MemoryMap {
    code: [u64; 2],
    data: [u64; 2],
    brk: [u64; 2],
    stack: u64,
    arguments: [u64; 2],
    environment: [u64; 2],
    auxv: *const Entry,
    auxv_size: u32,
    exe_fd: u32,
}

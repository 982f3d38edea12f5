//! Changes the auxiliary vector of this process: on the stack, for libc, and in the kernel.

use std::fs;
use std::io;

use crate::maps;

const AT_NULL: usize = 0;
const AT_IGNORE: usize = 1;
const AT_SYSINFO_EHDR: usize = 33;

/// An entry: a tag and a value.
type Entry = [usize; 2];

/// Changes the address of the vDSO; `None` removes the entry. The error says what is missing here.
///
/// With `asks_libc` only the copy on the stack is changed, which libc reads.
pub fn change(ehdr: Option<usize>, asks_libc: bool) -> io::Result<()> {
    let file = fs::read("/proc/self/auxv")?;
    let mut vector: Vec<Entry> = file
        .chunks_exact(size_of::<Entry>())
        .map(|entry| {
            let (tag, value) = entry.split_at(size_of::<usize>());
            [tag, value].map(|word| usize::from_ne_bytes(word.try_into().unwrap()))
        })
        .collect();
    // On a 64-bit kernel the file of a 32-bit process ends at two empty entries. The stack has one.
    let end = vector.iter().position(|[tag, _]| *tag == AT_NULL).map_or(vector.len(), |last| last + 1);
    vector.truncate(end);
    let place = on_the_stack(&vector)?;
    let index = vector.iter().position(|[tag, _]| *tag == AT_SYSINFO_EHDR);
    let index = index.ok_or_else(|| io::Error::other("this process has no vDSO"))?;
    vector[index] = ehdr.map_or([AT_IGNORE, 0], |address| [AT_SYSINFO_EHDR, address]);
    // SAFETY: the vector lies there, as `on_the_stack` found, and it can be written to.
    unsafe { place.wrapping_add(index).write(vector[index]) };
    if asks_libc { Ok(()) } else { change_the_kernels(&vector) }
}

/// This changes /proc and PR_GET_AUXV. Without a privilege every field must be written again.
fn change_the_kernels(vector: &[Entry]) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = after_name.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
    let field = |number: usize| fields[number - 3]; // as proc_pid_stat(5) counts
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
    let set = unsafe { libc::prctl(libc::PR_SET_MM, PR_SET_MM_MAP, &raw const map, size_of_val(&map), 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// Where it is on the stack.
fn on_the_stack(vector: &[Entry]) -> io::Result<*mut Entry> {
    let stack = maps::named("self", "[stack]")?;
    let last = stack.end.saturating_sub(size_of_val(vector)) & !(size_of::<usize>() - 1);
    (stack.start..=last)
        .rev()
        .step_by(size_of::<usize>())
        .map(std::ptr::with_exposed_provenance_mut::<Entry>)
        // SAFETY: so many bytes of the stack can be read there.
        .find(|place| unsafe { std::slice::from_raw_parts(*place, vector.len()) } == vector)
        .ok_or_else(|| io::Error::other("the auxiliary vector is not on the stack"))
}

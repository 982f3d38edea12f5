//! The CPU and the node of the calling thread, from its rseq area (rseq(2)).
//!
//! A thread registers the area. The kernel writes the CPU's number there before the thread runs on
//! another CPU, and since Linux 6.3 the node's. glibc 2.35 and later register one for each thread.
//! `__rseq_offset` is its distance from the thread pointer; `__rseq_size` is 0 if it is not used
//! (the tunable glibc.pthread.rseq, an old kernel). This crate registers none.
//!
//! A thread that was made by clone(2) or vfork(2) and shares the memory of its parent shares the
//! area, and reads its parent's CPU. So does glibc's sched_getcpu.

#![allow(unsafe_code, reason = "the area is memory of the C library")]

use core::sync::atomic::{AtomicIsize, Ordering};

use super::auxv;
use super::native;

/// Offsets in `struct rseq` (include/uapi/linux/rseq.h).
const CPU_ID: isize = 4;
const NODE_ID: isize = 20;
/// The end of `node_id`.
const SIZE_WITH_NODE: usize = 24;

/// The tags of the auxiliary vector (include/uapi/linux/auxvec.h).
const AT_HWCAP: usize = 16;
const AT_RSEQ_FEATURE_SIZE: usize = 27;

/// The distance of the area from the thread pointer. 0, which is the thread control block's own,
/// means that no area is known.
///
/// `Relaxed` is enough: the C library wrote the area before it started the thread.
static OFFSET: AtomicIsize = AtomicIsize::new(0);
/// The same, if the kernel writes the node there too.
static NODE_OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Finds the area.
pub(super) fn find() {
    let (offset, size) = native::rseq::symbols();
    if offset.is_null() || size.is_null() {
        return;
    }
    // SAFETY: the symbol is glibc's, which wrote it before any code of the program ran.
    let size = unsafe { size.read() };
    let is_readable = || native::rseq::NEEDED_HWCAP.is_none_or(|hwcap| auxv::value(AT_HWCAP) & hwcap != 0);
    if size == 0 || !is_readable() {
        return;
    }
    // SAFETY: the symbol is glibc's, which wrote it before any code of the program ran.
    let offset = unsafe { offset.read() };
    if cpu_at(offset).is_none() {
        return;
    }
    OFFSET.store(offset, Ordering::Relaxed);
    // Every size that can be registered has room for the node, which older kernels do not write.
    if auxv::value(AT_RSEQ_FEATURE_SIZE) >= SIZE_WITH_NODE {
        NODE_OFFSET.store(offset, Ordering::Relaxed);
    }
}

/// Returns whether an area is known.
pub(super) fn has_cpu() -> bool {
    OFFSET.load(Ordering::Relaxed) != 0
}

/// Returns whether an area with the node is known.
pub(super) fn has_node() -> bool {
    NODE_OFFSET.load(Ordering::Relaxed) != 0
}

/// Returns the CPU, or `None` if this thread has no area, or before the first call.
#[inline]
pub(super) fn cpu() -> Option<u32> {
    match OFFSET.load(Ordering::Relaxed) {
        0 => None,
        offset => cpu_at(offset),
    }
}

/// Returns the CPU in the area at glibc's offset.
#[inline]
fn cpu_at(offset: isize) -> Option<u32> {
    // SAFETY: every thread that glibc made has an area there.
    let cpu = unsafe { native::rseq::read(offset + CPU_ID) };
    // Negative numbers mean that the thread is not registered.
    u32::try_from(cpu as i32).ok()
}

/// Returns the CPU and its node, or `None` as [`cpu`], or if the kernel does not write the node.
///
/// The thread can move between two reads, so the CPU is read again.
#[inline]
pub(super) fn cpu_and_node() -> Option<(u32, u32)> {
    let offset = NODE_OFFSET.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    loop {
        let before = cpu_at(offset)?;
        // SAFETY: every thread that glibc made has an area there.
        let node = unsafe { native::rseq::read(offset + NODE_ID) };
        if cpu_at(offset) == Some(before) {
            return Some((before, node));
        }
    }
}

//! Which system calls of this crate and of its tests Android lets an app make, since which release.
//!
//! Read in Android's libc, github.com/aosp-mirror/platform_bionic (Apache-2.0 and BSD):
//!
//! - The list of an app is libc/SYSCALLS.TXT, without SECCOMP_BLOCKLIST_{COMMON,APP}.TXT, with
//!   SECCOMP_ALLOWLIST_{COMMON,APP}.TXT. Before Android 12 the words are BLACKLIST and WHITELIST,
//!   and Android 8 has one file of each. libc/tools/genseccomp.py computes the list.
//! - libc/seccomp/seccomp_policy.cpp makes the filter, and libc/kernel/uapi has the numbers.
//! - Releases: the tags android-8.0.0_r1 (f711b07), 8.1.0_r1 (fcabaf4), 9.0.0_r1 (196632f),
//!   10.0.0_r1 (290c0cb), 11.0.0_r1 (050b1b1), 12.0.0_r1 (e1c42cc), 13.0.0_r1 (0b981d1),
//!   14.0.0_r1 (e4df46f), 15.0.0_r1 (361ba86), and the branch main at 731631f of March 2025, which
//!   has the same rows as 15.
//!
//! The lists of Android have some 200 calls more. What these rows allow, Android allows.

/// The oldest release with a filter.
pub(crate) const OLDEST: u32 = 8;

/// The last release that was read.
const NEWEST: u32 = 15;

/// An architecture: its name in `target_arch`, and its AUDIT_ARCH_* of include/uapi/linux/audit.h.
pub(crate) struct Arch {
    pub(crate) name: &'static str,
    pub(crate) audit: u32,
}

/// In the order of the columns of [`CALLS`].
const ARCHES: [Arch; 4] = [
    Arch { name: "x86", audit: 0x4000_0003 },
    Arch { name: "x86_64", audit: 0xc000_003e },
    Arch { name: "aarch64", audit: 0xc000_00b7 },
    Arch { name: "arm", audit: 0x4000_0028 },
];

/// A system call.
struct Call {
    /// On x86, x86_64, aarch64 and arm.
    numbers: [u32; 4],
    /// The first release that allows it.
    since: u32,
}

/// The architecture has no such call, or no release allows it.
const NONE: u32 = u32::MAX;

/// A call that was always allowed.
const fn always(numbers: [u32; 4]) -> Call {
    Call { numbers, since: OLDEST }
}

const CALLS: &[Call] = &[
    always([265, 228, 113, 263]),                         // clock_gettime
    always([266, 229, 114, 264]),                         // clock_getres
    always([78, 96, 169, 78]),                            // gettimeofday
    always([318, 309, 168, 345]),                         // getcpu
    Call { numbers: [403, NONE, NONE, 403], since: 11 },  // clock_gettime64
    Call { numbers: [406, NONE, NONE, 406], since: 11 },  // clock_getres_time64
    Call { numbers: [13, 201, NONE, NONE], since: NONE }, // time
    always([175, 14, 135, 175]),                          // rt_sigprocmask
    always([172, 157, 167, 172]),                         // prctl
    always([295, 257, 56, 322]),                          // openat
    always([3, 0, 63, 3]),                                // read
    always([6, 3, 57, 6]),                                // close
    always([252, 231, 94, 248]),                          // exit_group, of the tests
    always([173, 15, 139, 173]),                          // rt_sigreturn, of the tests
];

/// An architecture and its 32-bit or 64-bit counterpart. One filter of Android serves both.
pub(crate) fn family(arch: &str) -> &'static [Arch] {
    if arch.starts_with("x86") { &ARCHES[..2] } else { &ARCHES[2..] }
}

/// The releases that differ from the release before in the calls of the table.
pub(crate) fn releases(arch: &str) -> impl Iterator<Item = u32> {
    let is_new = |release: &u32| *release == OLDEST || allowed(arch, *release) != allowed(arch, release - 1);
    (OLDEST..=NEWEST).filter(is_new)
}

/// The numbers of an architecture's calls that an app of this release may make.
pub(crate) fn allowed(arch: &str, release: u32) -> Vec<u32> {
    rows(arch, |since| since <= release)
}

/// The numbers of the calls that it may not make.
pub(crate) fn refused(arch: &str, release: u32) -> Vec<u32> {
    rows(arch, |since| since > release)
}

fn rows(arch: &str, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let column = ARCHES.iter().position(|one| one.name == arch).expect("an architecture of the table");
    let rows = CALLS.iter().filter(|call| wanted(call.since));
    rows.map(|call| call.numbers[column]).filter(|number| *number != NONE).collect()
}

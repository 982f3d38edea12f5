//! A loop of reads, bare and at a site. The arguments have different types, because the compiler
//! would otherwise merge the functions.

use std::hint::black_box;

#[inline(never)]
pub fn bare(turns: u32) {
    for _ in 0..turns {
        black_box(vdso_time::time());
    }
}

#[inline(never)]
pub fn at_a_site(turns: u64) {
    for _ in 0..turns {
        black_box(vdso_time_trace::traced!("site", vdso_time::time()));
    }
}

//! The tests are in `tests`.

/// The Rust code of the page. Some of it needs Linux.
#[cfg(all(
    doctest,
    any(target_os = "linux", target_os = "android"),
    not(vdso_time_other_os)
))]
#[doc = include_str!("../../../docs/ADOPT.md")]
struct Adopt;

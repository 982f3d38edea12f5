//! The tests are in `tests`.

/// The Rust code of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/ADOPT.md")]
struct Adopt;

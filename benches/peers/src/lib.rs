//! Code that the two programs of this package share.

pub mod first_call;

//! A table for each architecture: the symbols and the system calls that answer each function.

pub(crate) mod aarch64;
pub(crate) mod arm;
pub(crate) mod loongarch64;
pub(crate) mod powerpc64;
pub(crate) mod riscv64;
pub(crate) mod s390x;
pub(crate) mod x86;
pub(crate) mod x86_64;

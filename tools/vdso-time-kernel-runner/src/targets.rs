//! Where programs can run: the tables of `targets.toml`, which explains their columns.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All tables.
pub static TARGETS: LazyLock<Targets> = LazyLock::new(|| {
    basic_toml::from_str(include_str!("targets.toml")).expect("each test reads this file")
});

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
pub struct Targets {
    pub arches: Vec<Arch>,
    pub options: Vec<BootOption>,
    pub suites: BTreeMap<&'static str, &'static str>,
    pub guests: Vec<Guest>,
}

/// An architecture that programs are built for.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arch {
    pub name: &'static str,
    pub triple: &'static str,
    pub debian: &'static str,
    pub qemu: &'static str,
    pub hosts: Vec<&'static str>,
    pub guests: Vec<&'static str>,
    #[serde(default)]
    pub rustflags: &'static str,
}

impl Arch {
    /// Returns whether Debian has the standard library. Otherwise it is compiled.
    pub fn is_packaged(&self) -> bool {
        ["amd64", "arm64", "armhf", "i386"].contains(&self.debian)
    }

    /// Returns GNU's name of the architecture: the prefix of its compiler, and the directory of its
    /// libraries.
    pub fn gnu(&self) -> String {
        self.triple
            .replace("-unknown", "")
            .replace("armv7", "arm")
            .replace("riscv64gc", "riscv64")
    }
}

/// A computer that QEMU emulates, and Debian's kernels for it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    pub name: &'static str,
    pub package: &'static str,
    pub kernels: Vec<&'static str>,
    pub qemu: &'static str,
    pub machine: Vec<&'static str>,
    pub console: &'static str,
    pub page: u64,
    pub initrd: Option<u64>,
}

/// A boot option, `+NAME`: a difference from the usual boot.
#[derive(Debug, PartialEq, Deserialize)]
pub struct BootOption {
    pub name: &'static str,
    pub guests: Vec<&'static str>,
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Kernel(&'static str),
    Qemu(Vec<&'static str>),
    /// A board other than the guest's usual one. `qemu` has QEMU's arguments for the board. Its
    /// device tree is the file `tree` in the package of the kernel whose version is `from`.
    Board {
        qemu: Vec<&'static str>,
        tree: &'static str,
        from: &'static str,
    },
    Clock(i64),
}

//! Where programs can run: the tables of `targets.toml`, which explains their columns.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// All tables.
pub(crate) static TARGETS: LazyLock<Targets> = LazyLock::new(|| {
    basic_toml::from_str(include_str!("targets.toml")).expect("each test reads this file")
});

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
pub(crate) struct Targets {
    pub(crate) arches: Vec<Arch>,
    pub(crate) options: Vec<BootOption>,
    pub(crate) suites: BTreeMap<&'static str, &'static str>,
    pub(crate) guests: Vec<Guest>,
}

/// An architecture that programs are built for.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arch {
    pub(crate) name: &'static str,
    pub(crate) triple: &'static str,
    pub(crate) debian: &'static str,
    pub(crate) qemu: &'static str,
    pub(crate) hosts: Vec<&'static str>,
    pub(crate) guests: Vec<&'static str>,
    #[serde(default)]
    pub(crate) rustflags: &'static str,
}

impl Arch {
    /// Returns whether Debian has the standard library. Otherwise it is compiled.
    pub(crate) fn is_packaged(&self) -> bool {
        ["amd64", "arm64", "armhf", "i386"].contains(&self.debian)
    }

    /// Returns GNU's name of the architecture: the prefix of its compiler, and the directory of its
    /// libraries.
    pub(crate) fn gnu(&self) -> String {
        self.triple
            .replace("-unknown", "")
            .replace("armv7", "arm")
            .replace("riscv64gc", "riscv64")
    }
}

/// A computer that QEMU emulates, and Debian's kernels for it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guest {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) kernels: Vec<&'static str>,
    pub(crate) qemu: &'static str,
    pub(crate) machine: Vec<&'static str>,
    pub(crate) console: &'static str,
    pub(crate) page: u64,
    pub(crate) initrd: Option<u64>,
}

/// A boot option, `+NAME`: a difference from the usual boot.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct BootOption {
    pub(crate) name: &'static str,
    pub(crate) guests: Vec<&'static str>,
    #[serde(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
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

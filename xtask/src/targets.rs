//! The foreign targets, as data: where the library for each comes from, what is checked on it.

/// Where a target's `core` is to be had.
pub(crate) enum Library {
    /// Debian packages the whole standard library, under this name of the architecture.
    Debian(&'static str),
    /// `core` alone, made from Debian's copy of its sources: the library needs no more.
    Core,
}

pub(crate) struct Target {
    pub(crate) triple: &'static str,
    pub(crate) library: Library,
    pub(crate) features: &'static [FeatureSet],
}

/// Arguments for cargo, and what they mean.
pub(crate) type FeatureSet = (&'static [&'static str], &'static str);

const DEFAULT: FeatureSet = (&[], "default features");
const COUNTER: FeatureSet = (&["--features", "counter"], "the counter");
const NONE: FeatureSet = (&["--no-default-features"], "no features");
const ALL: FeatureSet = (&["--all-features"], "all features");

const fn debian(triple: &'static str, architecture: &'static str) -> Target {
    Target { triple, library: Library::Debian(architecture), features: &[DEFAULT, NONE, ALL] }
}

/// The feature `std` is out of reach of these.
const fn core(triple: &'static str) -> Target {
    Target { triple, library: Library::Core, features: &[COUNTER, NONE] }
}

/// Without a vDSO of its own: the feature `libc` changes nothing.
const fn absent(triple: &'static str) -> Target {
    Target { features: &[COUNTER], ..core(triple) }
}

pub(crate) const TARGETS: &[Target] = &[
    // The four architectures with a vDSO of their own, on Linux.
    debian("x86_64-unknown-linux-gnu", "amd64"),
    debian("aarch64-unknown-linux-gnu", "arm64"),
    debian("armv7-unknown-linux-gnueabihf", "armhf"),
    debian("i686-unknown-linux-gnu", "i386"),
    core("x86_64-unknown-linux-musl"),
    core("aarch64-unknown-linux-musl"),
    core("aarch64_be-unknown-linux-gnu"),
    core("arm-unknown-linux-gnueabihf"),
    core("thumbv7neon-unknown-linux-gnueabihf"),
    // The same on Android.
    core("aarch64-linux-android"),
    core("armv7-linux-androideabi"),
    core("i686-linux-android"),
    core("x86_64-linux-android"),
    // Linux where system calls go through libc.
    absent("x86_64-unknown-linux-gnux32"),
    absent("loongarch64-unknown-linux-gnu"),
    absent("mips64el-unknown-linux-gnuabi64"),
    absent("powerpc64le-unknown-linux-gnu"),
    absent("riscv64gc-unknown-linux-gnu"),
    absent("s390x-unknown-linux-gnu"),
    // Other systems: only what works on bytes and tables is left.
    absent("x86_64-apple-darwin"),
    absent("x86_64-pc-windows-gnu"),
    absent("x86_64-unknown-freebsd"),
    absent("wasm32-unknown-unknown"),
];

//! Linkers, emulators and LLVM's tools from Debian's packages, unpacked into the cache: nothing is installed.

use std::env::consts::ARCH;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::debian::{Archive, Package, native_architecture};
use crate::places::{ARCHES, Arch, Emulator};
use crate::process::step;

/// The release whose compilers and QEMU are used.
const SUITE: &str = "bookworm";

/// They stay the machine's: a C library and its loader belong together.
const MACHINES_OWN: &[&str] = &["libc6"];

/// The compiler of another architecture, which rustc links with.
pub(crate) struct Gcc {
    pub(crate) program: PathBuf,
    /// The folder whose `lib` has its shared libraries and their loader.
    pub(crate) libraries: PathBuf,
}

pub(crate) fn gcc(arch: &Arch) -> Result<Gcc, String> {
    let gnu = arch.gnu;
    let tree = cache::folder()?.join(format!("gcc-{gnu}-{SUITE}"));
    let compiler = format!("gcc-{}", gnu.replace('_', "-"));
    let libraries = format!("libc6-dev-{}-cross", arch.debian);
    build_tree(&tree, SUITE, &[&compiler, &libraries], |draft| {
        let program = format!("usr/bin/{gnu}-gcc");
        wrap(draft, &tree, "cc", &program, &[format!("--sysroot={}", tree.display())])
    })?;
    Ok(Gcc { program: tree.join("cc"), libraries: tree.join("usr").join(gnu) })
}

/// QEMU's emulators of whole machines.
pub(crate) fn qemu_system(program: &str) -> Result<PathBuf, String> {
    let tree = cache::folder()?.join(format!("qemu-system-{SUITE}"));
    build_tree(&tree, SUITE, &["qemu-system-arm", "qemu-system-x86"], |draft| {
        let data = ["qemu", "seabios"].map(|folder| tree.join("usr/share").join(folder));
        let arguments: Vec<String> =
            data.iter().flat_map(|folder| ["-L".to_string(), folder.display().to_string()]).collect();
        for program in ["qemu-system-aarch64", "qemu-system-arm", "qemu-system-x86_64"] {
            wrap(draft, &tree, program, &format!("usr/bin/{program}"), &arguments)?;
        }
        Ok(())
    })?;
    Ok(tree.join(program))
}

/// QEMU's emulators of programs, which are linked statically.
pub(crate) fn qemu_user(emulator: &Emulator, arch: &Arch) -> Result<PathBuf, String> {
    let tree = cache::folder()?.join(format!("{}-{}", emulator.name, emulator.suite));
    let program = |arch: &Arch| format!("qemu-{}{}", arch.qemu, emulator.suffix);
    build_tree(&tree, emulator.suite, &[emulator.package], |draft| {
        // There are thirty more.
        for name in ARCHES.iter().map(program) {
            let (from, to) = (draft.join("usr/bin").join(&name), draft.join(&name));
            // Two of our architectures have the same one.
            if !to.exists() {
                fs::rename(&from, &to).map_err(|error| cache::at(&from, &error))?;
            }
        }
        cache::remove(&draft.join("usr"))
    })?;
    Ok(tree.join(program(arch)))
}

/// `llvm-profdata` and `llvm-cov`, of the version that Debian's compiler is made with.
pub(crate) fn llvm_coverage() -> Result<[PathBuf; 2], String> {
    let names = ["llvm-profdata", "llvm-cov"];
    let tree = cache::folder()?.join(format!("llvm-19-{SUITE}"));
    build_tree(&tree, SUITE, &["llvm-19"], |draft| {
        names
            .iter()
            .try_for_each(|name| wrap(draft, &tree, name, &format!("usr/lib/llvm-19/bin/{name}"), &[]))
    })?;
    Ok(names.map(|name| tree.join(name)))
}

/// The packages with all that they need, unpacked once; then `finish`, in the draft.
fn build_tree(
    tree: &Path,
    suite: &'static str,
    names: &[&str],
    finish: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    cache::build_once(tree, |draft| {
        step(&format!("fetching {}", names.join(", ")));
        let native = native_architecture()?;
        let package = |name: &&str| Package { name: (*name).into(), architecture: native.clone(), suite };
        let packages: Vec<Package> = names.iter().map(package).collect();
        let apt = draft.join("apt");
        Archive::open(&apt, &native, &packages)?.unpack_whole(&packages, MACHINES_OWN, draft)?;
        cache::remove(&apt)?;
        for unread in ["doc", "man", "locale"].map(|name| draft.join("usr/share").join(name)) {
            if unread.is_dir() {
                cache::remove(&unread)?;
            }
        }
        finish(draft)
    })
}

/// Writes a script that starts a program of the tree with the tree's libraries.
fn wrap(draft: &Path, tree: &Path, name: &str, program: &str, arguments: &[String]) -> Result<(), String> {
    let libraries = format!("{0}/lib/{ARCH}-linux-gnu:{0}/usr/lib/{ARCH}-linux-gnu", tree.display());
    let words: Vec<String> =
        [tree.join(program).display().to_string()].iter().chain(arguments).map(|word| quoted(word)).collect();
    let script =
        format!("#!/bin/sh\nLD_LIBRARY_PATH={} exec {} \"$@\"\n", quoted(&libraries), words.join(" "));
    let file = draft.join(name);
    cache::write(&file, &script)?;
    fs::set_permissions(&file, Permissions::from_mode(0o755)).map_err(|error| cache::at(&file, &error))
}

/// One word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

//! Linkers, emulators, kernels and LLVM's tools from Debian's packages, unpacked into the cache.

use std::env::consts::ARCH;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;
use xshell::Shell;

use crate::debian::{Archive, Package, native_architecture};
use crate::targets::{ARCHES, Arch, Emulator, Guest};
use crate::{cache, step, workspace};

/// The release whose compilers and QEMU are used.
const SUITE: &str = "bookworm";

/// The cross compiler, with which rustc links.
pub(crate) struct Gcc {
    pub(crate) program: PathBuf,
    /// The folder whose `lib` has the target's shared libraries and loader.
    pub(crate) libraries: PathBuf,
}

pub(crate) fn gcc(arch: &Arch) -> Result<Gcc> {
    let gnu = arch.gnu();
    let tree = cache::folder()?.join(format!("gcc-{gnu}-{SUITE}"));
    let compiler = format!("gcc-{}", gnu.replace('_', "-"));
    let libraries = format!("libc6-dev-{}-cross", arch.debian);
    build_tree(&tree, SUITE, &[&compiler, &libraries], |draft| {
        let program = format!("usr/bin/{gnu}-gcc");
        write_script(draft, &tree, "cc", &program, &[format!("--sysroot={}", tree.display())])
    })?;
    Ok(Gcc { program: tree.join("cc"), libraries: tree.join("usr").join(gnu) })
}

/// QEMU for whole machines.
pub(crate) fn qemu_system(program: &str) -> Result<PathBuf> {
    let tree = cache::folder()?.join(format!("qemu-system-{SUITE}"));
    build_tree(&tree, SUITE, &["qemu-system-arm", "qemu-system-x86"], |draft| {
        let folder = |name| tree.join("usr/share").join(name).display().to_string();
        let arguments = ["-L".into(), folder("qemu"), "-L".into(), folder("seabios")];
        ["qemu-system-aarch64", "qemu-system-arm", "qemu-system-x86_64"].iter().try_for_each(|program| {
            write_script(draft, &tree, program, &format!("usr/bin/{program}"), &arguments)
        })
    })?;
    Ok(tree.join(program))
}

/// QEMU in user mode, which is linked statically.
pub(crate) fn qemu_user(emulator: &Emulator, arch: &Arch) -> Result<PathBuf> {
    let tree = cache::folder()?.join(format!("{}-{}", emulator.name, emulator.suite));
    let program = |arch: &Arch| format!("qemu-{}{}", arch.qemu, emulator.suffix);
    build_tree(&tree, emulator.suite, &[emulator.package], |draft| {
        // The package has thirty more. Two architectures share one.
        for name in ARCHES.iter().map(program).filter(|name| !draft.join(name).exists()) {
            fs::rename(draft.join("usr/bin").join(&name), draft.join(&name))?;
        }
        Ok(fs::remove_dir_all(draft.join("usr"))?)
    })?;
    Ok(tree.join(program(arch)))
}

/// `llvm-profdata` and `llvm-cov`, of the LLVM in Debian's rustc.
pub(crate) fn llvm_coverage() -> Result<[PathBuf; 2]> {
    let names = ["llvm-profdata", "llvm-cov"];
    let tree = cache::folder()?.join(format!("llvm-19-{SUITE}"));
    build_tree(&tree, SUITE, &["llvm-19"], |draft| {
        names.iter().try_for_each(|name| {
            write_script(draft, &tree, name, &format!("usr/lib/llvm-19/bin/{name}"), &[])
        })
    })?;
    Ok(names.map(|name| tree.join(name)))
}

/// A program of a package of crates.io, which has its name.
pub(crate) fn from_crates_io(name: &str, version: &str) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("{name}-{version}"));
    cache::build_once(&folder, |draft| {
        step(&format!("installing {name} {version} (some minutes)"));
        let sh = Shell::new()?;
        let cargo = workspace::cargo(&sh).args(["install", "--quiet", "--locked", name, "--version"]);
        Ok(cargo.arg(format!("={version}")).arg("--root").arg(draft).run()?)
    })?;
    Ok(folder.join("bin").join(name))
}

/// The folder with `vmlinuz` and the device trees of the suite's newest kernel at the first fetch.
pub(crate) fn kernel(guest: &Guest, version: &str) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("kernel-{}-{version}", guest.name));
    cache::build_once(&folder, |draft| {
        step(&format!("fetching the {} kernel {version}", guest.name));
        let suite = guest.kernels.iter().find(|(name, _)| *name == version).map_or(SUITE, |(_, suite)| suite);
        let mut package = Package { name: guest.package.into(), architecture: guest.name.into(), suite };
        let (apt, tree) = (draft.join("apt"), draft.join("tree"));
        let archive = Archive::open(&apt, std::slice::from_ref(&package))?;
        // The first package is empty and depends on the one with the kernel.
        while let Some(next) = archive.dependency(&package, &["linux-image-", "linux-binary-"])? {
            package = next;
        }
        archive.unpack(&[package], false, &tree)?;
        move_kernel(&tree, draft)?;
        ensure!(draft.join("vmlinuz").is_file(), "the package has no kernel");
        fs::remove_dir_all(apt)?;
        Ok(fs::remove_dir_all(tree)?)
    })?;
    Ok(folder)
}

fn move_kernel(from: &Path, to: &Path) -> Result<()> {
    for path in cache::entries(from)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() {
            move_kernel(&path, to)?;
        } else if name.starts_with("vmlinuz") {
            fs::rename(&path, to.join("vmlinuz"))?;
        } else if name == "vexpress-v2p-ca9.dtb" {
            fs::rename(&path, to.join(&*name))?;
        }
    }
    Ok(())
}

/// Unpacks the packages with their dependencies into a draft of the tree, and calls `finish`.
fn build_tree(
    tree: &Path,
    suite: &'static str,
    names: &[&str],
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    cache::build_once(tree, |draft| {
        step(&format!("fetching {}", names.join(", ")));
        let architecture = native_architecture(&Shell::new()?)?;
        let package =
            |name: &&str| Package { name: (*name).into(), architecture: architecture.clone(), suite };
        let packages: Vec<Package> = names.iter().map(package).collect();
        let apt = draft.join("apt");
        Archive::open(&apt, &packages)?.unpack(&packages, true, draft)?;
        fs::remove_dir_all(apt)?;
        for unused in ["doc", "man", "locale"].map(|name| draft.join("usr/share").join(name)) {
            if unused.is_dir() {
                fs::remove_dir_all(unused)?;
            }
        }
        finish(draft)
    })
}

/// Writes a script that starts a program of the tree with the tree's libraries.
fn write_script(draft: &Path, tree: &Path, name: &str, program: &str, arguments: &[String]) -> Result<()> {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let libraries = format!("{0}/lib/{ARCH}-linux-gnu:{0}/usr/lib/{ARCH}-linux-gnu", tree.display());
    let arguments: String = arguments.iter().map(|word| quoted(word) + " ").collect();
    let (libraries, program) = (quoted(&libraries), quoted(&tree.join(program).display().to_string()));
    let script = format!("#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} {arguments}\"$@\"\n");
    fs::write(draft.join(name), script)?;
    Ok(fs::set_permissions(draft.join(name), Permissions::from_mode(0o755))?)
}

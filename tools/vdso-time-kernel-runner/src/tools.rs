//! Linkers, emulators and kernels from Debian's packages, unpacked into the cache.

use std::env::consts::ARCH;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use xshell::{Shell, cmd};

use crate::debian::{self, Archive, Package, native_architecture};
use crate::targets::{Arch, Guest, TARGETS};
use crate::{cache, step};

/// The releases whose compilers and QEMU are used.
const SUITE: &str = "bookworm";
const QEMU_SUITE: &str = "bookworm-backports";

/// The cross compiler, with which rustc links.
pub(crate) struct Gcc {
    pub(crate) program: PathBuf,
    /// The directory whose `lib` has the target's shared libraries and loader.
    pub(crate) libraries: PathBuf,
}

pub(crate) fn gcc(arch: &Arch) -> Result<Gcc> {
    let gnu = arch.gnu();
    let suite = if arch.name == "loongarch64" {
        "trixie"
    } else {
        SUITE
    };
    let tree = cache::directory()?.join(format!("gcc-{gnu}-{suite}"));
    let compiler = format!("gcc-{}", gnu.replace('_', "-"));
    let libraries = format!("libc6-dev-{}-cross", arch.debian);
    let mut names = vec![&*compiler, &libraries];
    if suite != SUITE {
        // Programs of a later suite need a later C library.
        names.push("libc6");
    }
    build_tree(&tree, suite, &names, |draft| {
        if suite != SUITE {
            // gcc itself starts `collect2` and the linker. So each of them, like gcc, needs a
            // script that starts it with the loader in the tree.
            let collect = format!("usr/libexec/gcc-cross/{gnu}/14/collect2");
            let linker = format!("usr/bin/{gnu}-ld");
            start_with_loader(draft, &tree, &collect)?;
            start_with_loader(draft, &tree, &linker)?;
        }
        let program = format!("usr/bin/{gnu}-gcc");
        let sysroot = format!("--sysroot={}", tree.display());
        write_script(draft, &tree, "cc", &program, &[sysroot])
    })?;
    Ok(Gcc {
        program: tree.join("cc"),
        libraries: tree.join("usr").join(gnu),
    })
}

/// Replaces a program with a script that starts it through the tree's loader.
fn start_with_loader(draft: &Path, tree: &Path, program: &str) -> Result<()> {
    let renamed = format!("{program}.elf");
    let file = fs::canonicalize(draft.join(program))?;
    fs::rename(file, draft.join(&renamed))?;
    write_script(draft, tree, program, &renamed, &[])
}

/// The packages with QEMU for whole machines. They come from `QEMU_SUITE`, because QEMU 7.2 of
/// `SUITE` has no CPU with `FEAT_ECV`, and lacks what later kernels of some architectures need.
const QEMU_PACKAGES: &[&str] = &[
    "qemu-system-arm",
    "qemu-system-misc",
    "qemu-system-ppc",
    "qemu-system-riscv",
    "qemu-system-s390x",
    "qemu-system-x86",
];

pub(crate) fn qemu_system(program: &str) -> Result<PathBuf> {
    let names = QEMU_PACKAGES.join("-").replace("qemu-", "");
    let tree = cache::directory()?.join(format!("qemu-{QEMU_SUITE}-{names}"));
    build_tree(&tree, QEMU_SUITE, QEMU_PACKAGES, |draft| {
        let share = tree.join("usr/share");
        let mut arguments = Vec::new();
        for name in ["qemu", "seabios"] {
            let directory = share.join(name);
            arguments.push("-L".to_owned());
            arguments.push(directory.display().to_string());
        }
        for Guest { qemu, .. } in &TARGETS.guests {
            let program = format!("usr/bin/{qemu}");
            write_script(draft, &tree, qemu, &program, &arguments)?;
        }
        Ok(())
    })?;
    Ok(tree.join(program))
}

/// Returns the path of the QEMU program that runs the architecture's programs in user mode. This
/// QEMU maps a vDSO of its own, whose functions make the system call.
pub(crate) fn qemu_user(arch: &Arch) -> Result<PathBuf> {
    let mut names: Vec<&str> = TARGETS.arches.iter().map(|arch| arch.qemu).collect();
    names.dedup();
    let joined = names.join("-");
    let tree = cache::directory()?.join(format!("qemu-10-{QEMU_SUITE}-{joined}"));
    build_tree(&tree, QEMU_SUITE, &["qemu-user"], |draft| {
        // The programs are linked statically, so they can be moved out of the tree. The other
        // programs of the package are deleted.
        let programs = draft.join("usr/bin");
        for name in names {
            let program = format!("qemu-{name}");
            fs::rename(programs.join(&program), draft.join(&program))?;
        }
        fs::remove_dir_all(draft.join("usr"))?;
        Ok(())
    })?;
    Ok(tree.join(format!("qemu-{}", arch.qemu)))
}

/// Returns the directory with the kernel's `vmlinuz` and device trees, and with the suite's
/// `busybox`. The kernel is the one that was the suite's newest when it was fetched.
pub(crate) fn guest(guest: &Guest, version: &str) -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("guest-{}-{version}", guest.name));
    cache::build_once(&directory, |draft| {
        step(&format!("fetching the {} kernel {version}", guest.name));
        let suite = TARGETS.suites[version];
        let mut kernel = Package::new(guest.package, guest.name, suite);
        let busybox = Package::new("busybox-static", guest.name, suite);
        let downloads = draft.join("downloads");
        let tree = draft.join("tree");
        let archive = Archive::open(&downloads, std::slice::from_ref(&kernel))?;
        // `guest.package` does not contain the kernel. Its dependencies lead to the package that
        // does.
        let prefixes = ["linux-image-", "linux-binary-"];
        while let Some(next) = archive.dependency(&kernel, &prefixes)? {
            kernel = next;
        }
        let name = kernel.name.clone();
        archive.unpack(&[kernel, busybox], false, &tree)?;
        drop(archive);
        keep_guest_files(&tree, draft)?;
        for file in ["vmlinuz", "busybox"] {
            let is_there = draft.join(file).is_file();
            ensure!(is_there, "{name} and busybox-static have no {file}");
        }
        decompress(&draft.join("vmlinuz"))?;
        fs::remove_dir_all(downloads)?;
        fs::remove_dir_all(tree)?;
        Ok(())
    })?;
    Ok(directory)
}

/// Moves the files that a guest needs out of its unpacked packages. The kernel is
/// /boot/vmlinuz-VERSION, or since Linux 7 /usr/lib/modules/VERSION/vmlinuz.
fn keep_guest_files(tree: &Path, to: &Path) -> Result<()> {
    let sh = Shell::new()?;
    let files = cmd!(
        sh,
        "find {tree} -type f ( -name vmlinu[xz]* -o -name vexpress-v2p-ca9.dtb -o -name busybox -perm /1 )"
    );
    let files = files.quiet().read()?;
    for file in files.lines() {
        let mut name = Path::new(file).file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("vmlinu") {
            name = "vmlinuz".as_ref();
        }
        fs::rename(file, to.join(name))?;
    }
    Ok(())
}

/// Decompresses an EFI kernel that is compressed with zstd, because QEMU 10 cannot decompress it.
/// Linux's drivers/firmware/efi/libstub/zboot-header.S defines the header of such a kernel. Any
/// other file stays as it is.
fn decompress(kernel: &Path) -> Result<()> {
    let bytes = fs::read(kernel)?;
    let is_for_efi = bytes.starts_with(b"MZ\0\0zimg");
    let is_zstd = bytes.get(24..28) == Some(b"zstd");
    if !is_for_efi || !is_zstd {
        return Ok(());
    }
    let packed = kernel.with_extension("zst");
    let payload = payload(&bytes).context("the kernel has no payload")?;
    fs::write(&packed, payload)?;
    let tree = cache::directory()?.join(format!("zstd-{SUITE}"));
    build_tree(&tree, SUITE, &["zstd"], |draft| {
        write_script(draft, &tree, "zstd", "usr/bin/zstd", &[])
    })?;
    let sh = Shell::new()?;
    let zstd = tree.join("zstd");
    cmd!(
        sh,
        "{zstd} --decompress --rm --force --quiet {packed} -o {kernel}"
    )
    .quiet()
    .run()?;
    Ok(())
}

/// Returns the compressed kernel, whose offset and size are in the header.
fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let offset = bytes.get(8..)?.first_chunk()?;
    let offset = u32::from_le_bytes(*offset) as usize;
    let size = bytes.get(12..)?.first_chunk()?;
    let size = u32::from_le_bytes(*size) as usize;
    bytes.get(offset..)?.get(..size)
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
        let mut packages = Vec::new();
        for name in names {
            packages.push(Package::new(name, &architecture, suite));
        }
        debian::unpack(&packages, true, draft)?;
        let share = draft.join("usr/share");
        for name in ["doc", "man", "locale"] {
            let unused = share.join(name);
            if unused.is_dir() {
                fs::remove_dir_all(unused)?;
            }
        }
        finish(draft)
    })
}

/// Writes a script that starts a program of the tree with the tree's libraries, and with its loader
/// if it has one.
fn write_script(
    draft: &Path,
    tree: &Path,
    name: &str,
    program: &str,
    arguments: &[String],
) -> Result<()> {
    let libraries = format!(
        "{0}/lib/{ARCH}-linux-gnu:{0}/usr/lib/{ARCH}-linux-gnu",
        tree.display()
    );
    let libraries = quoted(&libraries);
    let loader = "usr/lib64/ld-linux-x86-64.so.2";
    let mut start = format!("LD_LIBRARY_PATH={libraries} exec");
    if draft.join(loader).exists() {
        let loader = quoted(&tree.join(loader).display().to_string());
        start = format!("exec {loader} --library-path {libraries}");
    }
    let program = tree.join(program).display().to_string();
    let mut words = vec![quoted(&program)];
    for argument in arguments {
        words.push(quoted(argument));
    }
    let words = words.join(" ");
    let script = format!("#!/bin/sh\n{start} {words} \"$@\"\n");
    let file = draft.join(name);
    fs::write(&file, script)?;
    fs::set_permissions(&file, Permissions::from_mode(0o755))?;
    Ok(())
}

/// Returns a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

//! Debian's kernels, and what boots them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::debian::{Archive, Package};
use crate::place::Boot;
use crate::places::{Change, Guest, Kernel};
use crate::process::step;
use crate::tools;

/// What leads from the package that follows the suite's kernel to the one that holds it.
const CHAIN: &[&str] = &["linux-image-", "linux-binary-"];

/// Descriptions of boards that some variants need; with the older kernels they come in the same package.
const BOARDS: &[&str] = &["vexpress-v2p-ca9.dtb"];

const IMAGE: &str = "vmlinuz";

/// Memory in MiB, enough for all test programs at once.
const MEMORY: &str = "512";

/// The plan of the kernel runner: QEMU's command line, init, and the clock.
pub(crate) fn plan(boot: &Boot, init: &Path) -> Result<String, String> {
    let Boot { guest, kernel, variants } = boot;
    let image = fetch(guest, kernel)?.join(IMAGE);
    let mut machine: Vec<String> = guest.machine.iter().map(ToString::to_string).collect();
    let mut append = format!("console={} quiet panic=-1", guest.console);
    let mut more = Vec::new();
    let mut clock = String::new();
    for variant in variants {
        match &variant.change {
            Change::Kernel(argument) => {
                append.push(' ');
                append.push_str(argument);
            }
            Change::Qemu(arguments) => more.extend(arguments.iter().map(ToString::to_string)),
            Change::Board { qemu, tree, from } => {
                let from = guest.kernels.iter().find(|kernel| kernel.version == *from).unwrap_or(kernel);
                let tree = fetch(guest, from)?.join(tree).display().to_string();
                machine = qemu.iter().map(ToString::to_string).chain(["-dtb".into(), tree]).collect();
            }
            Change::Clock(seconds) => clock = format!("clock {seconds}\n"),
        }
    }
    let mut plan = format!("init {}\n{clock}", init.display());
    let program = tools::qemu_system(guest.qemu)?.display().to_string();
    let usual = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"];
    let files = ["-m", MEMORY, "-kernel", &image.display().to_string(), "-append", &append].map(String::from);
    let words = [program].into_iter().chain(usual.map(String::from)).chain(machine).chain(more).chain(files);
    for word in words {
        let _ = writeln!(plan, "qemu {word}"); // a String takes every write
    }
    Ok(plan)
}

/// The folder with the kernel, the suite's newest when it was fetched.
fn fetch(guest: &Guest, kernel: &'static Kernel) -> Result<PathBuf, String> {
    let folder = cache::folder()?.join(format!("kernel-{}-{}", guest.name, kernel.version));
    cache::build_once(&folder, |draft| {
        step(&format!("fetching the kernel {} for {}", kernel.version, guest.name));
        let (name, architecture) = (guest.package.into(), guest.name.into());
        let mut package = Package { name, architecture, suite: kernel.suite };
        let apt = draft.join("apt");
        let archive = Archive::open(&apt, guest.name, &[package.clone()])?;
        while let Some(next) = archive.dependency(&package, CHAIN)? {
            package = next;
        }
        let tree = draft.join("tree");
        archive.unpack(&[package], &tree)?;
        let mut found = Vec::new();
        files(&tree, &mut found)?;
        let is_wanted = |name: &str| name.starts_with(IMAGE) || BOARDS.contains(&name);
        for file in found {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if is_wanted(&name) {
                let name = if name.starts_with(IMAGE) { IMAGE } else { &name };
                fs::rename(&file, draft.join(name)).map_err(|error| cache::at(&file, &error))?;
            }
        }
        cache::remove(&apt)?;
        cache::remove(&tree)?;
        if draft.join(IMAGE).is_file() { Ok(()) } else { Err("the package holds no kernel".into()) }
    })?;
    Ok(folder)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in cache::entries(folder)? {
        if path.is_dir() && !path.is_symlink() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

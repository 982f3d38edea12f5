//! `cargo xtask dist`: an archive for each architecture with the static programs, their manual
//! pages, completions and licences, installed in Debian's oldest and newest release and run there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Error, Result, ensure};
use fs_err as fs;
use vdso_time_kernel_runner::machine::Machine;
use vdso_time_kernel_runner::setup::{Extra, Setup};
use xshell::{Cmd, Shell, cmd};

use crate::chroot::Chroot;
use crate::workspace;

const ARCHES: [&str; 2] = ["x86_64", "aarch64"];
const PROGRAMS: [&str; 2] = ["vdso-doctor", "vdso-who"];
const PACKAGES: [&str; 2] = ["--package=vdso-doctor", "--package=vdso-who"];
const SUITES: [&str; 2] = ["bullseye", "trixie"];

/// The manual pages: the file, and the command that prints it.
const PAGES: [[&str; 2]; 3] = [
    ["vdso-doctor.1", "vdso-doctor man"],
    ["vdso-doctor-accuracy.1", "vdso-doctor man accuracy"],
    ["vdso-who.1", "vdso-who man"],
];

/// The shells, and where each looks for the completions of a program.
const SHELLS: [[&str; 2]; 3] = [
    ["bash", "share/bash-completion/completions/{}"],
    ["fish", "share/fish/vendor_completions.d/{}.fish"],
    ["zsh", "share/zsh/site-functions/_{}"],
];

const HEADER: &str = "MIT or Apache-2.0. The programs also contain glibc, under LGPL-2.1 or later; to \
    link another, run `cargo xtask dist` in the sources. vdso-who contains inferno, under CDDL-1.0; its \
    source is its package on crates.io. The other packages in them:\n";

pub(crate) fn run() -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let dist = workspace::target().join("dist");
    sh.remove_path(&dist)?;
    sh.create_dir(&dist)?;
    for arch in ARCHES {
        let machine: Machine = arch.parse().map_err(Error::msg)?;
        let setup = Setup::new(&machine, &Extra::default())?;
        let archive = archive(&sh, &machine, &setup, &dist)?;
        for suite in SUITES {
            let verdict = install(&machine, &setup, suite, &archive)?;
            println!("{arch}, installed in {suite}: {verdict}");
        }
    }
    sh.change_dir(&dist);
    let archives = ARCHES.map(|arch| name(arch) + ".tar.gz");
    let sums = cmd!(sh, "sha256sum").args(&archives).quiet().read()?;
    fs::write(dist.join("SHA256SUMS"), sums + "\n")?;
    cmd!(sh, "du --bytes SHA256SUMS").args(&archives).quiet().run()?;
    Ok(ExitCode::SUCCESS)
}

fn name(arch: &str) -> String {
    format!("vdso-tools-{}-{arch}-linux", workspace::VERSION)
}

/// Builds the programs, and packs what belongs into a prefix such as /usr/local.
fn archive(sh: &Shell, machine: &Machine, setup: &Setup, dist: &Path) -> Result<PathBuf> {
    let (name, target) = (name(machine.arch.name), workspace::target().join("dist-build"));
    let prefix = dist.join(&name);
    let write = |path: &str, text: String| -> Result<()> {
        ensure!(!text.is_empty(), "{path} is empty");
        sh.create_dir(prefix.join(path).parent().context("the path has no folder")?)?;
        Ok(fs::write(prefix.join(path), text)?)
    };
    let home = workspace::cargo_home()?;
    let (root, home) = (workspace::root(), home.display());
    let remap = format!("--remap-path-prefix={}=. --remap-path-prefix={home}=cargo", root.display());
    setup
        .cargo(sh)
        .args(["build", "--quiet", "--release", "--locked", "--bins"])
        .args(PACKAGES)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .env("RUSTFLAGS", format!("-Ctarget-feature=+crt-static {remap}"))
        .run()?;
    sh.create_dir(prefix.join("bin"))?;
    let built = target.join(machine.arch.triple).join("release");
    for program in PROGRAMS {
        sh.copy_file(built.join(program), prefix.join("bin").join(program))?;
        for [shell, path] in SHELLS {
            let words = [program, "completions", shell];
            write(&path.replace("{}", program), emulated(sh, setup, &built, &words).read()? + "\n")?;
        }
    }
    for [page, command] in PAGES {
        let words: Vec<_> = command.split(' ').collect();
        write(&format!("share/man/man1/{page}"), emulated(sh, setup, &built, &words).read()? + "\n")?;
    }
    write("share/doc/vdso-tools/copyright", licences(sh, machine.arch.triple)?)?;
    let (archive, date) = (dist.join(format!("{name}.tar.gz")), cmd!(sh, "git log -1 --format=%cI").read()?);
    cmd!(sh, "tar --create --gzip --file {archive} --directory {dist} --sort=name --mtime={date}")
        .args(["--owner=0", "--group=0", "--numeric-owner", &name])
        .quiet()
        .run()?;
    sh.remove_path(prefix)?;
    Ok(archive)
}

/// Returns a command that runs on the machine its first word was built for.
fn emulated<'a>(sh: &'a Shell, setup: &Setup, built: &Path, words: &[&str]) -> Cmd<'a> {
    let program = built.join(words[0]);
    let command = [setup.plan.qemu.clone(), vec![program.display().to_string()]].concat();
    sh.cmd(&command[0]).args(&command[1..]).args(&words[1..]).quiet()
}

/// Returns the licences of the packages that the programs contain.
fn licences(sh: &Shell, triple: &str) -> Result<String> {
    let tree = workspace::cargo(sh).args(["tree", "--edges=normal", "--prefix=none", "--target", triple]);
    let tree = tree.args(PACKAGES).arg("--format={p} {l}").read()?;
    let mut text = HEADER.to_owned();
    for package in workspace::packages(sh, &[])? {
        let [name, version, licence, manifest] = ["name", "version", "license", "manifest_path"]
            .map(|key| package[key].as_str().unwrap_or_default());
        if !tree.lines().any(|line| line.starts_with(&format!("{name} v{version} "))) {
            continue;
        }
        writeln!(text, "\n== {name} {version}: {licence}\n")?;
        let folder = Path::new(manifest).parent().context("the manifest has no folder")?;
        let files = cmd!(sh, "find -L {folder} -maxdepth 2 -type f ( -name *MIT* -o -name LICEN[CS]E* )");
        let files = files.quiet().read()?;
        // A package under two licences may be used under one of them.
        let is_mit = |file: &&str| file.rsplit('/').next().is_some_and(|name| name.contains("MIT"));
        text += &match files.lines().find(is_mit).or_else(|| files.lines().next()) {
            Some(file) => sh.read_file(file)?,
            None => "(The package has no copy of its licence.)\n".into(),
        };
    }
    Ok(text)
}

/// Unpacks the archive into a system of Debian, and runs the programs. Returns the verdict.
fn install(machine: &Machine, setup: &Setup, suite: &'static str, archive: &Path) -> Result<String> {
    let chroot = Chroot::new(machine.arch, suite, &["base-files"])?;
    let (sh, local) = (Shell::new()?, chroot.folder.join("usr/local"));
    sh.create_dir(&local)?;
    cmd!(sh, "tar --extract --file {archive} --directory {local} --strip-components=1").quiet().run()?;
    // A static program. It needs no file of the system.
    let qemu = setup.plan.qemu.first();
    qemu.map_or(Ok(()), |qemu| sh.copy_file(qemu, chroot.folder.join("usr/bin/qemu")))?;
    let run = |program: &str, arguments: &[&str]| {
        let path = format!("/usr/local/bin/{program}");
        let words = [qemu.map_or(&[][..], |_| &["qemu"]), &[&*path], arguments].concat();
        chroot.command(&words).read()
    };
    for program in PROGRAMS {
        let printed = run(program, &["--version"])?;
        ensure!(printed == format!("{program} {}", workspace::VERSION), "{program} --version: {printed}");
    }
    let report = run(PROGRAMS[0], &[])?;
    let verdict = report.split("\n\n").next().unwrap_or_default();
    Ok(verdict.split_whitespace().collect::<Vec<_>>().join(" "))
}

//! `cargo xtask dist`: an archive of each static program for each architecture, with its manual
//! pages, completions and licences, and an archive of the library for C for each architecture.
//!
//! A program that needs a library of the system fails here.
//!
//! An archive has the name and the layout that `cargo binstall` looks for without configuration:
//! `NAME-TRIPLE-vVERSION.tar.gz` with `NAME-TRIPLE-vVERSION/NAME` in it.

use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use xshell::{Shell, cmd};

use crate::{runner, workspace};

/// An architecture of the runner.
struct Arch {
    name: &'static str,
    triple: &'static str,
    /// The machine for which the library for C is built. For i686 it names an emulator, because for
    /// native runs the runner links statically, and a static `cdylib` does not exist.
    machine_of_library: &'static str,
    /// The programs that work there: vdso-who knows the registers of two architectures.
    programs: &'static [&'static str],
}

const ARCHES: [Arch; 5] = [
    Arch {
        name: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        machine_of_library: "x86_64",
        programs: &["vdso-doctor", "vdso-who"],
    },
    Arch {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        machine_of_library: "aarch64",
        programs: &["vdso-doctor", "vdso-who"],
    },
    Arch {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        machine_of_library: "armv7",
        programs: &["vdso-doctor"],
    },
    Arch {
        name: "i686",
        triple: "i686-unknown-linux-gnu",
        machine_of_library: "i686@qemu-10",
        programs: &["vdso-doctor"],
    },
    Arch {
        name: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        machine_of_library: "riscv64",
        programs: &["vdso-doctor"],
    },
];

/// The manual page and the completions of a program: the extension in its directory `pages`, and
/// where the reader looks for it.
const PAGES: [[&str; 2]; 4] = [
    ["1", "share/man/man1/{}.1"],
    ["bash", "share/bash-completion/completions/{}"],
    ["fish", "share/fish/vendor_completions.d/{}.fish"],
    ["zsh", "share/zsh/site-functions/_{}"],
];

const HEADER: &str = "MIT or Apache-2.0. The programs also contain glibc, under LGPL-2.1 or later; to \
    link a different glibc, run `cargo xtask dist` in the sources. vdso-who contains inferno, under CDDL-1.0; its \
    source is its package on crates.io. The other packages in them:\n";

pub(crate) fn run() -> Result<ExitCode> {
    let sh = workspace::shell()?;
    let dist = workspace::target().join("dist");
    sh.remove_path(&dist)?;
    sh.create_dir(&dist)?;
    for arch in ARCHES {
        let built = Built::new(arch)?;
        for program in built.arch.programs {
            built.run_alone(&sh, program)?;
            built.pack(&sh, program, &dist)?;
            println!("{program} for {}", built.arch.name);
        }
        built.library(&sh, &dist)?;
    }
    sh.change_dir(&dist);
    let sums = cmd!(sh, "sh -c 'sha256sum *.tar.gz'").quiet().read()?;
    fs::write(dist.join("SHA256SUMS"), sums + "\n")?;
    cmd!(sh, "du --bytes --all .").quiet().run()?;
    Ok(ExitCode::SUCCESS)
}

/// The programs of an architecture.
struct Built {
    arch: Arch,
    directory: PathBuf,
}

impl Built {
    fn new(arch: Arch) -> Result<Self> {
        let target = workspace::target().join("dist-build");
        let root = workspace::root();
        // The sources of other packages are in ~/.cargo.
        let home = env::var("HOME")?;
        let flags = format!(
            "-Ctarget-feature=+crt-static --remap-path-prefix={home}=~ --remap-path-prefix={}=.",
            root.display()
        );
        let mut cargo = runner::on(arch.name)?;
        cargo
            .args(["build", "--quiet", "--release", "--locked", "--bins"])
            .args(["--config", "profile.release.strip='symbols'"])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(root)
            .env("RUSTFLAGS", flags);
        for program in arch.programs {
            cargo.args(["--package", program]);
        }
        runner::run(&mut cargo)?;
        let directory = target.join(arch.triple).join("release");
        Ok(Self { arch, directory })
    }

    /// Packs a program, and below `share` what belongs into a prefix such as /usr/local.
    fn pack(&self, sh: &Shell, program: &str, dist: &Path) -> Result<()> {
        let triple = self.arch.triple;
        let name = format!("{program}-{triple}-v{}", workspace::VERSION);
        let directory = dist.join(&name);
        let write = |path: &str, text: String| -> Result<()> {
            ensure!(!text.is_empty(), "{path} is empty");
            sh.create_dir(
                directory
                    .join(path)
                    .parent()
                    .context("the path has no directory")?,
            )?;
            Ok(fs::write(directory.join(path), text)?)
        };
        sh.create_dir(&directory)?;
        sh.copy_file(self.directory.join(program), directory.join(program))?;
        for [extension, path] in PAGES {
            let page =
                workspace::root().join(format!("tools/{program}/pages/{program}.{extension}"));
            write(&path.replace("{}", program), fs::read_to_string(page)?)?;
        }
        write(
            &format!("share/doc/{program}/copyright"),
            licences(sh, triple, program)?,
        )?;
        let archive = dist.join(format!("{name}.tar.gz"));
        let date = cmd!(sh, "git log -1 --format=%cI").read()?;
        cmd!(
            sh,
            "tar --create --gzip --file {archive} --directory {dist} --sort=name --mtime={date}"
        )
        .args(["--owner=0", "--group=0", "--numeric-owner", &name])
        .quiet()
        .run()?;
        Ok(sh.remove_path(directory)?)
    }

    /// Packs the library for C. `cargo xtask on` is its Makefile's cargo.
    fn library(&self, sh: &Shell, dist: &Path) -> Result<()> {
        let cargo = format!("CARGO=cargo xtask on {}", self.arch.machine_of_library);
        let directories = [
            format!(
                "CARGO_TARGET_DIR={}",
                workspace::target().join("dist-build").display()
            ),
            format!("dist={}", dist.display()),
        ];
        // binutils' objcopy knows the formats of one architecture, LLVM's knows all.
        let target = [
            format!("TARGET={}", self.arch.triple),
            "OBJCOPY=llvm-objcopy".into(),
        ];
        cmd!(
            sh,
            "make --silent --directory crates/vdso-time-c dist CARGOFLAGS=--quiet {cargo}"
        )
        .args(directories)
        .args(target)
        .quiet()
        .run()?;
        Ok(())
    }

    /// Runs a program, which must need no library.
    fn run_alone(&self, sh: &Shell, program: &str) -> Result<()> {
        let path = self.directory.join(program);
        let headers = cmd!(sh, "readelf --wide --program-headers --dynamic {path}");
        let headers = headers.quiet().ignore_stderr().read()?;
        ensure!(
            !headers.contains("INTERP") && !headers.contains("(NEEDED)"),
            "{program} needs a library:\n{headers}"
        );
        let mut command = runner::command("run")?;
        command.arg(self.arch.name).arg(path).arg("--version");
        let printed = runner::read(&mut command)?;
        ensure!(
            printed == format!("{program} {}\n", workspace::VERSION),
            "{program} --version: {printed}"
        );
        Ok(())
    }
}

/// Returns the licences of the packages that a program contains.
fn licences(sh: &Shell, triple: &str, program: &str) -> Result<String> {
    let tree = workspace::cargo(sh).args([
        "tree",
        "--edges=normal",
        "--prefix=none",
        "--target",
        triple,
    ]);
    let tree = tree
        .args(["--package", program, "--format={p} {l}"])
        .read()?;
    let mut text = HEADER.to_owned();
    for package in workspace::packages(sh, &[])? {
        let text_of = |key: &str| package[key].as_str().unwrap_or_default();
        let name = text_of("name");
        let version = text_of("version");
        let licence = text_of("license");
        let manifest = text_of("manifest_path");
        if !tree
            .lines()
            .any(|line| line.starts_with(&format!("{name} v{version} ")))
        {
            continue;
        }
        writeln!(text, "\n== {name} {version}: {licence}\n")?;
        let directory = Path::new(manifest)
            .parent()
            .context("the manifest has no directory")?;
        let files = cmd!(
            sh,
            "find -L {directory} -maxdepth 2 -type f ( -name *MIT* -o -name LICEN[CS]E* )"
        );
        let files = files.quiet().read()?;
        // A package under two licences may be used under one of them.
        let is_mit = |file: &&str| {
            file.rsplit('/')
                .next()
                .is_some_and(|name| name.contains("MIT"))
        };
        text += &match files.lines().find(is_mit).or_else(|| files.lines().next()) {
            Some(file) => sh.read_file(file)?,
            None => "(The package has no copy of its licence.)\n".into(),
        };
    }
    Ok(text)
}

//! A Debian system in a folder, and commands that have it as their root.

use std::path::PathBuf;

use anyhow::Result;
use vdso_time_kernel_runner::targets::Arch;
use xshell::{Cmd, Shell, cmd};

use crate::workspace;

/// Mounts this machine's /proc, /sys and /dev, and enters the new root `$0`.
const ENTER: &str = r#"mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" &&
    mount --rbind /dev "$0/dev" && exec chroot "$0" "$@""#;

/// A copy of a system, deleted at the end.
pub(crate) struct Chroot {
    sh: Shell,
    pub(crate) folder: PathBuf,
}

impl Chroot {
    pub(crate) fn new(arch: &Arch, suite: &'static str, packages: &[&str]) -> Result<Self> {
        let system = vdso_time_kernel_runner::root(arch, suite, packages)?;
        let folder = workspace::target().join(format!("chroot-{suite}-{}", arch.name));
        let chroot = Self { sh: Shell::new()?, folder };
        let (sh, folder) = (&chroot.sh, &chroot.folder);
        sh.remove_path(folder)?;
        cmd!(sh, "cp --archive --reflink=auto {system} {folder}").quiet().run()?;
        Ok(chroot)
    }

    /// Returns a command that runs in the system. It needs a user namespace, but no root.
    pub(crate) fn command(&self, words: &[&str]) -> Cmd<'_> {
        let (sh, folder) = (&self.sh, &self.folder);
        cmd!(sh, "unshare --map-root-user --mount --pid --fork sh -c {ENTER} {folder} {words...}")
            .env_clear()
            .env("HOME", "/root")
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .quiet()
    }
}

impl Drop for Chroot {
    fn drop(&mut self) {
        let _ = self.sh.remove_path(&self.folder);
    }
}

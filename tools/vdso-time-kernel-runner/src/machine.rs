//! `MACHINE` of the command line: an architecture, and what runs its programs.

use std::env::consts::ARCH;
use std::fmt;
use std::str::FromStr;

use crate::targets::{Arch, BootOption, Guest, TARGETS};

pub(crate) const EMULATOR: &str = "qemu-10";

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub(crate) arch: &'static Arch,
    pub(crate) runner: Runner,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Runner {
    Native,
    /// QEMU in user mode.
    Emulator,
    Kernel(Boot),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Boot {
    pub(crate) guest: &'static Guest,
    /// The kernel's version.
    pub(crate) kernel: &'static str,
    pub(crate) options: Vec<&'static BootOption>,
}

/// Explains `MACHINE`, for the help.
pub fn syntax() -> String {
    let mut options: Vec<&str> = TARGETS.options.iter().map(|option| option.name).collect();
    options.dedup();
    format!(
        "MACHINE is ARCH or ARCH@RUNNER:\n  \
           ARCH    {}\n  \
           RUNNER  native, {EMULATOR}, or a Debian kernel: {}\n          \
           a kernel of another architecture: amd64-6.1, arm64-6.12\n          \
           a kernel with boot options, such as 6.12+hpet: +{}\n  \
           Without RUNNER: native where this machine can run ARCH, else {EMULATOR}.",
        names(&TARGETS.arches, |arch| arch.name),
        names(&TARGETS.guests[0].kernels, |version| *version),
        options.join(", +"),
    )
}

impl Machine {
    /// Returns whether the programs must be linked statically, because their shared libraries are
    /// missing where they run. A guest has no shared libraries at all. The host has shared
    /// libraries only for its own architecture, even if it can run programs of another architecture
    /// natively.
    pub(crate) fn is_static(&self) -> bool {
        match self.runner {
            Runner::Native => self.arch.name != ARCH,
            Runner::Emulator => false,
            Runner::Kernel(_) => true,
        }
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut name = text;
        let mut runner = "";
        if let Some((before, after)) = text.split_once('@') {
            name = before;
            runner = after;
        }
        let arch = find(&TARGETS.arches, "architecture", name, |arch| arch.name)?;
        let can_run = arch.hosts.contains(&ARCH);
        let runner = match runner {
            "" | "native" if can_run => Runner::Native,
            "" | EMULATOR => Runner::Emulator,
            "native" => {
                return Err(format!(
                    "this machine cannot run {name} programs natively; omit `@native`"
                ));
            }
            kernel => Runner::Kernel(Boot::parse(arch, kernel)?),
        };
        Ok(Self { arch, runner })
    }
}

impl Boot {
    fn parse(arch: &Arch, text: &str) -> Result<Self, String> {
        let mut parts = text.split('+');
        let kernel = parts.next().unwrap_or_default();
        let mut guest = arch.guests[0];
        let mut version = kernel;
        if let Some((before, after)) = kernel.split_once('-') {
            guest = before;
            version = after;
        }
        if !arch.guests.contains(&guest) {
            let guests = arch.guests.join(", ");
            return Err(format!(
                "no kernel of {guest} runs {} programs; choose from {guests}",
                arch.name
            ));
        }
        let guest = find(&TARGETS.guests, "guest", guest, |guest| guest.name)?;
        let what = format!("{} kernel", guest.name);
        let kernel = find(&guest.kernels, &what, version, |version| *version)?;
        let asked: Vec<&str> = parts.collect();
        let options = options(guest, &asked)?;
        Ok(Self {
            guest,
            kernel,
            options,
        })
    }
}

/// Returns the boot options of these names. They are always in the order of targets.toml, even if
/// `asked` has another order, so that each machine has only one name.
fn options(guest: &Guest, asked: &[&str]) -> Result<Vec<&'static BootOption>, String> {
    let mut available = Vec::new();
    let mut names = Vec::new();
    for option in &TARGETS.options {
        if option.guests.contains(&guest.name) {
            available.push(option);
            names.push(option.name);
        }
    }
    for name in asked {
        if !names.contains(name) {
            return Err(format!(
                "{} has no boot option +{name}; choose from +{}",
                guest.name,
                names.join(", +")
            ));
        }
    }
    available.retain(|option| asked.contains(&option.name));
    Ok(available)
}

/// Finds the row with this name. The error lists all names.
fn find<T>(
    table: &'static [T],
    what: &str,
    name: &str,
    of: fn(&T) -> &'static str,
) -> Result<&'static T, String> {
    table
        .iter()
        .find(|row| of(row) == name)
        .ok_or_else(|| format!("unknown {what} `{name}`; choose from {}", names(table, of)))
}

fn names<T>(table: &[T], of: fn(&T) -> &'static str) -> String {
    let names: Vec<&str> = table.iter().map(of).collect();
    names.join(", ")
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.arch.name)?;
        match &self.runner {
            Runner::Native => f.write_str("native"),
            Runner::Emulator => f.write_str(EMULATOR),
            Runner::Kernel(Boot {
                guest,
                kernel,
                options,
            }) => {
                if self.arch.guests[0] != guest.name {
                    write!(f, "{}-", guest.name)?;
                }
                f.write_str(kernel)?;
                for option in options {
                    write!(f, "+{}", option.name)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn a_machine_has_one_name_and_an_error_lists_what_there_is() {
        for (text, name) in [
            ("x86_64@6.12+2cpus+vdso=0", "x86_64@6.12+vdso=0+2cpus"),
            ("i686@i386-6.1", "i686@6.1"),
            ("i686@amd64-6.1", "i686@amd64-6.1"),
        ] {
            assert_eq!(
                text.parse::<Machine>()
                    .map(|machine| machine.to_string())
                    .as_deref(),
                Ok(name)
            );
        }
        for (text, words) in [
            ("vax", "unknown architecture `vax`; choose from x86_64,"),
            (
                "aarch64@amd64-6.1",
                "runs aarch64 programs; choose from arm64",
            ),
            ("i686@6.12", "choose from 5.10, 6.1"),
            ("aarch64@6.12+hpet", "+2040"),
        ] {
            let error = text.parse::<Machine>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

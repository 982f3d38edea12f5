//! `WHERE`: an architecture, and what runs its programs.

use std::env::consts::ARCH;
use std::fmt;

use crate::places::{ARCHES, Arch, EMULATORS, Emulator, GUESTS, Guest, Kernel, VARIANTS, Variant};

pub(crate) const SYNTAX: &str = "\
WHERE is ARCH or ARCH@RUNNER:
  ARCH    x86_64, i686, aarch64, armv7, thumbv7
  RUNNER  native, qemu-7.2, qemu-10, or a Debian kernel: 5.10, 6.1, 6.12, 7; that of another
          architecture: amd64-6.1, arm64-6.12; with changes: 6.12+hpet, +acpi_pm, +jiffies,
          +vdso=0, +vdso32=0, +notimer, +2040, +2cpus
  ARCH alone runs natively where it can, else in qemu-10. Elsewhere than natively, `on WHERE test`
  runs all test programs, in one boot where WHERE is a kernel, and not the examples in the
  documentation.
";

#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) arch: &'static Arch,
    pub(crate) runner: Runner,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Runner {
    Native,
    Emulator(&'static Emulator),
    Kernel(Boot),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Boot {
    pub(crate) guest: &'static Guest,
    pub(crate) kernel: &'static Kernel,
    pub(crate) variants: Vec<&'static Variant>,
}

impl Place {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, runner) = text.split_once('@').unwrap_or((text, ""));
        let arch = named(ARCHES, "architecture", name, |arch| arch.name)?;
        let native = arch.hosts.contains(&ARCH);
        let usual = if native { "native" } else { "qemu-10" };
        let runner = match if runner.is_empty() { usual } else { runner } {
            "native" if native => Runner::Native,
            "native" => return Err(format!("this machine runs no programs for {name}")),
            qemu if qemu.starts_with("qemu") => {
                Runner::Emulator(named(EMULATORS, "emulator", qemu, |emulator| emulator.name)?)
            }
            kernel => Runner::Kernel(Boot::parse(arch, kernel)?),
        };
        Ok(Self { arch, runner })
    }

    /// Whether programs are linked statically: a guest has no libraries, and this machine none of other architectures.
    pub(crate) fn is_static(&self) -> bool {
        match self.runner {
            Runner::Native => self.arch.name != ARCH,
            Runner::Emulator(_) => false,
            Runner::Kernel(_) => true,
        }
    }
}

impl Boot {
    fn parse(arch: &Arch, text: &str) -> Result<Self, String> {
        let mut parts = text.split('+');
        let kernel = parts.next().unwrap_or_default();
        let usual = arch.guests.first().copied().unwrap_or_default();
        let (guest, version) = kernel.split_once('-').unwrap_or((usual, kernel));
        if !arch.guests.contains(&guest) {
            let guests = arch.guests.join(", ");
            return Err(format!(
                "no kernel of {guest} runs programs for {}; those of {guests} do",
                arch.name
            ));
        }
        let guest = named(GUESTS, "guest", guest, |guest| guest.name)?;
        let kernel =
            named(guest.kernels, &format!("kernel for {}", guest.name), version, |kernel| kernel.version)?;
        let here = || VARIANTS.iter().filter(|variant| variant.guests.contains(&guest.name));
        let mut chosen: Vec<&str> = Vec::new();
        for part in parts {
            let variant = here().find(|variant| variant.name == part).ok_or_else(|| {
                let names: Vec<&str> = here().map(|variant| variant.name).collect();
                format!("no change +{part} for {}; there are +{}", guest.name, names.join(", +"))
            })?;
            let other =
                here().find(|other| chosen.contains(&other.name) && other.setting() == variant.setting());
            if let Some(other) = other {
                let setting = variant.setting();
                return Err(format!("+{} and +{part} cannot be combined: both set {setting}", other.name));
            }
            chosen.push(part);
        }
        // However they were written, in one order: a place has one name.
        let variants = here().filter(|variant| chosen.contains(&variant.name)).collect();
        Ok(Self { guest, kernel, variants })
    }
}

/// The row of the table, or an error that names all rows.
fn named<T>(
    table: &'static [T],
    what: &str,
    name: &str,
    of: fn(&T) -> &'static str,
) -> Result<&'static T, String> {
    table.iter().find(|row| of(row) == name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(of).collect();
        format!("no {what} `{name}`; there are {}", names.join(", "))
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.arch.name)?;
        match &self.runner {
            Runner::Native => f.write_str("native"),
            Runner::Emulator(emulator) => f.write_str(emulator.name),
            Runner::Kernel(Boot { guest, kernel, variants }) => {
                if self.arch.guests.first() != Some(&guest.name) {
                    write!(f, "{}-", guest.name)?;
                }
                f.write_str(kernel.version)?;
                variants.iter().try_for_each(|variant| write!(f, "+{}", variant.name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Runner, SYNTAX};
    use crate::places::{ARCHES, Change, EMULATORS, GUESTS, VARIANTS};

    #[test]
    fn places_come_back_as_they_went() {
        for text in [
            "aarch64@qemu-7.2",
            "armv7@qemu-10",
            "x86_64@6.12+hpet",
            "x86_64@6.12+vdso=0+2cpus",
            "i686@amd64-6.1",
            "i686@6.1+2040",
            "armv7@arm64-6.12",
            "thumbv7@7+notimer",
        ] {
            assert_eq!(Place::parse(text).map(|place| place.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(Place::parse("i686@i386-6.1").unwrap().to_string(), "i686@6.1");
        assert_eq!(Place::parse("armv7@6.12+2040+notimer").unwrap().to_string(), "armv7@6.12+notimer+2040");
    }

    #[test]
    fn the_same_change_differs_by_guest() {
        let change = |text| match Place::parse(text).unwrap().runner {
            Runner::Kernel(boot) => &boot.variants[0].change,
            other => panic!("{other:?}"),
        };
        assert!(matches!(change("i686@6.1+2040"), Change::Qemu(_)));
        assert!(matches!(change("aarch64@6.1+2040"), Change::Clock(_)));
    }

    #[test]
    fn errors_say_what_there_is() {
        for (text, words) in [
            ("vax", "thumbv7"),
            ("aarch64@qemu-11", "qemu-7.2, qemu-10"),
            ("aarch64@amd64-6.1", "those of arm64 do"),
            ("i686@6.12", "there are 5.10, 6.1"),
            ("aarch64@6.12+hpet", "+2040"),
            ("x86_64@6.12+", "+hpet"),
            ("x86_64@6.12+hpet+acpi_pm", "+hpet and +acpi_pm cannot be combined: both set clocksource"),
            ("x86_64@6.12+2040+2cpus+2040", "+2040 and +2040 cannot be combined"),
        ] {
            let error = Place::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn the_help_names_everything() {
        let arches = ARCHES.iter().map(|arch| arch.name);
        let emulators = EMULATORS.iter().map(|emulator| emulator.name);
        let kernels = GUESTS.iter().flat_map(|guest| guest.kernels).map(|kernel| kernel.version);
        let variants = VARIANTS.iter().map(|variant| variant.name);
        for name in arches.chain(emulators).chain(kernels).chain(variants) {
            assert!(SYNTAX.contains(name), "{name}");
        }
    }
}

//! `cargo xtask dump`: writes the vDSO images of real kernels to `target/vdso-images`.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use fs_err as fs;

use crate::machine::{Machine, Runner};
use crate::matrix_table::machines;
use crate::runner::{dump, end_groups_at_signals};
use crate::setup::Setup;
use crate::{step, workspace};

pub(crate) fn run(named: Vec<Machine>) -> Result<ExitCode> {
    let machines = if named.is_empty() { machines(has_own_image) } else { named };
    // The tests look there, whatever CARGO_TARGET_DIR is.
    let folder = workspace::root().join("target/vdso-images");
    fs::create_dir_all(&folder)?;
    end_groups_at_signals()?;
    for machine in machines {
        let file = folder.join(format!("{machine}.so"));
        fs::write(&file, dump(&Setup::new(&machine)?.plan).with_context(|| machine.to_string())?)?;
        step(&format!("wrote {}", file.display()));
    }
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Whether no other machine has the same image. Of the boot options, only `notimer` changes it.
fn has_own_image(machine: &Machine) -> bool {
    let Runner::Kernel(boot) = &machine.runner else { return false };
    machine.arch.name != "thumbv7" && boot.options.iter().all(|option| option.name == "notimer")
}

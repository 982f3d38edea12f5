//! `cargo xtask dump`: writes the vDSO images of real kernels to `target/vdso-images`.

use std::fs::File;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use guest_init::IMAGE;

use crate::machine::{Machine, Runner};
use crate::matrix_table::machines;
use crate::programs::Program;
use crate::runner::Run;
use crate::setup::Setup;
use crate::{step, workspace};

pub(crate) fn run(named: Vec<Machine>) -> Result<ExitCode> {
    let machines = if named.is_empty() { machines(has_own_image) } else { named };
    // The tests look there, whatever CARGO_TARGET_DIR is.
    let folder = workspace::root().join("target/vdso-images");
    fs::create_dir_all(&folder)?;
    for machine in machines {
        let file = folder.join(format!("{machine}.so"));
        let plan = Setup::new(&machine)?.plan;
        let init = plan.init.as_ref().context("this machine has no kernel of its own")?;
        let (name, path) = (machine.to_string(), init.display().to_string());
        let program = [Program { name, path, arguments: vec![IMAGE.into()] }];
        let mut code = 0;
        Run { out: File::create(&file)?, ..Run::new(&plan, &program)? }.run(|_, ended| code = ended)?;
        ensure!(code == 0, "{machine}: init printed no image");
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

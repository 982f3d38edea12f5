//! `cargo xtask dump`: the vDSO images of real kernels, as their programs see them, in `target/vdso-images`.

use std::process::ExitCode;

use crate::combinations::COMBINATIONS;
use crate::place::{Place, Runner};
use crate::process::{stdout, step};
use crate::setup::Setup;
use crate::{Error, cache, workspace};

/// The changes that make another image; the others make another page of data beside it.
const OTHER_IMAGE: &[&str] = &["notimer"];

pub(crate) fn run(names: &[String]) -> Result<ExitCode, Error> {
    let mut places = Vec::new();
    for name in names {
        places.push(Place::parse(name).map_err(Error::Usage)?);
    }
    if places.is_empty() {
        let all = COMBINATIONS.iter().filter_map(|(name, _)| Place::parse(name).ok());
        places.extend(all.filter(has_own_image));
    }
    let folder = workspace::root().join("target/vdso-images");
    cache::create(&folder)?;
    for place in places {
        let Runner::Kernel(_) = place.runner else {
            return Err(Error::Usage(format!("{place} has no kernel of its own")));
        };
        let file = folder.join(format!("{place}.so"));
        stdout(Setup::of(&place)?.runner().arg("--dump").arg(&file))?;
        step(&format!("wrote {}", file.display()));
    }
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// One of each kind of image; Thumb programs have that of the others.
fn has_own_image(place: &Place) -> bool {
    match &place.runner {
        Runner::Kernel(boot) => {
            let plain = |name: &&str| OTHER_IMAGE.contains(name);
            place.arch.name != "thumbv7"
                && boot.variants.iter().map(|variant| variant.name).all(|name| plain(&name))
        }
        _ => false,
    }
}

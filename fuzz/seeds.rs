//! Writes the seeds: an image of every kind, into the corpus of each target.
//!
//! `cargo run --bin seeds`, in this folder.

#[path = "../tests/support/image.rs"]
mod image;
#[path = "../tests/support/image_kinds.rs"]
mod image_kinds;

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    for target in ["image", "extent"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        for (index, (_, spec)) in image_kinds::kinds().into_iter().enumerate() {
            fs::write(folder.join(format!("kind-{index}")), spec.build().bytes)?;
        }
    }
    Ok(())
}

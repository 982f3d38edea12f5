//! The example `symbols` names the file that it cannot read, or that is no image, and says why.

#[path = "../examples/symbols.rs"]
#[allow(dead_code, reason = "it is a program, of which one part is tested here")]
mod symbols;

use std::path::Path;
use std::{fs, process};

#[test]
fn an_error_names_the_file_and_says_what_is_wrong() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let missing = folder.join("no-such-image");
    let error = symbols::in_file(missing.as_os_str()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot read {}: ", missing.display())), "{error}");

    let file = std::env::temp_dir().join(format!("vdso-time-no-image-{}", process::id()));
    fs::write(&file, "text").unwrap();
    let error = symbols::in_file(file.as_os_str()).unwrap_err().to_string();
    fs::remove_file(&file).unwrap();
    assert_eq!(error, format!("{} is no vDSO's image: not an ELF image", file.display()));
}

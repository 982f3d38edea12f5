//! The manual page and the completions.

use clap::CommandFactory as _;

use super::*;

/// Compares the files with the command line. With `PAGES=overwrite` it writes them.
#[test]
fn the_pages_are_those_of_the_command_line() {
    for (extension, page) in [
        ("1", Page::Man),
        ("bash", Page::Completions { shell: Shell::Bash }),
        ("fish", Page::Completions { shell: Shell::Fish }),
        ("zsh", Page::Completions { shell: Shell::Zsh }),
    ] {
        let (mut program, mut expected) = (Arguments::command(), Vec::new());
        match extension.parse::<clap_complete::Shell>() {
            Ok(shell) => clap_complete::generate(shell, &mut program, "vdso-who", &mut expected),
            Err(_) => clap_mangen::Man::new(program).render(&mut expected).unwrap(),
        }
        if std::env::var_os("PAGES").is_some_and(|what| what == "overwrite") {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/pages/vdso-who.");
            std::fs::write(format!("{path}{extension}"), expected).unwrap();
        } else {
            assert!(page.text().as_bytes() == expected, "vdso-who.{extension} is old: set PAGES=overwrite");
        }
    }
}

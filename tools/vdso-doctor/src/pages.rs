//! The files of the directory `pages`, which `vdso-doctor --generate` prints.
//!
//! The program made them itself, until we measured its first build: clap_complete and clap_mangen
//! took a sixth of it. Now only the test of the command line needs these packages.

macro_rules! page {
    ($extension:literal) => {
        include_str!(concat!(
            "../pages/",
            env!("CARGO_PKG_NAME"),
            ".",
            $extension
        ))
    };
}

/// Returns the manual page, in roff, or the completions for a shell.
pub(crate) fn text(name: &str) -> &'static str {
    match name {
        "bash" => page!("bash"),
        "fish" => page!("fish"),
        "zsh" => page!("zsh"),
        _ => page!("1"),
    }
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::text;

    /// Compares the files with the command line. With `PAGES=overwrite` it writes them.
    #[test]
    fn the_pages_are_those_of_the_command_line() {
        let names = crate::arguments::command();
        let names = names
            .get_arguments()
            .find(|argument| argument.get_id() == "generate")
            .unwrap();
        for name in names.get_possible_values() {
            let name = name.get_name();
            let (mut program, mut page) = (crate::arguments::command(), Vec::new());
            let package = env!("CARGO_PKG_NAME");
            let extension = if name == "man" {
                clap_mangen::Man::new(program).render(&mut page).unwrap();
                "1"
            } else {
                clap_complete::generate(
                    name.parse::<Shell>().unwrap(),
                    &mut program,
                    package,
                    &mut page,
                );
                name
            };
            if std::env::var_os("PAGES").is_some_and(|what| what == "overwrite") {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
                std::fs::write(format!("{folder}/{package}.{extension}"), page).unwrap();
            } else {
                assert!(
                    page == text(name).as_bytes(),
                    "{package}.{extension} is old: set PAGES=overwrite"
                );
            }
        }
    }
}

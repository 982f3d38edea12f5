//! The files of the directory `pages`, which `vdso-who --generate` prints.
//!
//! The program made them itself, until we measured its first build: clap_complete and clap_mangen
//! took a sixth of it. Now only the test of the command line needs these packages.

/// Returns the manual page, in roff, or the completions for a shell.
pub(crate) fn text(name: &str) -> &'static str {
    match name {
        "bash" => include_str!("../pages/vdso-who.bash"),
        "fish" => include_str!("../pages/vdso-who.fish"),
        "zsh" => include_str!("../pages/vdso-who.zsh"),
        _ => include_str!("../pages/vdso-who.1"),
    }
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::text;
    use crate::arguments::command;

    fn generated(name: &str) -> Vec<u8> {
        let mut page = Vec::new();
        if name == "man" {
            clap_mangen::Man::new(command()).render(&mut page).unwrap();
        } else {
            let shell: Shell = name.parse().unwrap();
            clap_complete::generate(shell, &mut command(), "vdso-who", &mut page);
        }
        page
    }

    /// Compares the files with the command line. With `PAGES=overwrite` it writes them.
    #[test]
    fn the_pages_are_those_of_the_command_line() {
        let overwrites = std::env::var_os("PAGES").is_some_and(|what| what == "overwrite");
        for name in ["man", "bash", "fish", "zsh"] {
            let page = generated(name);
            let extension = if name == "man" { "1" } else { name };
            if overwrites {
                let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
                std::fs::write(format!("{directory}/vdso-who.{extension}"), page).unwrap();
            } else {
                let is_same = page == text(name).as_bytes();
                assert!(is_same, "vdso-who.{extension} is old: set PAGES=overwrite");
            }
        }
    }
}

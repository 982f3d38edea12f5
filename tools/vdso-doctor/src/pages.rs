//! The files of the directory `pages`, which `vdso-doctor --generate` prints.
//!
//! `vdso-doctor` used to generate the manual page and the completions itself. But the packages
//! clap_complete and clap_mangen took a sixth of the time of the program's first build. So now the
//! files are stored in the repository, and only the test that compares them with the command line
//! needs these packages.

/// Returns the manual page, in roff, or the completions for a shell.
pub(crate) fn text(name: &str) -> &'static str {
    match name {
        "bash" => include_str!("../pages/vdso-doctor.bash"),
        "fish" => include_str!("../pages/vdso-doctor.fish"),
        "zsh" => include_str!("../pages/vdso-doctor.zsh"),
        _ => include_str!("../pages/vdso-doctor.1"),
    }
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::text;
    use crate::arguments::command;

    /// The manual page without its title and its options.
    const MAN: &str = include_str!("man.roff");

    /// The text that clap_complete writes for the value of `--pid`, and its replacement, which
    /// completes process ids.
    const PROCESS_IDS: [[&str; 2]; 3] = [
        [
            "--pid)\n                    COMPREPLY=($(compgen -f \"${cur}\"))",
            "--pid)\n                    COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"${cur}\"))",
        ],
        [
            "-l pid -d 'Examine the vDSO of the process PID' -r",
            "-l pid -d 'Examine the vDSO of the process PID' -x -a '(__fish_complete_pids)'",
        ],
        [":PID:_default", ":PID:_pids"],
    ];

    fn manual_page() -> String {
        let man = clap_mangen::Man::new(command());
        let mut title = Vec::new();
        man.render_title(&mut title).unwrap();
        let mut options = Vec::new();
        man.render_options_section(&mut options).unwrap();
        let title = String::from_utf8(title).unwrap();
        let options = String::from_utf8(options).unwrap();
        let options = options
            .replace("\\fI<", "\\fI")
            .replace(">\\fR", "\\fR")
            .replace(".SH OPTIONS\n", "");
        title + &MAN.replace("@OPTIONS@\n", &options)
    }

    fn completions(shell: Shell) -> String {
        let mut page = Vec::new();
        clap_complete::generate(shell, &mut command(), "vdso-doctor", &mut page);
        let page = String::from_utf8(page).unwrap();
        for [files, process_ids] in PROCESS_IDS {
            if page.contains(files) {
                return page.replace(files, process_ids);
            }
        }
        panic!("{shell} completes --pid in another way:\n{page}");
    }

    /// Compares the files in `pages` with the text that is generated from the command line's
    /// definition. With `PAGES=overwrite` in the environment, writes the files instead.
    #[test]
    fn the_pages_are_those_of_the_command_line() {
        let overwrites = std::env::var_os("PAGES").is_some_and(|what| what == "overwrite");
        for (name, extension, page) in [
            ("man", "1", manual_page()),
            ("bash", "bash", completions(Shell::Bash)),
            ("fish", "fish", completions(Shell::Fish)),
            ("zsh", "zsh", completions(Shell::Zsh)),
        ] {
            if overwrites {
                let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
                std::fs::write(format!("{directory}/vdso-doctor.{extension}"), page).unwrap();
            } else {
                let is_same = page == text(name);
                assert!(
                    is_same,
                    "vdso-doctor.{extension} is out of date: set PAGES=overwrite"
                );
            }
        }
    }
}

//! The files of the directory `pages`, which `vdso-who --generate` prints.
//!
//! At first, the program generated the manual page and the shell completions itself, with
//! clap_mangen and clap_complete. But compiling these two packages took a sixth of the time of a
//! first build. Now the generated files are kept with the sources, and only the tests, which check
//! or rewrite the files, need the packages.

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
    use std::process::Command;

    use clap_complete::Shell;

    use crate::common::not_run_here;

    use super::text;
    use crate::arguments::command;

    /// The manual page without its title and its options, which clap_mangen writes.
    const MAN: &str = include_str!("man.roff");

    /// The sections in the order of man-pages(7).
    const SECTIONS: [&str; 10] = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "FILES",
        "NOTES",
        "EXAMPLES",
        "SEE ALSO",
    ];

    /// Pairs of a text that clap_complete writes and the text that replaces it. The replacements
    /// also complete process ids, commands, and `top`, which clap does not know.
    const BASH: [[&str; 2]; 4] = [
        [
            "--pid)\n                    COMPREPLY=($(compgen -f \"${cur}\"))",
            "--pid)\n                    COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"${cur}\"))",
        ],
        [
            "-p)\n                    COMPREPLY=($(compgen -f \"${cur}\"))",
            "-p)\n                    COMPREPLY=($(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"${cur}\"))",
        ],
        ["${cur} == -* || ${COMP_CWORD} -eq 1 ", "${cur} == -* "],
        [
            "            esac\n            COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )",
            "            esac\n            if [[ ${COMP_CWORD} -eq 1 ]] ; then\n                opts=top\n            \
             else\n                opts=\"\"\n            fi\n            \
             COMPREPLY=( $(compgen -c -f -W \"${opts}\" -- \"${cur}\") )",
        ],
    ];
    const FISH: [[&str; 2]; 2] = [
        [
            "-l pid -d 'Watch this process and its descendants' -r",
            "-l pid -d 'Watch this process and its descendants' -x -a '(__fish_complete_pids)'",
        ],
        [
            "complete -c vdso-who -s p -l pid",
            "complete -c vdso-who -n __fish_is_first_token -x -a top -d 'Watch all processes, every second'\n\
             complete -c vdso-who -x -a '(__fish_complete_subcommand -- -p --pid --cgroup --group-by --depth \
             -i --interval -d --duration -F -r --frequency --rate --compare -o --output --generate)'\n\
             complete -c vdso-who -s p -l pid",
        ],
    ];
    const ZSH: [[&str; 2]; 4] = [
        [
            "'-p+[Watch this process and its descendants]:PID:_default'",
            "'-p+[Watch this process and its descendants]:PID:_pids'",
        ],
        [
            "'--pid=[Watch this process and its descendants]:PID:_default'",
            "'--pid=[Watch this process and its descendants]:PID:_pids'",
        ],
        [
            "'*::command -- Run this command, and watch it and its descendants:_default'",
            "'(-)1:command:_vdso-who_subjects' \\\n'*::arguments:_normal'",
        ],
        [
            "(( $+functions[_vdso-who_commands] ))",
            "(( $+functions[_vdso-who_subjects] )) ||\n_vdso-who_subjects() {\n    _alternative \\\n        \
             'commands:command:_command_names -e' \\\n        \
             'modes:mode:((top\\:\"Watch all processes, every second\"))'\n}\n\n\
             (( $+functions[_vdso-who_commands] ))",
        ],
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

    fn completions(shell: Shell, changes: &[[&str; 2]]) -> String {
        let mut page = Vec::new();
        clap_complete::generate(shell, &mut command(), "vdso-who", &mut page);
        let mut page = String::from_utf8(page).unwrap();
        for [generated, better] in changes {
            assert!(page.contains(generated), "{shell}: {generated}\n{page}");
            page = page.replacen(generated, better, 1);
        }
        page
    }

    /// Compares the files with the command line. With `PAGES=overwrite` it writes them.
    #[test]
    fn the_pages_are_those_of_the_command_line() {
        let overwrites = std::env::var_os("PAGES").is_some_and(|what| what == "overwrite");
        for (name, extension, page) in [
            ("man", "1", manual_page()),
            ("bash", "bash", completions(Shell::Bash, &BASH)),
            ("fish", "fish", completions(Shell::Fish, &FISH)),
            ("zsh", "zsh", completions(Shell::Zsh, &ZSH)),
        ] {
            if overwrites {
                let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/pages");
                std::fs::write(format!("{directory}/vdso-who.{extension}"), page).unwrap();
            } else {
                let is_same = page == text(name);
                assert!(is_same, "vdso-who.{extension} is old: set PAGES=overwrite");
            }
        }
    }

    #[test]
    fn the_manual_page_has_the_sections_of_man_pages_7_in_its_order() {
        let sections = text("man").lines();
        let sections: Vec<_> = sections
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        assert_eq!(sections, SECTIONS);
    }

    /// Completes words of a command line as bash does. PATH is empty, so bash offers only its
    /// builtin commands: an offered `top` is not the program top(1).
    #[test]
    fn bash_completes_top_commands_and_process_ids() {
        const SCRIPT: &str = "PATH=\neval \"$1\"\nshift\nCOMP_WORDS=(vdso-who \"$@\")\nCOMP_CWORD=$#\n\
                              _vdso__who vdso-who \"${COMP_WORDS[$#]}\" \"${COMP_WORDS[$# - 1]}\"\n\
                              printf '%s\\n' \"${COMPREPLY[@]}\"";
        let own = std::process::id().to_string();
        for (words, expected, is_offered) in [
            (&["to"][..], "top", true),
            (&["--all", "to"], "top", false),
            (&["ech"], "echo", true),
            (&["--exact", "ech"], "echo", true),
            (&["-p", &own], own.as_str(), true),
            (&["--pid", &own], &own, true),
            (&["--interv"], "--interval", true),
            (&["--group-by", "th"], "thread", true),
        ] {
            let mut bash = Command::new("bash");
            bash.args(["-c", SCRIPT, "bash", text("bash")]).args(words);
            let output = match bash.output() {
                Ok(output) => output,
                Err(error) => return not_run_here(error),
            };
            let offered = String::from_utf8_lossy(&output.stdout);
            let has = offered.lines().any(|line| line == expected);
            assert_eq!(has, is_offered, "{words:?}: {offered}");
        }
    }
}

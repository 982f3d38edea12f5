//! The files of the folder `pages`, which `man` and `completions` of `vdso-doctor` and `vdso-who`
//! print.
//!
//! The programs made them themselves, until we measured their first build: clap_complete and
//! clap_mangen took a sixth of it. Now only the test of the command line needs these packages.

macro_rules! page {
    ($extension:literal) => {
        include_str!(concat!("../pages/", env!("CARGO_PKG_NAME"), ".", $extension))
    };
}

/// Returns the completions for a shell, or the manual page.
pub(crate) fn text(shell: Option<&str>) -> &'static str {
    match shell {
        Some("bash") => page!("bash"),
        Some("fish") => page!("fish"),
        Some(_) => page!("zsh"),
        None => page!("1"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use clap_complete::Shell;

    use super::text;

    /// What clap_complete 4.6 and clap_mangen 0.3 print, and what is right. `NAME` is the
    /// program's.
    ///
    /// - In bash, a subcommand of a program whose name has a `-` is looked for under another name.
    /// - In fish, a line that ends with an option without its value has no completions, not even
    ///   the values. The shells are missing.
    /// - In zsh, the first word of a command takes the place of a subcommand, and the others are
    ///   completed as subcommands.
    /// - The subcommands have no manual pages.
    const CORRECTIONS: [(&str, &str); 9] = [
        ("vdso__subcmd__NAME__", "vdso__NAME__"),
        ("2>/dev/null\n    or return\n", "2>/dev/null\n    or return 0\n"),
        (
            "-d 'Print the manual page, in roff'\n",
            "-d 'Print the manual page, in roff'\ncomplete -c vdso-NAME -n \
             \"__fish_vdso_NAME_using_subcommand completions\" -f -a 'bash fish zsh'\n",
        ),
        ("'::command -- Run this command and watch it and what it starts:_default' \\\n\":: ", "\": "),
        (":_vdso-who_commands\"", ":{_vdso-who_commands; _command_names -e}\""),
        ("case $line[2] in", "[[ $line[2] == (completions|man) ]] || _normal\n        case $line[2] in"),
        ("$line[2]", "$line[1]"),
        ("vdso\\-NAME\\-completions(1)", "vdso\\-NAME completions"),
        ("vdso\\-NAME\\-man(1)", "vdso\\-NAME man"),
    ];

    /// Compares the files with the command line. With `PAGES=overwrite` it writes them. Then asks
    /// bash for the shells.
    #[test]
    fn the_pages_are_those_of_the_command_line() {
        let name = env!("CARGO_PKG_NAME");
        let path = format!("{}/pages/{name}", env!("CARGO_MANIFEST_DIR"));
        for shell in [Some("bash"), Some("fish"), Some("zsh"), None] {
            let (mut program, mut page) = (crate::arguments::command(), Vec::new());
            match shell.and_then(|shell| shell.parse::<Shell>().ok()) {
                Some(shell) => clap_complete::generate(shell, &mut program, name, &mut page),
                None => clap_mangen::Man::new(program).render(&mut page).unwrap(),
            }
            let page = CORRECTIONS.iter().fold(String::from_utf8(page).unwrap(), |page, (from, to)| {
                let [from, to] = [from, to].map(|text| text.replace("NAME", &name["vdso-".len()..]));
                page.replace(&from, &to)
            });
            let extension = shell.unwrap_or("1");
            if std::env::var_os("PAGES").is_some_and(|what| what == "overwrite") {
                std::fs::write(format!("{path}.{extension}"), page).unwrap();
            } else {
                assert!(page == text(shell), "{name}.{extension} is old: set PAGES=overwrite");
            }
        }
        let function = name.replace('-', "__");
        let script = format!(
            "source {path}.bash; COMP_WORDS=({name} completions ''); COMP_CWORD=2; \
             _{function} {name} '' completions; echo ${{COMPREPLY[@]}}"
        );
        // Foreign machines have no bash.
        let Ok(output) = Command::new("bash").args(["-c", &script]).output() else { return };
        assert_eq!(String::from_utf8_lossy(&output.stdout), "-h --help bash fish zsh\n", "{output:?}");
    }
}

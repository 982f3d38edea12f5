//! The test of the manual pages and the completions of `vdso-doctor` and `vdso-who`.

use std::process::Command;

use clap_complete::Shell;

/// What clap_complete 4.6 and clap_mangen 0.3 print, and what is right. `NAME` is the program's.
///
/// - In bash, a subcommand of a program whose name has a `-` is looked for under another name.
/// - In fish, a line that ends with an option without its value has no completions, not even the
///   values.
/// - The subcommands have no manual pages.
const CORRECTIONS: [(&str, &str); 4] = [
    ("vdso__subcmd__NAME__", "vdso__NAME__"),
    ("2>/dev/null\n    or return\n", "2>/dev/null\n    or return 0\n"),
    ("vdso\\-NAME\\-completions(1)", "vdso\\-NAME completions"),
    ("vdso\\-NAME\\-man(1)", "vdso\\-NAME man"),
];

/// Compares the files with the command line. With `PAGES=overwrite` it writes them.
pub(crate) fn check(program: &clap::Command, folder: &str, pages: &[(&str, &str)]) {
    let name = program.get_name();
    for (extension, text) in pages {
        let (mut program, mut page) = (program.clone(), Vec::new());
        match extension.parse::<Shell>() {
            Ok(shell) => clap_complete::generate(shell, &mut program, name, &mut page),
            Err(_) => clap_mangen::Man::new(program).render(&mut page).unwrap(),
        }
        let page = CORRECTIONS.iter().fold(String::from_utf8(page).unwrap(), |page, (from, to)| {
            let [from, to] = [from, to].map(|text| text.replace("NAME", &name["vdso-".len()..]));
            page.replace(&from, &to)
        });
        if std::env::var_os("PAGES").is_some_and(|what| what == "overwrite") {
            std::fs::write(format!("{folder}/{name}.{extension}"), page).unwrap();
        } else {
            assert!(page == *text, "{name}.{extension} is old: set PAGES=overwrite");
        }
    }
    let function = name.replace('-', "__");
    let script = format!(
        "source {folder}/{name}.bash; COMP_WORDS=({name} completions ''); COMP_CWORD=2; \
         _{function} {name} '' completions; echo ${{COMPREPLY[@]}}"
    );
    // Foreign machines have no bash.
    let Ok(output) = Command::new("bash").args(["-c", &script]).output() else { return };
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-h --help bash fish zsh\n", "{output:?}");
}

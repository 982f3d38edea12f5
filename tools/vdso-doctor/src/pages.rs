//! `vdso-doctor man` and `vdso-doctor completions`: the files of the folder `pages`.
//!
//! The program made them itself, until we measured its first build: clap_complete and clap_mangen
//! took a sixth of it. Now only the test of the command line needs these packages.

use clap::{Arg, ArgMatches, Command};

/// The files, by their extensions.
pub(crate) const PAGES: [(&str, &str); 4] = [
    ("1", include_str!("../pages/vdso-doctor.1")),
    ("bash", include_str!("../pages/vdso-doctor.bash")),
    ("fish", include_str!("../pages/vdso-doctor.fish")),
    ("zsh", include_str!("../pages/vdso-doctor.zsh")),
];

pub(crate) fn subcommands() -> [Command; 2] {
    let shell = Arg::new("shell").value_name("SHELL").required(true);
    [
        Command::new("completions")
            .about("Print the completions for a shell")
            .arg(shell.value_parser(["bash", "fish", "zsh"])),
        Command::new("man").about("Print the manual page, in roff"),
    ]
}

/// Returns what a subcommand prints.
pub(crate) fn text(subcommand: &str, arguments: &ArgMatches) -> &'static str {
    let shell = || arguments.get_one::<String>("shell").map_or("", String::as_str);
    let extension = if subcommand == "man" { "1" } else { shell() };
    PAGES.iter().find(|(known, _)| *known == extension).map_or("", |(_, text)| text)
}

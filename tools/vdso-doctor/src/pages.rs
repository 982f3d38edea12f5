//! `vdso-doctor man` and `vdso-doctor completions`, for packagers.

use std::error::Error;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

pub(crate) fn subcommands() -> [Command; 2] {
    let shell = Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell));
    let page = Arg::new("subcommand").value_name("SUBCOMMAND").help("The page of this subcommand");
    [
        Command::new("completions").about("Print the completions for a shell").arg(shell),
        Command::new("man").about("Print a manual page, in roff").arg(page.value_parser([
            "accuracy",
            "completions",
            "man",
        ])),
    ]
}

/// Returns the completions, or the manual page of the program or of a subcommand.
pub(crate) fn text(
    mut program: Command,
    subcommand: &str,
    arguments: &ArgMatches,
) -> Result<String, Box<dyn Error>> {
    let mut text = Vec::new();
    if subcommand == "completions" {
        let shell: &Shell = arguments.get_one("shell").ok_or("no shell")?;
        clap_complete::generate(*shell, &mut program, "vdso-doctor", &mut text);
    } else {
        program.build();
        let name = arguments.get_one::<String>("subcommand");
        let page = name.and_then(|name| program.find_subcommand(name)).unwrap_or(&program);
        clap_mangen::Man::new(page.clone()).render(&mut text)?;
    }
    Ok(String::from_utf8(text)?)
}

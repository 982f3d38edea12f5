//! The manual page and the completions.

use clap::CommandFactory as _;

use super::*;

#[path = "../../../pages.rs"]
mod pages;

#[test]
fn the_pages_are_those_of_the_command_line() {
    let shells = Shell::value_variants().iter().map(|shell| {
        let name = shell.to_possible_value().unwrap();
        (name.get_name().to_owned(), Page::Completions { shell: *shell })
    });
    let known: Vec<_> = shells.chain([("1".to_owned(), Page::Man)]).collect();
    let known: Vec<_> = known.iter().map(|(name, page)| (&**name, page.text())).collect();
    pages::check(&Arguments::command(), concat!(env!("CARGO_MANIFEST_DIR"), "/pages"), &known);
}

//! Pages with generated tables: each between `<!-- generated NAME -->` and `<!-- /generated -->`.

use anyhow::{Context as _, Result};
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use fs_err as fs;

use crate::workspace;

const END: &str = "\n<!-- /generated -->";

/// Prints a table. If told to write, gives `table` the page's old one, and puts the new one there.
pub(crate) fn update(page: &str, name: &str, write: bool, table: impl FnOnce(&str) -> String) -> Result<()> {
    if !write {
        println!("{}", table(""));
        return Ok(());
    }
    let file = workspace::root().join(page);
    let text = fs::read_to_string(&file)?;
    let begin = format!("<!-- generated {name} -->\n");
    let parts = text.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(END)?)));
    let (head, (old, tail)) = parts.with_context(|| format!("{page} has no `{begin}`"))?;
    let table = table(old);
    println!("{table}");
    Ok(fs::write(&file, [head, &begin, &table, END, tail].concat())?)
}

pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(head).add_rows(rows);
    table.to_string()
}

/// Adds the rows of an old table that begin with another of these names, which give the order.
pub(crate) fn with_old(mut rows: Vec<Vec<String>>, old: &str, names: &[String]) -> Vec<Vec<String>> {
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let is_other = rows.iter().all(|row| row[0] != cells[0] && row.len() == cells.len());
        if is_other && names.contains(&cells[0]) {
            rows.push(cells);
        }
    }
    rows.sort_by_key(|row| names.iter().position(|name| *name == row[0]).unwrap_or(names.len()));
    rows
}

#[cfg(test)]
mod tests {
    use super::{table, with_old};

    #[test]
    fn rows_of_other_machines_stay_in_their_order() {
        let names = ["i686@native", "aarch64@7", "armv7@7"].map(String::from);
        let row = |machine: &str, tests: &str| vec![machine.to_owned(), tests.to_owned()];
        let old = vec![row("gone@1", "0"), row("i686@native", "1"), row("armv7@7", "2")];
        let old = table(&["machine", "tests"], old);
        let new = with_old(vec![row("armv7@7", "4"), row("aarch64@7", "3")], &old, &names);
        assert_eq!(new, [row("i686@native", "1"), row("aarch64@7", "3"), row("armv7@7", "4")]);
    }
}

//! A page with one generated table.

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;

/// The page with another table. The text around it stays.
pub(crate) fn with_table(old: &str, table: &str) -> String {
    let (head, rest) = old.split_once("\n| ").unwrap_or((old, ""));
    let after = rest.split_once("|\n\n").map_or("", |(_, after)| after);
    format!("{head}\n{table}\n\n{after}")
}

/// The table with these rows. Rows that begin with another of the names are taken from the old
/// page. The names also give the order.
pub(crate) fn table(head: &[&str], mut rows: Vec<Vec<String>>, old: &str, names: &[String]) -> String {
    for line in old.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().to_owned()).collect();
        let is_other = names.contains(&cells[0]) && rows.iter().all(|row| row[0] != cells[0]);
        if is_other && cells.len() == head.len() {
            rows.push(cells);
        }
    }
    rows.sort_by_key(|row| names.iter().position(|name| *name == row[0]).unwrap_or(names.len()));
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(head).add_rows(rows);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::{table, with_table};

    #[test]
    fn rows_of_other_machines_and_the_text_stay() {
        let head = ["machine", "tests"];
        let names = ["i686@native", "aarch64@7", "armv7@7"].map(String::from);
        let row = |machine: &str, tests: &str| vec![machine.to_owned(), tests.to_owned()];
        let old = vec![row("gone@1", "0"), row("i686@native", "1"), row("armv7@7", "2")];
        let old = with_table("# Page\n\n| x |\n| y |\n\nThe end.\n", &table(&head, old, "", &names));
        assert!(old.starts_with("# Page\n\n| machine ") && old.ends_with(" |\n\nThe end.\n"), "{old}");
        let new = table(&head, vec![row("armv7@7", "4"), row("aarch64@7", "3")], &old, &names);
        let all = vec![row("i686@native", "1"), row("aarch64@7", "3"), row("armv7@7", "4")];
        assert_eq!(new, table(&head, all, "", &names));
    }
}

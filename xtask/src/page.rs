//! A page with one generated table.

/// The page with another table. The text around it stays.
pub(crate) fn with_table(old: &str, table: &str) -> String {
    let (head, rest) = old.split_once("\n| ").unwrap_or((old, ""));
    let after = rest.split_once("|\n\n").map_or("", |(_, after)| after);
    format!("{head}\n{table}\n\n{after}")
}

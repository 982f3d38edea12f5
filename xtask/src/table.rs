//! Tables in columns, which are Markdown all the same.

use std::fmt::Write as _;

/// A head, and lines of as many cells.
pub(crate) fn markdown(head: &[&str], lines: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(ToString::to_string).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(lines).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(text, "| {cell:<width$} "); // a String takes every write
        }
        text.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let line = |cells: [&str; 2]| cells.map(str::to_string).to_vec();
        let text = markdown(&["a", "b"], [line(["µs", "1"]), line(["", "22"])].into_iter());
        assert_eq!(text, "| a  | b  |\n|----|----|\n| µs | 1  |\n|    | 22 |\n");
    }
}

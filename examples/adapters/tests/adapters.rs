//! Compares the time in a log line with std's, and the code of the adapters with the page that
//! shows it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use vdso_time_adapters::CoarseTime;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_starts_with_the_time() {
    let lines = Lines::default();
    let writer = lines.clone();
    let fmt = tracing_subscriber::fmt()
        .with_timer(CoarseTime)
        .with_ansi(false);
    let subscriber = fmt.with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || tracing::info!("a line"));
    let line = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    // jiff can parse the time that it printed, and the format is the one that the page describes.
    let word = line.split(' ').next().unwrap();
    assert_eq!(
        (word.len(), &word[19..20], &word[23..]),
        (24, ".", "Z"),
        "{line}"
    );
    let time: jiff::Timestamp = word.parse().unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    assert!(time.as_second().abs_diff(now) <= 60, "{line}");
}

/// Removes indentation and empty lines, so that a page can show a part of a function.
fn lines_of(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn code_on_the_page_is_code_of_this_package() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "examples"].map(|folder| fs::read_dir(package.join(folder)).unwrap());
    let code = files
        .into_iter()
        .flatten()
        .filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
    let code: Vec<String> = code.map(|code| lines_of(&code)).collect();
    let page = fs::read_to_string(package.join("../../docs/ADOPT.md")).unwrap();
    let (_, section) = page.split_once("\n## Log lines\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks: Vec<&str> = section
        .split("```rust,ignore\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() > 3, "{blocks:?}");
    for block in blocks {
        assert!(
            code.iter().any(|code| code.contains(&lines_of(block))),
            "not in the package:\n{block}"
        );
    }
}

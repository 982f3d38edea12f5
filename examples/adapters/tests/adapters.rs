//! Compares the time in a log line with std's, and the code of the adapters with the page that
//! shows it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use vdso_time_adapters::CoarseTime;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ADOPT.md");

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock().unwrap();
        lines.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_starts_with_the_time() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_timer(CoarseTime)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!("a line");
    });
    let bytes = lines.0.lock().unwrap().clone();
    let line = String::from_utf8(bytes).unwrap();
    // jiff can parse the time that it printed, and the format is the one that the page describes.
    let (word, _) = line.split_once(' ').unwrap();
    assert_eq!(word.len(), 24, "{line}");
    assert_eq!(&word[19..20], ".", "{line}");
    assert_eq!(&word[23..], "Z", "{line}");
    let time: jiff::Timestamp = word.parse().unwrap();
    let now = jiff::Timestamp::now();
    let age = now.as_second() - time.as_second();
    assert!(age.abs() <= 60, "{line}");
}

/// Removes indentation and empty lines, so that a page can show a part of a function.
fn lines_of(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Returns the code of this package's files.
fn package_code() -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    for directory in ["src", "examples"] {
        let directory = package.join(directory);
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let code = fs::read_to_string(entry.path()).unwrap();
            all.push_str(&lines_of(&code));
        }
    }
    all
}

#[test]
fn code_on_the_page_is_code_of_this_package() {
    let code = package_code();
    let page = fs::read_to_string(PAGE).unwrap();
    let (_, rest) = page.split_once("\n## Log lines\n").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let mut blocks = 0;
    for rest in section.split("```rust,ignore\n").skip(1) {
        let (block, _) = rest.split_once("```").unwrap();
        let lines = lines_of(block);
        assert!(code.contains(&lines), "not in the package:\n{block}");
        blocks += 1;
    }
    assert!(blocks > 3, "{blocks}");
}

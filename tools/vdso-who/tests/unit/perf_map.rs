//! Tests of perf maps that change while they are read.

use std::fs;
use std::io::Write as _;
use std::thread;

use super::*;
use crate::common::target_tmpdir;

/// Appends lines to a map, some of them for addresses that have a name already, or replaces the
/// file. Compilers do both.
#[test]
#[expect(clippy::too_many_lines, reason = "one file, as it grows")]
fn a_perf_map_is_read_as_it_grows_and_its_last_line_wins() {
    let path = target_tmpdir().join("who-perf.map");
    let mut map = PerfMap::default();
    let a_long = format!("5000 8 {}\n", "n".repeat(3 << 20));
    let many: Vec<_> = (0..200_000)
        .map(|at| format!("{:x} 10 f{at}\n", 0x10_0000 + 16 * at))
        .collect();
    let many = many.concat();
    for (is_new, lines, expected) in [
        (
            true,
            "2000 10 b c\nx\n 1 2\n1000 8 a\nffffffffffffffff ffffffffffffffff z\n0x3000 0x1 d\n40",
            &[
                (0x1000, Some("a")),
                (0x1008, None),
                (0x200f, Some("b c")),
                (0x3000, Some("d")),
                (0x4000, None),
                (0, None),
            ][..],
        ),
        // Completes the last line.
        (
            false,
            "00 10 e\n",
            &[(0x4000, Some("e")), (0x1000, Some("a"))],
        ),
        (false, &a_long, &[(0x4000, Some("e"))]),
        (
            false,
            &many,
            &[
                (0x10_0000 + 16 * 199_999 + 15, Some("f199999")),
                (0x10_0000, Some("f0")),
            ],
        ),
        (
            false,
            "4000 4 f\n1ff0 11 g\n",
            &[
                (0x4000, Some("f")),
                (0x4004, None),
                (0x2000, Some("g")),
                (0x2001, None),
            ],
        ),
        (true, "4000 4 h\n", &[(0x4000, Some("h")), (0x1000, None)]),
    ] {
        if is_new {
            let _ = fs::remove_file(&path);
        }
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(lines.as_bytes()).unwrap();
        // The map is checked for a later name of a known address only ten times a second.
        thread::sleep(Duration::from_millis(110));
        for (address, name) in expected {
            assert_eq!(
                map.name(*address, || Opened::Map(File::open(&path).unwrap()))
                    .as_deref(),
                *name,
                "{address:#x}"
            );
        }
    }
    // An address without a name is looked up immediately.
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"6000 4 i\n")
        .unwrap();
    assert_eq!(map.name(0x6000, || Opened::Nothing).as_deref(), Some("i"));
    // `jcmd PID Compiler.perfmap` overwrites the same file with a new map, which is usually longer.
    fs::write(&path, "3000 4 j\n4000 4 k\n5000 4 l\n6000 4 m\n").unwrap();
    for (address, name) in [(0x4000, "k"), (0x3000, "j"), (0x6000, "m")] {
        assert_eq!(
            map.name(address, || Opened::Map(File::open(&path).unwrap()))
                .as_deref(),
            Some(name),
            "{address:#x}"
        );
    }
}

//! The image builder's images are ELF images: goblin and readelf read in them what their descriptions say.

use test_support::image;
use test_support::image::kinds as image_kinds;

use std::process::Command;
use std::{env, fs, process};

use goblin::elf::Elf;

use image::{Built, Sym};
use image_kinds::kinds;
use test_support::{has_tool, not_run};

/// A symbol in a line: value, size, type, binding, section.
fn line(name: &str, value: u64, size: u64, kind: u8, bind: u8, section: &str) -> String {
    format!("{name} {value:#x} {size} {kind} {bind} {section}")
}

fn lines(image: &Built<'_>, name: impl Fn(&Sym<'_>) -> String) -> Vec<String> {
    let line = |symbol: &Sym<'_>| {
        let section = symbol.shndx.to_string();
        line(&name(symbol), symbol.st_value(), symbol.size, symbol.kind, symbol.bind, &section)
    };
    image.symbols.iter().map(line).collect()
}

fn plain_name(symbol: &Sym<'_>) -> String {
    if symbol.blank { String::new() } else { symbol.name.into() }
}

#[test]
fn goblin_sees_the_symbols_of_every_kind() {
    for (kind, spec) in kinds().into_iter().filter(|(_, spec)| spec.sysv_hash || spec.gnu_hash) {
        let image = spec.build();
        let elf = Elf::parse(&image.bytes).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!((elf.is_64, elf.little_endian), (spec.wide, !spec.big_endian), "{kind}");
        assert_eq!(elf.header.e_machine, spec.machine, "{kind}");
        assert_eq!(elf.section_headers.len(), 0, "{kind}");
        let seen = elf.dynsyms.iter().skip(1).map(|symbol| {
            let name = elf.dynstrtab.get_at(symbol.st_name).unwrap();
            let section = symbol.st_shndx.to_string();
            line(name, symbol.st_value, symbol.st_size, symbol.st_type(), symbol.st_bind(), &section)
        });
        assert_eq!(seen.collect::<Vec<_>>(), lines(&image, plain_name), "{kind}");
    }
}

#[test]
fn goblin_sees_both_segments_and_where_they_lie() {
    for (kind, spec) in kinds() {
        let image = spec.build();
        let elf = Elf::parse(&image.bytes).unwrap();
        let find = |wanted| elf.program_headers.iter().find(|header| header.p_type == wanted).unwrap();
        let (load, dynamic) = (find(image::PT_LOAD), find(image::PT_DYNAMIC));
        assert_eq!((load.p_offset, load.p_vaddr), (spec.p_offset as u64, spec.p_vaddr), "{kind}");
        assert_eq!(load.p_offset + load.p_filesz, image.bytes.len() as u64, "{kind}");
        assert_eq!(dynamic.p_offset, image.at.dynamic as u64, "{kind}");
        assert_eq!(elf.program_headers.len(), spec.segments.len(), "{kind}");
    }
}

#[test]
fn readelf_sees_the_symbols_and_versions_of_every_kind() {
    if !has_tool(&["readelf", "--version"]) {
        return;
    }
    for (index, (kind, spec)) in kinds().into_iter().enumerate() {
        if !(spec.sysv_hash || spec.gnu_hash) {
            continue;
        }
        let image = spec.build();
        let file = env::temp_dir().join(format!("vdso-time-{}-{index}.so", process::id()));
        fs::write(&file, &image.bytes).unwrap();
        let output = Command::new("readelf").args(["-W", "-D", "-s"]).arg(&file).output().unwrap();
        fs::remove_file(&file).unwrap();

        let text = String::from_utf8_lossy(&output.stdout);
        if !text.contains(" contains ") {
            return not_run("this readelf lists symbols in another form");
        }
        assert!(output.stderr.is_empty(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let number =
            |word: Option<&&str>| word.and_then(|word| word.strip_suffix(':')?.parse::<usize>().ok());
        let seen = text.lines().filter_map(|row| {
            let words: Vec<_> = row.split_whitespace().collect();
            let place = |names: &[&str], at: usize| names.iter().position(|name| *name == words[at]);
            number(words.first()).filter(|index| *index > 0)?;
            let value = u64::from_str_radix(words[1], 16).unwrap();
            let kind = place(&["NOTYPE", "OBJECT", "FUNC"], 3).unwrap();
            let bind = place(&["LOCAL", "GLOBAL", "WEAK"], 4).unwrap();
            let section = words[6].replace("UND", "0").replace("ABS", "65521");
            let name = words.get(7).copied().unwrap_or("");
            let (size, kind, bind) = (words[2].parse().unwrap(), kind as u8, bind as u8);
            Some(line(name, value, size, kind, bind, &section))
        });
        let versioned = |symbol: &Sym<'_>| match symbol.version {
            Some(version) if spec.versions && symbol.bind != image::LOCAL && symbol.shndx != image::UNDEF => {
                // The symbol that stands for the version itself is shown without it.
                let itself = symbol.name == version;
                if itself { version.into() } else { format!("{}@@{version}", plain_name(symbol)) }
            }
            _ => plain_name(symbol),
        };
        assert_eq!(seen.collect::<Vec<_>>(), lines(&image, versioned), "{kind}:\n{text}");
    }
}

#[test]
fn fields_are_where_the_image_says() {
    for (kind, spec) in kinds() {
        let mut image = spec.build();
        let names: Vec<_> = image.fields.iter().map(|field| field.name.clone()).collect();
        for name in names {
            let old = image.get(&name);
            let before = image.bytes.clone();
            image.set(&name, !old);
            let (from, size) = (image.field(&name).at, image.field(&name).size);
            let differ = |at: &usize| image.bytes[*at] != before[*at];
            assert_eq!(
                (0..before.len()).filter(differ).collect::<Vec<_>>(),
                (from..from + size).collect::<Vec<_>>(),
                "{kind}: {name}"
            );
            image.set(&name, old);
            assert_eq!(image.bytes, before, "{kind}: {name}");
        }
    }
}

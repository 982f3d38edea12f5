//! Go's table of functions, `.gopclntab`, which programs without a symbol table have, too.
//!
//! `debug/gosym/pclntab.go` of Go describes it. The layout is that of Go 1.18 and later.

use std::ops::Range;

/// Go 1.18, Go 1.20.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// The functions of a table, and where in the table their names are.
pub(super) struct Functions {
    pub(super) known: Vec<(Range<u64>, usize)>,
    /// Whether the table has the address of the text. It has not since Go 1.26; then the addresses
    /// are as if the text were at the start of .text.
    pub(super) has_text: bool,
}

pub(super) fn functions(table: &[u8], text: u64, most: usize) -> Option<Functions> {
    if !MAGIC.contains(&word(table, 0)?) {
        return None;
    }
    let size = usize::from(*table.get(7)?);
    // The numbers of functions and of files, the start of the text, the offsets of names, units,
    // files, lines and functions.
    let field = |index: usize| number(table, 8 + index * size, size);
    let (count, names, functions) = (field(0)?, field(3)? as usize, field(7)? as usize);
    let own_text = field(2).filter(|text| *text != 0);
    let text = own_text.unwrap_or(text);
    let functions = table.get(functions..)?;
    let start = |index: usize| Some(text.wrapping_add(word(functions, 8 * index)?.into()));
    let function = |index: usize| {
        let function = word(functions, 8 * index + 4)? as usize;
        let name = names.checked_add(word(functions, function.checked_add(4)?)? as usize)?;
        Some((start(index)?..start(index + 1)?, name))
    };
    let known = (0..most.min(count as usize)).map_while(function).collect();
    Some(Functions {
        known,
        has_text: own_text.is_some(),
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at, 4).map(|word| word as u32)
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?;
    match size {
        4 => Some(u32::from_le_bytes(*bytes.first_chunk()?).into()),
        _ => Some(u64::from_le_bytes(*bytes.first_chunk()?)),
    }
}

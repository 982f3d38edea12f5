//! Go's table of functions, `.gopclntab`, which even a program without a symbol table contains.
//!
//! The file `debug/gosym/pclntab.go` in Go's source code describes the table. This module reads the
//! layout of Go 1.18 and later.

use std::ops::Range;

/// The magic numbers of Go 1.18 and of Go 1.20.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// The functions of a table, and where in the table their names are.
pub(super) struct Functions {
    pub(super) known: Vec<(Range<u64>, usize)>,
    /// Whether the table contains the address of Go's code. Since Go 1.26 it does not. The
    /// addresses of the functions are then computed as if Go's code began at the start of .text.
    pub(super) has_text: bool,
}

/// The header of a table. Each field is as large as an address.
struct Header<'a> {
    table: &'a [u8],
    size: usize,
}

impl Header<'_> {
    fn field(&self, index: usize) -> Option<u64> {
        number(self.table, 8 + index * self.size, self.size)
    }
}

/// Reads at most `most` functions from a table. `text` is the address of .text.
pub(super) fn functions(table: &[u8], text: u64, most: usize) -> Option<Functions> {
    if !MAGIC.contains(&word(table, 0)?) {
        return None;
    }
    let size = usize::from(*table.get(7)?);
    let header = Header { table, size };
    // The fields are the number of functions, the number of files, the start of Go's code, and the
    // offsets of the names, units, files, lines and functions.
    let count = header.field(0)? as usize;
    let own_text = header.field(2)?;
    let names = header.field(3)? as usize;
    let functions = table.get(header.field(7)? as usize..)?;
    let has_text = own_text != 0;
    let text = if has_text { own_text } else { text };
    let start = |index: usize| -> Option<u64> {
        let distance = word(functions, 8 * index)?;
        Some(text.wrapping_add(distance.into()))
    };
    let function = |index: usize| {
        let function = word(functions, 8 * index + 4)? as usize;
        let name = word(functions, function.checked_add(4)?)? as usize;
        Some((start(index)?..start(index + 1)?, names.checked_add(name)?))
    };
    let known = (0..most.min(count)).map_while(function).collect();
    Some(Functions { known, has_text })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    if size == 4 {
        return Some(word(bytes, at)?.into());
    }
    let number = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*number))
}

//! The vDSO of this process: its address and its symbols.

use vdso_time::vdso::Vdso;

use crate::json::{address, json};

/// The vDSO of this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnVdso {
    /// Its address.
    pub base: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its symbols, with their versions, such as `__vdso_time@LINUX_2.6`.
    pub symbols: Vec<String>,
}

json!(OwnVdso, |vdso| base: address(vdso.base), size, symbols);

impl OwnVdso {
    pub(crate) fn of(vdso: &Vdso<'_>) -> Self {
        let mut symbols = Vec::new();
        for symbol in vdso.image().symbols() {
            let mut name = symbol.name().to_string_lossy().into_owned();
            if let Some(version) = symbol.version() {
                name.push('@');
                name += &version.to_string_lossy();
            }
            symbols.push(name);
        }
        Self {
            base: vdso.base().addr(),
            size: vdso.size(),
            symbols,
        }
    }
}

//! The vDSO of this process: where it is and what it has.

use vdso_time::vdso::Vdso;

use crate::json::{address, json};

/// The vDSO of this process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OwnVdso {
    /// Its address.
    pub base: usize,
    /// Its bytes.
    pub size: usize,
    /// Its symbols, with their versions, as `__vdso_time@LINUX_2.6`.
    pub symbols: Vec<String>,
}

json!(OwnVdso, |vdso| base: address(vdso.base), size, symbols);

impl OwnVdso {
    pub(crate) fn of(vdso: &Vdso<'_>) -> Self {
        let symbols = vdso.image().symbols().map(|symbol| {
            let version = symbol
                .version()
                .map(|version| format!("@{}", version.to_string_lossy()));
            format!(
                "{}{}",
                symbol.name().to_string_lossy(),
                version.unwrap_or_default()
            )
        });
        Self {
            base: vdso.base().addr(),
            size: vdso.size(),
            symbols: symbols.collect(),
        }
    }
}

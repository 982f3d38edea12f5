//! The vDSO of this process: where it is and what it has.

use vdso_time::vdso::Vdso;

use crate::json::{address, json};

/// The vDSO's image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Image {
    /// Its address.
    pub base: usize,
    /// Its bytes.
    pub size: usize,
    /// Its symbols, with their versions, as `__vdso_time@LINUX_2.6`.
    pub symbols: Vec<String>,
}

json!(Image, |image| base: address(image.base), size, symbols);

impl Image {
    pub(crate) fn of(vdso: &Vdso<'_>) -> Self {
        let symbols = vdso.image().symbols().map(|symbol| {
            let version = symbol.version().map(|version| format!("@{}", version.to_string_lossy()));
            format!("{}{}", symbol.name().to_string_lossy(), version.unwrap_or_default())
        });
        Self { base: vdso.base().addr(), size: vdso.size(), symbols: symbols.collect() }
    }
}

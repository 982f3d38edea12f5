//! The vDSO of this process: where it is and what it has.

use serde::Serialize;
use vdso_time::vdso::Vdso;

/// The vDSO's image.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Image {
    /// Always true.
    pub found: bool,
    /// Where its address came from.
    pub source: &'static str,
    /// Its address.
    #[serde(serialize_with = "crate::json::address")]
    pub base: usize,
    /// Its bytes.
    pub size: usize,
    /// Its bits: 32 or 64.
    pub class: u32,
    /// Whether it has `DT_HASH`.
    pub sysv_hash: bool,
    /// Whether it has `DT_GNU_HASH`.
    pub gnu_hash: bool,
    /// The versions of its symbols.
    pub versions: Vec<String>,
    /// Its symbols.
    pub symbols: Vec<Symbol>,
}

/// A symbol of the vDSO.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Symbol {
    /// Its name; empty if the kernel blanked it.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The address of its code.
    #[serde(serialize_with = "crate::json::address")]
    pub address: usize,
    /// The bytes of its code.
    pub size: u64,
    /// Whether it is weak.
    pub weak: bool,
}

impl Image {
    pub(crate) fn of(vdso: &Vdso<'_>) -> Self {
        let symbols: Vec<_> = vdso
            .symbols()
            .map(|symbol| Symbol {
                name: symbol.name().to_string_lossy().into_owned(),
                version: symbol.version().map(|version| version.to_string_lossy().into_owned()),
                address: vdso.address(&symbol).addr(),
                size: symbol.size(),
                weak: symbol.is_weak(),
            })
            .collect();
        let mut versions: Vec<_> = symbols.iter().filter_map(|symbol| symbol.version.clone()).collect();
        versions.sort_unstable();
        versions.dedup();
        let tables = vdso.image().hash_tables();
        Self {
            found: true,
            source: if cfg!(feature = "libc") {
                "getauxval(AT_SYSINFO_EHDR)"
            } else {
                "the auxiliary vector"
            },
            base: vdso.base().addr(),
            size: vdso.size(),
            class: 32 * u32::from(vdso.image().class()),
            sysv_hash: tables.sysv,
            gnu_hash: tables.gnu,
            versions,
            symbols,
        }
    }
}

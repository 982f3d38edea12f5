//! How the diagnosis is serialised where its fields are not plain values.

use serde::ser::{Serialize, Serializer};
use vdso_time::LocateError;
use vdso_time::{Route, Routes};

use crate::Image;

/// Text, because addresses have more digits than every reader of JSON keeps.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn address<S: Serializer>(address: &usize, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{address:#x}"))
}

pub(crate) fn image<S: Serializer>(image: &Result<Image, LocateError>, to: S) -> Result<S::Ok, S::Error> {
    match image {
        Ok(image) => image.serialize(to),
        Err(error) => to.collect_map([("error", error.to_string())]),
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "via", rename_all = "lowercase")]
enum Via {
    Vdso {
        symbol: &'static str,
        version: Option<&'static str>,
        #[serde(serialize_with = "crate::json::address")]
        address: usize,
    },
    Syscall {
        number: u32,
        reason: String,
    },
    Libc,
}

pub(crate) fn routes<S: Serializer>(routes: &Routes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(routes.functions().map(|(function, route)| {
        let via = match route {
            Route::Vdso { symbol, version, address, .. } => Via::Vdso { symbol, version, address },
            Route::Syscall { number, reason, .. } => Via::Syscall { number, reason: reason.to_string() },
            _ => Via::Libc,
        };
        (function, via)
    }))
}

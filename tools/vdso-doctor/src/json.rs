//! The diagnosis as JSON. Each `impl Serialize` is written by hand, so that a program that uses
//! this library has no procedural macro to compile.
//!
//! Programs compare the words that stand for a variant of an enum, so renaming the variant must not
//! change its word. Each word therefore comes from a function of the type, and never from `Debug`.
//! README.md lists the words.

use serde_core::ser::{Serialize, SerializeStruct as _, Serializer};
use vdso_time::{LocateError, Route, Routes};

use crate::OwnVdso;

/// Serialises an object with these fields.
macro_rules! object {
    ($to:expr, $($field:ident: $value:expr),*) => {{
        let mut object = $to.serialize_struct("", [$(stringify!($field)),*].len())?;
        $(object.serialize_field(stringify!($field), &$value)?;)*
        object.end()
    }};
}

/// Implements `Serialize`, either as an object or as one word. An object's field that is listed
/// without a value gets the value of the type's field of the same name.
macro_rules! json {
    ($type:ty, |$this:ident| $($field:ident $(: $value:expr)?),+) => {
        impl serde_core::Serialize for $type {
            fn serialize<S: serde_core::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde_core::ser::SerializeStruct as _;
                let $this = self;
                $crate::json::object!(to, $($field: $crate::json::json!(@ $this $field $(, $value)?)),+)
            }
        }
    };
    ($type:ty, |$this:ident| $word:expr) => {
        impl serde_core::Serialize for $type {
            fn serialize<S: serde_core::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                to.serialize_str(&$word)
            }
        }
    };
    (@ $this:ident $field:ident) => { $this.$field };
    (@ $this:ident $field:ident, $value:expr) => { $value };
}
pub(crate) use {json, object};

/// Formats an address as text, because not every reader of JSON keeps all digits of an address.
pub(crate) fn address(address: usize) -> String {
    format!("{address:#x}")
}

pub(crate) struct Located<'a>(pub(crate) &'a Result<OwnVdso, LocateError>);

impl Serialize for Located<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Ok(vdso) => vdso.serialize(to),
            Err(error) => object!(to, error: error.to_string()),
        }
    }
}

pub(crate) struct Functions<'a>(pub(crate) &'a Routes);

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let functions = self.0.functions();
        to.collect_map(functions.map(|(function, route)| (function, Via(route))))
    }
}

struct Via(Route);

impl Serialize for Via {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Route::Vdso {
                symbol,
                version,
                address: at,
                ..
            } => {
                object!(to, via: "vdso", symbol: symbol, version: version, address: address(at))
            }
            Route::Syscall { number, reason, .. } => {
                object!(to, via: "syscall", number: number, reason: reason.to_string())
            }
            _ => object!(to, via: "libc"),
        }
    }
}

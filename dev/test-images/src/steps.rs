//! The parser's bounds, in steps for each byte. `src/elf/mod.rs` derives them.

use vdso_time::__private::{ALL, Quirk};

use crate::elf::{Image, TAKEN};

/// `parse`, for each byte that it receives.
pub const PARSE: u64 = 3;
/// A look-up, for each byte of the image, whatever the length of the name and the version.
pub const LOOK_UP: u64 = 136;
/// The first call of any function, which resolves all five.
pub const RESOLVE: u64 = 36;
/// One step of `symbols()`, and all of them together.
pub const SYMBOLS: u64 = 134;

/// How many of the image's own names are looked up.
const LOOK_UPS: usize = 4;

/// Returns the result of `work`, and its steps.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = TAKEN.get();
    let result = work();
    (result, TAKEN.get() - before)
}

/// The steps of each kind of work for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub parse: f64,
    pub look_up: f64,
    pub resolve: f64,
    pub symbols: f64,
}

/// Fails unless each kind of work is within its bound.
pub fn bounded(bytes: &[u8]) -> Rates {
    let mut rates = Rates::default();
    let within = |what: &str, steps: u64, most: u64, size: usize| {
        let size = size as u64;
        assert!(
            steps <= most * size,
            "{what}: {steps} steps for {size} bytes"
        );
        let number = |number: u64| f64::from(u32::try_from(number).unwrap());
        number(steps) / number(size.max(1))
    };
    let (image, steps) = counted(|| Image::parse(bytes));
    rates.parse = within("parse", steps, PARSE, bytes.len());
    let Ok(image) = image else { return rates };
    let size = image.parsed.load.end();

    let mut symbols = image.symbols();
    let (mut all, mut found) = (0, Vec::new());
    loop {
        let (symbol, steps) = counted(|| symbols.next());
        rates.symbols = rates
            .symbols
            .max(within("a step of symbols()", steps, SYMBOLS, size));
        all += steps;
        let Some(symbol) = symbol else { break };
        found.push(symbol);
    }
    rates.symbols = rates.symbols.max(within("symbols()", all, SYMBOLS, size));

    // The last symbol takes the longest.
    let named = found.iter().rev().filter_map(|symbol| {
        let version = symbol.version().and_then(|version| version.to_str().ok());
        Some((symbol.name().to_str().ok()?, version))
    });
    for (name, version) in named.take(LOOK_UPS) {
        // A version of this length that differs in its last character.
        let unlike = version.map(|version| {
            let mut unlike = version.to_owned();
            unlike.pop();
            unlike + "\u{1}"
        });
        for version in [version, unlike.as_deref()] {
            let (_, steps) = counted(|| image.symbol(name, version));
            rates.look_up = rates.look_up.max(within("a look-up", steps, LOOK_UP, size));
        }
    }

    for abi in ALL {
        // As if no symbol were found: the most that `choice::decide` can take.
        let ((), steps) = counted(|| {
            let candidates = || {
                abi.functions()
                    .into_iter()
                    .flat_map(|(_, function)| function.candidates)
            };
            if abi.name == "x86" {
                image.parsed.find("__kernel_vsyscall", Some("LINUX_2.5"));
            }
            if candidates().any(|candidate| candidate.unless == Some(Quirk::BlankedNames)) {
                image.parsed.has_blanked_names();
            }
            for candidate in candidates() {
                image.parsed.find(candidate.name, Some(abi.version));
            }
        });
        rates.resolve = rates
            .resolve
            .max(within("a resolver's pass", steps, RESOLVE, size));
    }
    rates
}

//! How many steps a walk takes, at most, for each byte that it is handed: `src/elf/mod.rs` says why. The fuzzer asks the same.

use vdso_time::arch::{ALL, Quirk};

use super::elf::{Image, TAKEN};

/// Of the bytes handed over, by `parse`.
pub(crate) const PARSE: u64 = 3;
/// Of the image, by a look-up of a name, whatever its length and its version's.
pub(crate) const LOOK_UP: u64 = 136;
/// Of the image, by the first call of any function, which resolves all five.
pub(crate) const RESOLVE: u64 = 36;
/// Of the image, by one step of `symbols()`, and by all of them together.
pub(crate) const SYMBOLS: u64 = 134;

/// What the bounds are made of: the numbers read for a symbol (6 of its own, the name's once more, and those of 16 definitions of
/// versions), and the bytes of the smallest symbol.
const NUMBERS: u64 = 87;
const SYMBOL: u64 = 16;
/// How many look-ups of the image's own names are counted.
const LOOK_UPS: usize = 4;

/// What a piece of work came to, and how many steps it took.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = TAKEN.get();
    let result = work();
    (result, TAKEN.get() - before)
}

/// The steps of each kind of work, as parts of its bound's unit: the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) parse: f64,
    pub(crate) look_up: f64,
    pub(crate) resolve: f64,
    pub(crate) symbols: f64,
}

/// Fails unless each kind of work is within its bound.
pub(crate) fn bounded(bytes: &[u8]) -> Rates {
    let mut rates = Rates::default();
    let within = |what: &str, steps: u64, most: u64, size: usize| {
        let size = size as u64;
        assert!(steps <= most * size, "{what}: {steps} steps for {size} bytes");
        let number = |number: u64| f64::from(u32::try_from(number).unwrap());
        number(steps) / number(size.max(1))
    };
    let (image, steps) = counted(|| Image::parse(bytes));
    rates.parse = within("parse", steps, PARSE, bytes.len());
    let Ok(image) = image else { return rates };
    let size = image.parsed.size();

    let mut symbols = image.symbols();
    let (mut all, mut found) = (0, Vec::new());
    loop {
        let (symbol, steps) = counted(|| symbols.next());
        rates.symbols = rates.symbols.max(within("a step of symbols()", steps, SYMBOLS, size));
        all += steps;
        let Some(symbol) = symbol else { break };
        found.push(symbol);
    }
    rates.symbols = rates.symbols.max(within("symbols()", all, SYMBOLS, size));

    // The last of them is found last.
    let named = found.iter().rev().filter_map(|symbol| {
        let version = symbol.version().and_then(|version| version.to_str().ok());
        Some((symbol.name().to_str().ok()?, version))
    });
    for (name, version) in named.take(LOOK_UPS) {
        // A version that is as long, and differs in its last character.
        let unlike = version.map(|version| {
            let mut unlike = version.to_owned();
            unlike.pop();
            unlike + "\u{1}"
        });
        for version in [version, unlike.as_deref()] {
            let (_, steps) = counted(|| image.symbol(name, version));
            rates.look_up = rates.look_up.max(within("a look-up", steps, LOOK_UP, size));
            let strings = (name.len() + version.map_or(0, str::len)) as u64;
            let closer = (NUMBERS + strings) * size as u64 / SYMBOL + 2 * size as u64;
            assert!(steps <= closer, "a look-up of {strings} bytes: {steps} steps for {size} bytes");
        }
    }

    for abi in ALL {
        // As if none were found: the most that the pass in `linux::outcome` can take.
        let ((), steps) = counted(|| {
            let candidates = || abi.functions().into_iter().flat_map(|(_, function)| function.candidates);
            if abi.name == "x86" {
                image.parsed.find("__kernel_vsyscall", Some("LINUX_2.5"));
            }
            if candidates().any(|candidate| candidate.unless == Some(Quirk::BlankedNames)) {
                image.parsed.has_blanked_names();
            }
            for raw in image.parsed.raw_entries() {
                for _ in candidates().filter(|candidate| raw.is_named(candidate.name)) {
                    raw.entry(Some(abi.version));
                }
            }
        });
        rates.resolve = rates.resolve.max(within("a resolver's pass", steps, RESOLVE, size));
    }
    rates
}

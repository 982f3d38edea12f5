//! A sound image with a few changes, which the input chooses, is refused or keeps the promises, and is read in as many
//! steps as are promised.
#![no_main]

#[path = "../../src/elf/mod.rs"]
#[allow(dead_code, unused_imports, reason = "of the library's own file only a part is asked")]
mod elf;
use test_support::image;
use test_support::image::kinds as image_kinds;
#[path = "../../tests/properties/promises.rs"]
mod promises;
#[path = "../../tests/properties/spoil.rs"]
mod spoil;
#[path = "../../tests/properties/steps.rs"]
mod steps;
#[path = "../tally.rs"]
mod tally;
#[path = "../../tests/properties/walks.rs"]
mod walks;

use std::cell::RefCell;
use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

use image::Built;
use spoil::{Change, EXTREMES, Extreme, LONG};

/// The bytes of an image of every kind, and of one with a name that is too long.
static SOUND: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| built().map(|built| built.bytes).collect());

fn built() -> impl Iterator<Item = Built<'static>> {
    let mut long = image_kinds::arm();
    long.symbols[1].name = LONG;
    image_kinds::kinds().into_iter().map(|(_, spec)| spec).chain([long]).map(|spec| spec.build())
}

// To build an image takes longer than to read it: these are spoilt, and made sound again.
thread_local!(static BUILT: RefCell<Vec<Built<'static>>> = RefCell::new(built().collect()));

fn index(input: &mut Unstructured<'_>) -> Result<usize> {
    input.arbitrary::<u16>().map(usize::from)
}

fn extreme(input: &mut Unstructured<'_>) -> Result<Extreme> {
    let beside = |byte: u8| i64::from(byte % 5) - 2;
    Ok(match input.arbitrary::<u8>()? {
        byte @ 0..64 => Extreme::Exactly(EXTREMES[usize::from(byte) % EXTREMES.len()]),
        64..96 => Extreme::Exactly(input.arbitrary()?),
        byte @ 96..160 => Extreme::Beside(beside(byte)),
        byte @ 160..208 => Extreme::Size(beside(byte), byte % 2 == 0),
        208.. => Extreme::Other(index(input)?),
    })
}

fn change(input: &mut Unstructured<'_>) -> Result<Change> {
    Ok(match input.arbitrary::<u8>()? {
        0..160 => Change::Number(index(input)?, extreme(input)?),
        byte @ 160..192 => Change::Flip(index(input)?, byte % 8),
        192..232 => {
            let donor = input.choose(&SOUND)?.clone();
            Change::Splice(donor, index(input)?, index(input)?, input.arbitrary::<u8>()?.into())
        }
        232..248 => Change::Resize(index(input)?),
        248.. => Change::Move(index(input)?),
    })
}

fuzz_target!(|input: &[u8]| {
    BUILT.with_borrow_mut(|all| {
        let mut input = Unstructured::new(input);
        let kind = index(&mut input).unwrap_or_default() % all.len();
        let built = &mut all[kind];
        built.bytes.clone_from(&SOUND[kind]);
        while !input.is_empty() {
            let Ok(change) = change(&mut input) else { break };
            change.apply(built);
        }
        steps::bounded(&built.bytes);
        walks::agree(&built.bytes);
        tally::count(promises::keep(&built.bytes).is_some());
    });
});

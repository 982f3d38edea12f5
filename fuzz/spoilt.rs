//! A sound image with changes that the input chooses is refused or keeps the promises, and the
//! parser stays within its bounds.
#![no_main]

use std::cell::RefCell;
use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use test_images::kinds::{arm, kinds};
use test_images::spoil::{Change, EXTREMES, Extreme, LONG};
use test_images::{Built, keeps_promises};
use vdso_time_fuzz::count;

/// An image of every kind, and one with a name that is too long.
static SOUND: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| built().map(|built| built.bytes).collect());

fn built() -> impl Iterator<Item = Built<'static>> {
    let mut long = arm();
    long.symbols[1].name = LONG;
    kinds().into_iter().map(|(_, spec)| spec).chain([long]).map(|spec| spec.build())
}

// Building an image takes longer than parsing it, so these are spoilt and restored.
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
        count(keeps_promises(&built.bytes));
    });
});

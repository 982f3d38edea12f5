//! The mutator of the fuzz targets, and a count of the inputs that are images.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzzer_mutate;
use test_images::kinds::kinds;

/// An image of every kind, so that a run needs no corpus.
static KINDS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| kinds().into_iter().map(|(_, spec)| spec.build().bytes).collect());

/// The size of the headers of an image with three program headers.
const HEADERS: usize = 64 + 3 * 56;

/// Mutates the first `size` bytes and returns the new size. It uses libFuzzer's mutator, but mostly
/// restores the headers, without which an input is refused early, and does not shrink the input.
/// An input that is too short, and few others, becomes a sound image.
pub fn mutate(bytes: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let choice = (seed / 64) as usize % KINDS.len();
    let sound = KINDS.get(choice).filter(|image| image.len() <= most && (size < HEADERS || seed % 1024 == 0));
    if let Some(image) = sound {
        bytes[..image.len()].copy_from_slice(image);
        return image.len();
    }
    let before = bytes[..size].to_vec();
    let changed = fuzzer_mutate(bytes, size, most);
    if seed % 8 == 0 || size < HEADERS || size > most {
        return changed;
    }
    bytes[..HEADERS].copy_from_slice(&before[..HEADERS]);
    let end = changed.max(HEADERS);
    if end < size {
        bytes[end..size].copy_from_slice(&before[end..]);
    }
    end.max(size)
}

/// Counts an input, and sometimes prints how many were images: a fuzzer whose inputs are all refused
/// finds nothing.
pub fn count(is_image: bool) {
    static INPUTS: AtomicU64 = AtomicU64::new(0);
    static IMAGES: AtomicU64 = AtomicU64::new(0);
    let images = IMAGES.fetch_add(u64::from(is_image), Ordering::Relaxed) + u64::from(is_image);
    let inputs = INPUTS.fetch_add(1, Ordering::Relaxed) + 1;
    if inputs % 10_000_000 == 0 || (inputs >= 1 << 16 && inputs.is_power_of_two()) {
        eprintln!("{images} of {inputs} inputs passed");
    }
}

//! What is tried next: inputs with the headers of an image, for most others are refused for their headers alone.

use test_support::image;
use test_support::image::kinds as image_kinds;

use std::sync::LazyLock;

use libfuzzer_sys::fuzzer_mutate;

/// An image of every kind: no seeds need to be written before a run.
static KINDS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| image_kinds::kinds().into_iter().map(|(_, spec)| spec.build().bytes).collect());

/// Bytes of the headers of an image with three program headers.
const HEADERS: usize = 64 + 3 * 56;

/// Changes the first `size` bytes, and says how many there are then: libFuzzer's own way, but mostly the headers stay, and the
/// size does not shrink. Now and then, and where there is no image yet, a sound one takes their place.
pub(crate) fn mutate(bytes: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
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

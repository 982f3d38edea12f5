//! Makes, at compile time, the text of a call's function: the call up to its first `(`. So of a
//! chain of calls, `Clock::new().now()`, the text has only the first: `Clock::new`.
//!
//! If a program uses `traced!` in a macro of its own, `stringify!` prints the call with spaces
//! between the tokens: `RealtimeCoarse :: now()`. So the functions here leave a space out, unless
//! it stands between two words, as in `<Turn as MonotonicClock>::now`.

/// Returns the function of a call, as bytes: the text of `call` up to the first `(`. `N` is the
/// number of these bytes, which `function_length` returns.
#[must_use]
pub const fn function<const N: usize>(call: &str) -> [u8; N] {
    let call = call.as_bytes();
    let mut text = [0; N];
    let mut length = 0;
    let mut at = 0;
    while length < N {
        if is_part(call, at) {
            text[length] = call[at];
            length += 1;
        }
        at += 1;
    }
    text
}

/// Returns how many bytes the function's text has.
#[must_use]
pub const fn function_length(call: &str) -> usize {
    let call = call.as_bytes();
    let mut length = 0;
    let mut at = 0;
    while at < call.len() && call[at] != b'(' {
        if is_part(call, at) {
            length += 1;
        }
        at += 1;
    }
    length
}

/// Returns whether the byte at `at` is part of the function's text. `at` must be before the `(`
/// that begins the call's arguments.
const fn is_part(call: &[u8], at: usize) -> bool {
    if !call[at].is_ascii_whitespace() {
        return true;
    }
    is_word(call, at.wrapping_sub(1)) && is_word(call, at + 1)
}

/// Returns whether a byte is part of a word. All bytes that are not ASCII are, because an
/// identifier can contain them.
const fn is_word(call: &[u8], at: usize) -> bool {
    if at >= call.len() {
        return false;
    }
    let byte = call[at];
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

//! System calls in machine code.

use super::*;

/// Encodings from the processor's manual: mov, syscall, int, call.
#[test]
fn the_number_is_that_of_the_last_move_before_the_system_call() {
    for (code, number) in [
        (&[0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05][..], Number::Is(228)),
        (
            &[
                0xb8, 1, 0, 0, 0, 0xb8, 0x60, 0, 0, 0, 0x89, 0xfb, 0xcd, 0x80,
            ],
            Number::Is(96),
        ),
        (
            &[0xb8, 0x93, 1, 0, 0, 0x65, 0xff, 0x15, 0x10, 0, 0, 0],
            Number::Is(403),
        ),
        (&[0x89, 0xf8, 0x0f, 0x05], Number::Unknown),
        (&[0xb8, 0xe4, 0, 0, 0, 0x90], Number::None),
    ] {
        assert_eq!(number_before(code), number, "{code:x?}");
    }
}

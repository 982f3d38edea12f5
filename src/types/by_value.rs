//! Comparison and hashing of times by their values.

/// Implements comparison and hashing of a type of time. Both use the number that the method
/// `$number` returns: the whole time in nanoseconds or microseconds. A derive would compare the
/// fields instead. Then, if `tv_nsec` or `tv_usec` is out of its range, two values for the same
/// moment would not be equal, although both print the same text.
macro_rules! by_value {
    ($Time:ty, $number:ident) => {
        impl PartialEq for $Time {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.$number() == other.$number()
            }
        }

        impl Eq for $Time {}

        impl PartialOrd for $Time {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $Time {
            #[inline]
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.$number().cmp(&other.$number())
            }
        }

        impl core::hash::Hash for $Time {
            #[inline]
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                self.$number().hash(state);
            }
        }
    };
}

pub(super) use by_value;

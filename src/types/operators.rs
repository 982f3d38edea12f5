//! `+` and `-` of a time and a `Duration`, the same for every type of time.

/// Implements the operators with `checked_add` and `checked_sub`. The panic messages are std's.
macro_rules! operators {
    ($generics:tt $Time:ty, $what:literal) => {
        operators!($generics $Time, "later", checked_add, Add::add, AddAssign::add_assign,
            concat!("overflow when adding duration to ", $what));
        operators!($generics $Time, "earlier", checked_sub, Sub::sub, SubAssign::sub_assign,
            concat!("overflow when subtracting duration from ", $what));
    };
    ([$($C:ident)?] $Time:ty, $moved:literal, $checked:ident,
        $Operator:ident::$operate:ident, $Assign:ident::$assign:ident, $panic:expr) => {
        impl<$($C)?> core::ops::$Operator<core::time::Duration> for $Time {
            type Output = Self;

            #[doc = concat!("Returns the time `duration` ", $moved, ".")]
            ///
            /// # Panics
            ///
            #[doc = concat!("If the result does not fit. `", stringify!($checked), "` returns `None` instead.")]
            #[inline]
            #[track_caller]
            fn $operate(self, duration: core::time::Duration) -> Self {
                self.$checked(duration).expect($panic)
            }
        }

        impl<$($C)?> core::ops::$Assign<core::time::Duration> for $Time {
            #[doc = concat!("Makes the time `duration` ", $moved, ".")]
            ///
            /// # Panics
            ///
            /// If the result does not fit.
            #[inline]
            #[track_caller]
            fn $assign(&mut self, duration: core::time::Duration) {
                *self = core::ops::$Operator::$operate(*self, duration);
            }
        }
    };
}

pub(crate) use operators;

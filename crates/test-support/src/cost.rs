//! [`Cost`]: what machine code takes, in instructions.

/// What a turn of a loop is made of, but for the vDSO's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub instructions: i64,
    /// Conditional branches, without the checks.
    pub branches: i64,
    /// Branches on the returned value that are not taken.
    pub checks: i64,
}

impl Cost {
    #[must_use]
    pub fn with(self, other: Self, combine: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            instructions: combine(self.instructions, other.instructions),
            branches: combine(self.branches, other.branches),
            checks: combine(self.checks, other.checks),
        }
    }

    #[must_use]
    pub fn less(self, other: Self) -> Self {
        self.with(other, |this, other| this - other)
    }
}

//! [`Cost`]: what machine code takes, in instructions of the compiler's listing.

/// The parts of one iteration of a loop.
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
    pub fn less(self, other: Self) -> Self {
        Self {
            instructions: self.instructions - other.instructions,
            branches: self.branches - other.branches,
            checks: self.checks - other.checks,
        }
    }

    /// Counts a turn of the loop in a function: from the first label that a branch goes back to, to
    /// that branch. `test` is how a test of a returned `int` begins.
    pub fn of_turn(listing: &str, function: &str, test: &str) -> Self {
        let mut labels = Vec::new();
        let mut cost = Self::default();
        let mut before = "";
        for line in body(listing, function) {
            if let Some(label) = line.strip_suffix(':') {
                labels.push((label, cost));
                continue;
            }
            if !is_instruction(line) {
                continue;
            }
            cost.instructions += 1;
            if let Some(at) = line.find(".LBB") {
                let target = &line[at..];
                if let Some((_, start)) = labels.iter().find(|(label, _)| *label == target) {
                    cost.branches += 1;
                    return cost.less(*start);
                }
                if before.starts_with(test) || line.starts_with(test) {
                    cost.checks += 1;
                } else {
                    cost.branches += 1;
                }
            }
            before = line;
        }
        panic!("{function} has no loop")
    }
}

/// Returns the instructions of a function.
pub fn instructions<'a>(listing: &'a str, function: &str) -> impl Iterator<Item = &'a str> {
    body(listing, function).filter(|line| is_instruction(line))
}

/// Returns the lines of a function after its label.
fn body<'a>(listing: &'a str, function: &str) -> impl Iterator<Item = &'a str> {
    let mut lines = listing.lines().map(str::trim);
    lines
        .find(|line| line.ends_with(':') && line.contains(function))
        .expect(function);
    lines.take_while(|line| line.starts_with('.') || !line.ends_with(':'))
}

fn is_instruction(line: &str) -> bool {
    !line.ends_with(':') && !line.is_empty() && !line.starts_with(['.', '#', '@', '/'])
}

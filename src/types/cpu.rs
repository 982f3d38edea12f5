//! [`Cpu`]: where a thread runs.

/// The CPU and the NUMA node on which a thread ran when it called getcpu(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cpu {
    /// The CPU's number.
    pub cpu: u32,
    /// The number of the CPU's NUMA node.
    pub node: u32,
}

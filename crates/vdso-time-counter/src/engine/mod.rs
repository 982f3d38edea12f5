//! The clock as pure code over a [`Source`](source::Source). Tests compile this directory again,
//! for simulated machines.

pub(crate) mod clock;
pub(crate) mod high_water;
pub(crate) mod latch;
pub(crate) mod sample;
pub(crate) mod segment;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod transition;
pub(crate) mod view;
pub(crate) mod wall;

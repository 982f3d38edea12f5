//! What holds for the counter clock on every simulated machine. Its engine is compiled here once more, over a source that the
//! test is; the cases are the same in each run, as in `properties`.

#[path = "../../src/counter/clock.rs"]
mod clock;
#[path = "../../src/counter/discipline.rs"]
mod discipline;
#[path = "../../src/counter/high_water.rs"]
mod high_water;
#[path = "../../src/counter/latch.rs"]
mod latch;
#[path = "../../src/counter/sample.rs"]
mod sample;
#[path = "../../src/counter/segment.rs"]
mod segment;
#[path = "../../src/counter/state.rs"]
mod state;
#[allow(unreachable_pub, reason = "elsewhere it can be reached")]
#[path = "../../src/counter/status.rs"]
mod status;

#[path = "cases.rs"]
mod cases;
#[path = "counter/hostile.rs"]
mod hostile;
#[path = "counter/life.rs"]
mod life;
#[path = "counter/machines.rs"]
mod machines;
#[path = "counter/namespaces.rs"]
mod namespaces;
#[path = "counter/states.rs"]
mod states;
#[path = "counter/threads.rs"]
mod threads;
#[path = "counter/witness.rs"]
mod witness;
#[path = "counter/world.rs"]
mod world;

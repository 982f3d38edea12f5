//! What holds for the counter clock on every simulated machine. Its engine is compiled here once more, over a source that the
//! test is; the cases are the same in each run, as in `properties`.

#[path = "../../src/counter/engine.rs"]
mod engine;
#[path = "../../src/counter/floor.rs"]
mod floor;
#[path = "../../src/counter/latch.rs"]
mod latch;
#[path = "../../src/counter/line.rs"]
mod line;
#[path = "../../src/counter/record.rs"]
mod record;
#[path = "../../src/counter/renewal.rs"]
mod renewal;
#[path = "../../src/counter/sample.rs"]
mod sample;
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

//! The histories: what happened to a machine, each from a public report or a rule of the kernel.

use std::rc::Rc;

use crate::thread::{ClockSource, PREEMPTION, SYSTEM_CALL, Thread};
use crate::watch::Watch;
use crate::world::{MICRO, MILLI, Machine, SECOND};

/// The counter of an AMD EPYC, as in valkey-io/valkey #4691.
const USUAL: u64 = 2_650_000_000;
/// The seconds since the counter was 0.
const UPTIME: u64 = 3_600;
const HOUR: u128 = 3_600 * SECOND;

pub(crate) struct History {
    pub(crate) name: String,
    hertz: u64,
    /// Interrupts per million calls.
    interrupts: u32,
    /// How many machines it is played on, each with another seed.
    machines: u32,
    /// Prepares a machine before the clock starts.
    prepare: fn(&Thread),
    /// The events after the start, and the times at which the clock is read.
    pub(crate) play: fn(&Watch),
}

impl History {
    fn new(name: &str, play: fn(&Watch)) -> Self {
        Self {
            name: name.into(),
            hertz: USUAL,
            interrupts: 0,
            machines: 3,
            prepare: |_| {},
            play,
        }
    }

    fn before(self, prepare: fn(&Thread)) -> Self {
        Self { prepare, ..self }
    }

    fn on(self, machines: u32) -> Self {
        Self { machines, ..self }
    }

    /// Returns the machines, ready for the clock's start.
    pub(crate) fn threads(&self) -> impl Iterator<Item = Rc<Thread>> {
        (0..self.machines).map(|number| {
            let machine = Machine {
                hertz: self.hertz,
                ticks: self.hertz * UPTIME,
                interrupts: self.interrupts,
                seed: u64::from(number),
                ..Machine::default()
            };
            let thread = Thread::new(machine, number);
            (self.prepare)(&thread);
            thread
        })
    }
}

/// Nothing happens for 10 seconds.
fn quiet(hertz: u64, rate: &str) -> History {
    History {
        hertz,
        ..History::new(&format!("quiet, {rate}"), |watch| {
            watch.read_for(10 * SECOND);
        })
    }
}

/// A guest whose CPU does not promise an invariant counter: QEMU's default.
fn kvm(thread: &Thread) {
    thread.clock_source.set(ClockSource::Kvm);
    thread.is_invariant.set(false);
}

/// Half of the machines have a second CPU that is ahead, the other half one that is behind.
fn apart(thread: &Thread, nanos: i64) {
    let is_ahead = thread.number % 2 == 0;
    thread.lead.set(if is_ahead { nanos } else { -nanos });
}

/// The kernel leaves the counter for a timer.
fn give_up(thread: &Thread) {
    thread.clock_source.set(ClockSource::Hpet);
    thread.world.syscall.set(SYSTEM_CALL);
}

/// An event after 0.2 s, and four seconds after it. The event finds this project's clock elsewhere
/// in a segment, which lasts 13 ms here, on each of the machines.
fn event(name: &str, play: fn(&Watch)) -> History {
    History::new(name, play).on(8)
}

fn around(watch: &Watch, event: fn(&Thread)) {
    watch.read_for(200 * MILLI + u128::from(watch.thread.number) * 1_600 * MICRO);
    event(&watch.thread);
    watch.read_for(4 * SECOND);
}

/// The counter's rates that the machines have. Those up to 1 GHz are of arm64 machines.
fn rates() -> Vec<History> {
    [
        (1_000_000, "1 MHz"),
        (19_200_000, "19.2 MHz"),
        (24_000_000, "24 MHz"),
        (62_500_000, "62.5 MHz"),
        (1_000_000_000, "1 GHz"),
        (2_100_000_000, "2.1 GHz"),
        (USUAL, "2.65 GHz"),
        (3_000_000_000, "3 GHz"),
        (4_000_000_000, "4 GHz"),
    ]
    .map(|(hertz, rate)| quiet(hertz, rate))
    .into()
}

/// Changes that NTP and people make to the kernel's clock.
fn slews() -> Vec<History> {
    vec![
        History::new("NTP slews by 100 ppm, 10 s", |watch| {
            watch.thread.world.set_slew(100_000);
            watch.read_for(10 * SECOND);
        }),
        History::new("NTP slews by 500 ppm, 10 s", |watch| {
            watch.thread.world.set_slew(500_000);
            watch.read_for(10 * SECOND);
        }),
        // chrony.conf(5), maxslewrate: 83,333 ppm.
        History::new("chrony slews by 8.3 %, 10 min", |watch| {
            watch.read_for(SECOND);
            watch.thread.world.set_slew(83_333_000);
            watch.read_for(600 * SECOND);
        })
        .on(1),
        History::new("started in a slew of 8.3 %, 10 s", |watch| {
            watch.thread.world.set_slew(0);
            watch.read_for(10 * SECOND);
        })
        .before(|thread| thread.world.set_slew(83_333_000)),
        event("CLOCK_REALTIME set back by 1 s", |watch| {
            around(watch, |thread| thread.world.step(-1_000_000_000));
        }),
    ]
}

/// CPUs whose counters differ: redis/redis #11759, metrics-rs/quanta #61, valkey-io/valkey #4345.
fn offsets() -> Vec<History> {
    vec![
        History::new("CPUs 100 ns apart", |watch| watch.read_for(5 * SECOND))
            .before(|thread| apart(thread, 100))
            .on(12),
        History::new("CPUs 10 us apart", |watch| watch.read_for(5 * SECOND))
            .before(|thread| apart(thread, 10_000))
            .on(12),
        History::new("CPUs 1 ms apart", |watch| watch.read_for(5 * SECOND))
            .before(|thread| apart(thread, 1_000_000))
            .on(12),
        History::new("CPUs 1 s apart, source hpet", |watch| {
            watch.read_for(5 * SECOND);
        })
        .before(|thread| {
            apart(thread, 1_000_000_000);
            give_up(thread);
        })
        .on(40),
        History::new("kvm-clock, CPUs 1 ms apart", |watch| {
            watch.read_for(5 * SECOND);
        })
        .before(|thread| {
            kvm(thread);
            apart(thread, 1_000_000);
        })
        .on(12),
        // Without its stable bit, kvm-clock's vDSO makes the system call.
        History::new("the same, no stable bit", |watch| {
            watch.read_for(5 * SECOND);
        })
        .before(|thread| {
            kvm(thread);
            apart(thread, 1_000_000);
            thread.world.syscall.set(SYSTEM_CALL);
        })
        .on(12),
    ]
}

/// Events that a hypervisor causes in a guest. The kernel's clock is right, except after the
/// restore.
fn moves() -> Vec<History> {
    vec![
        // valkey-io/valkey #4691.
        event("kvm-clock, counter 1 s ahead", |watch| {
            around(watch, |thread| thread.jump(1_000_000_000));
        })
        .before(kvm),
        event("moved, counter 5 ms ahead", |watch| {
            around(watch, |thread| thread.jump(5_000_000));
        })
        .before(kvm),
        event("moved, counter 5 ms behind", |watch| {
            around(watch, |thread| thread.jump(-5_000_000));
        })
        .before(kvm),
        event("moved, rate 10 % lower", |watch| {
            around(watch, |thread| thread.world.migrate(thread.hertz / 10 * 9));
        })
        .before(kvm),
        event("moved, rate 10 % higher", |watch| {
            around(watch, |thread| thread.world.migrate(thread.hertz / 10 * 11));
        })
        .before(kvm),
        // The host is another one, and CLOCK_MONOTONIC steps by the pause.
        event("restored from a snapshot after 3 s", |watch| {
            around(watch, |thread| {
                thread.world.step_all(3_000_000_000);
                thread.jump(-1_800_000_000_000);
            });
        })
        .before(kvm),
    ]
}

/// Suspends: CLOCK_MONOTONIC stands still.
fn suspends() -> Vec<History> {
    vec![
        event("suspended for 1 h, counter runs", |watch| {
            around(watch, |thread| thread.world.suspend(HOUR, false));
        }),
        // Firmware sets the counter to 0 in S3.
        event("suspended for 1 h, counter from 0", |watch| {
            around(watch, |thread| {
                thread.world.suspend(HOUR, false);
                thread.world.set_counter(0);
            });
        }),
    ]
}

/// Events that disturb a calibration: redis/redis #15018 (the review), metrics-rs/quanta #99.
fn starts() -> Vec<History> {
    vec![
        // The machines are preempted at another read each.
        History::new("preempted 20 ms in calibration", |watch| {
            watch.read_for(SECOND);
        })
        .before(|thread| thread.preemption.set((thread.number + 1, PREEMPTION)))
        .on(24),
        History {
            interrupts: 30_000,
            ..History::new("started under load", |watch| watch.read_for(SECOND)).on(10)
        },
    ]
}

/// Events late in the life of a process.
fn ages() -> Vec<History> {
    vec![
        // The watchdog of the kernel finds the counter 1 % too fast, and leaves it.
        event("kernel leaves the counter, 1 % fast", |watch| {
            around(watch, |thread| {
                give_up(thread);
                thread.world.migrate(thread.hertz / 100 * 101);
            });
        }),
        // Reads for 20 ms every hour.
        History::new("100 days of uptime", |watch| {
            for _ in 0..2_400 {
                watch.read_for(20 * MILLI);
                watch.thread.world.pass(HOUR - 20 * MILLI);
            }
        }),
    ]
}

pub(crate) fn all() -> Vec<History> {
    [
        rates(),
        slews(),
        offsets(),
        moves(),
        suspends(),
        starts(),
        ages(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
